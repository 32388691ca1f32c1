/*
 * cpython: CPython 3.8 to 3.14, as a kind of interpreter.
 *
 * Offsets of members: up to 3.12 from tables (cpython_layout.c), made from the headers of each
 * version by tests/oracle/cpython/offsets.sh; from 3.13 on the process itself contains them
 * (_Py_DebugOffsets). Tested with 3.8 to 3.13; not tested: 3.14. Refused: other versions, builds
 * without the GIL, and processes whose threads do not have their states at one distance from their
 * thread pointers (musl).
 *
 * The state of a thread is found as pthread_getspecific(3) would find it: its offset in the C
 * library's struct of a thread is searched once per process. Each sample verifies the state by the
 * thread number in it.
 */
#ifndef AGENT_INTERPRETER_CPYTHON_H
#define AGENT_INTERPRETER_CPYTHON_H

#include "agent/interpreter/cpython_lines.h"
#include "agent/interpreter/interpreter.h"

extern const struct interpreter_kind cpython_kind;

/* Byte offsets in the interpreter's objects. */
struct cpython_layout {
    uint16_t version; /* major << 8 | minor */
    bool has_qualified_names;
    bool has_instruction_address; /* the position of a frame is the address of its instruction */
    uint16_t position_unit; /* without has_instruction_address: bytes per unit of the position */
    enum cpython_line_form line_form;
    uint16_t interpreters_head; /* _PyRuntimeState */
    uint16_t threads_head;      /* PyInterpreterState */
    uint16_t thread_next;       /* PyThreadState, as the next one */
    uint16_t thread_interpreter;
    uint16_t code_first_line; /* PyCodeObject, as the next five */
    uint16_t code_file;
    uint16_t code_name;
    uint16_t code_qualified_name;
    uint16_t code_lines;
    uint16_t code_instructions;
    uint16_t ascii_bytes;   /* size of PyASCIIObject: characters of ASCII strings follow it */
    uint16_t unicode_bytes; /* size of PyCompactUnicodeObject: those of other strings follow it */
    struct interpreter_layout frames;
};

/* The layout of 3.8 to 3.12; NULL: another version. */
const struct cpython_layout *cpython_layout_find(uint32_t version);
/* Reads the layout from a copy of _Py_DebugOffsets (3.13 and later). Returns INTERPRETER_READY, or
 * why the layout is refused. */
enum interpreter_outcome cpython_layout_read(struct span offsets,
                                             struct cpython_layout *ret_layout);
/* The agent reads this many bytes from the begin of _PyRuntime, which is longer in all versions. */
enum { CPYTHON_OFFSETS_BYTES = 656 };

#endif
