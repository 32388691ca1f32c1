/* Prints offsets in the structures of the CPython whose headers it is compiled with; see
 * offsets.sh. */
#define Py_BUILD_CORE 1
#include <Python.h>

#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX < 0x03090000
#include <internal/pycore_pystate.h>
#else
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif

#define PRINT_OFFSET(type, member) printf("  " #type "." #member " %zu\n", offsetof(type, member))

static void say_frames(void)
{
#if PY_VERSION_HEX < 0x030b0000
    PRINT_OFFSET(PyThreadState, frame);
    PRINT_OFFSET(PyFrameObject, f_back);
    PRINT_OFFSET(PyFrameObject, f_code);
    PRINT_OFFSET(PyFrameObject, f_lasti);
#else
    PRINT_OFFSET(_PyInterpreterFrame, previous);
    PRINT_OFFSET(_PyInterpreterFrame, owner);
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000
    PRINT_OFFSET(_PyInterpreterFrame, f_code);
    PRINT_OFFSET(_PyInterpreterFrame, prev_instr);
    PRINT_OFFSET(_PyCFrame, current_frame);
    PRINT_OFFSET(_PyCFrame, previous);
#elif PY_VERSION_HEX >= 0x030d0000
    PRINT_OFFSET(_PyInterpreterFrame, f_executable);
    PRINT_OFFSET(_PyInterpreterFrame, instr_ptr);
    PRINT_OFFSET(PyThreadState, current_frame);
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
    PRINT_OFFSET(_PyInterpreterFrame, is_entry);
#endif
#if PY_VERSION_HEX >= 0x030a0000 && PY_VERSION_HEX < 0x030d0000
    PRINT_OFFSET(PyThreadState, cframe);
#endif
#if PY_VERSION_HEX >= 0x030a0000 && PY_VERSION_HEX < 0x030b0000
    PRINT_OFFSET(CFrame, previous);
#endif
}

static void say_code(void)
{
    PRINT_OFFSET(PyCodeObject, co_firstlineno);
    PRINT_OFFSET(PyCodeObject, co_filename);
    PRINT_OFFSET(PyCodeObject, co_name);
#if PY_VERSION_HEX < 0x030a0000
    PRINT_OFFSET(PyCodeObject, co_lnotab);
#else
    PRINT_OFFSET(PyCodeObject, co_linetable);
#endif
#if PY_VERSION_HEX >= 0x030b0000
    PRINT_OFFSET(PyCodeObject, co_qualname);
    PRINT_OFFSET(PyCodeObject, co_code_adaptive);
#endif
    printf("  heads of strings: %zu ASCII, %zu others\n", sizeof(PyASCIIObject),
           sizeof(PyCompactUnicodeObject));
}

int main(void)
{
    printf("CPython %s\n", PY_VERSION);
    PRINT_OFFSET(_PyRuntimeState, interpreters.head);
#if PY_VERSION_HEX < 0x030b0000
    PRINT_OFFSET(PyInterpreterState, tstate_head);
#else
    PRINT_OFFSET(PyInterpreterState, threads.head);
#endif
    PRINT_OFFSET(PyThreadState, next);
    PRINT_OFFSET(PyThreadState, interp);
    PRINT_OFFSET(PyThreadState, thread_id);
    say_frames();
    say_code();
    return 0;
}
