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

#define SAY(type, member) printf("  " #type "." #member " %zu\n", offsetof(type, member))

static void say_frames(void)
{
#if PY_VERSION_HEX < 0x030b0000
    SAY(PyThreadState, frame);
    SAY(PyFrameObject, f_back);
    SAY(PyFrameObject, f_code);
    SAY(PyFrameObject, f_lasti);
#else
    SAY(_PyInterpreterFrame, previous);
    SAY(_PyInterpreterFrame, owner);
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000
    SAY(_PyInterpreterFrame, f_code);
    SAY(_PyInterpreterFrame, prev_instr);
    SAY(_PyCFrame, current_frame);
    SAY(_PyCFrame, previous);
#elif PY_VERSION_HEX >= 0x030d0000
    SAY(_PyInterpreterFrame, f_executable);
    SAY(_PyInterpreterFrame, instr_ptr);
    SAY(PyThreadState, current_frame);
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
    SAY(_PyInterpreterFrame, is_entry);
#endif
#if PY_VERSION_HEX >= 0x030a0000 && PY_VERSION_HEX < 0x030d0000
    SAY(PyThreadState, cframe);
#endif
#if PY_VERSION_HEX >= 0x030a0000 && PY_VERSION_HEX < 0x030b0000
    SAY(CFrame, previous);
#endif
}

static void say_code(void)
{
    SAY(PyCodeObject, co_firstlineno);
    SAY(PyCodeObject, co_filename);
    SAY(PyCodeObject, co_name);
#if PY_VERSION_HEX < 0x030a0000
    SAY(PyCodeObject, co_lnotab);
#else
    SAY(PyCodeObject, co_linetable);
#endif
#if PY_VERSION_HEX >= 0x030b0000
    SAY(PyCodeObject, co_qualname);
    SAY(PyCodeObject, co_code_adaptive);
#endif
    printf("  heads of strings: %zu ASCII, %zu others\n", sizeof(PyASCIIObject),
           sizeof(PyCompactUnicodeObject));
}

int main(void)
{
    printf("CPython %s\n", PY_VERSION);
    SAY(_PyRuntimeState, interpreters.head);
#if PY_VERSION_HEX < 0x030b0000
    SAY(PyInterpreterState, tstate_head);
#else
    SAY(PyInterpreterState, threads.head);
#endif
    SAY(PyThreadState, next);
    SAY(PyThreadState, interp);
    SAY(PyThreadState, thread_id);
    say_frames();
    say_code();
    return 0;
}
