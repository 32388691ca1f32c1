/*
 * cpython: implements struct interpreter_kind for CPython 3.8 to 3.14.
 *
 * Offsets of members: up to 3.12 from the tables in cpython_layout.c, which were written by hand
 * from what tests/oracle/cpython/offsets.sh prints for the headers of each version; from 3.13 on
 * the process itself contains them (_Py_DebugOffsets). Tested with 3.8 to 3.13; not tested: 3.14.
 * Refused: other versions, builds without the GIL, and processes in which the pointer to a thread's
 * state is not near the thread pointer (musl).
 *
 * CPython stores a pointer to the state of a thread (PyThreadState) with pthread_setspecific(3).
 * This pointer is in the C library's struct of the thread, at the same distance from the thread
 * pointer in all threads. The agent searches the distance once per process. Each sample verifies
 * that the state contains the thread pointer of its own thread.
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
    uint16_t interpreters_head; /* in _PyRuntimeState */
    uint16_t threads_head;      /* in PyInterpreterState */
    /* In PyThreadState: */
    uint16_t thread_next;
    uint16_t thread_interpreter;
    /* In PyCodeObject: */
    uint16_t code_first_line;
    uint16_t code_file;
    uint16_t code_name;
    uint16_t code_qualified_name; /* 0 without has_qualified_names */
    uint16_t code_lines;
    uint16_t code_instructions; /* 0 without has_instruction_address */
    uint16_t ascii_bytes;       /* size of PyASCIIObject: characters of ASCII strings follow it */
    uint16_t unicode_bytes; /* size of PyCompactUnicodeObject: those of other strings follow it */
    struct interpreter_layout frames; /* the offsets that the kernel program needs */
};

/* The layout of 3.8 to 3.12; NULL: another version. */
const struct cpython_layout *cpython_layout_find(uint32_t version);
/* Reads the layout from a copy of _Py_DebugOffsets (3.13 and later). Returns INTERPRETER_READY, or
 * why the layout is refused. */
enum interpreter_outcome cpython_layout_read(struct span offsets,
                                             struct cpython_layout *ret_layout);
/* The number of bytes of _Py_DebugOffsets, with which _PyRuntime begins, that the agent reads: 82
 * words. Must include the last word that cpython_layout_read uses (word 80 in 3.14, see all_parts).
 */
enum { CPYTHON_OFFSETS_BYTES = 656 };

#endif
