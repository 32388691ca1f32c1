/*
 * cpython: CPython 3.8 to 3.14, as a kind of interpreter.
 *
 * Where things lie is known from CPython's own headers: up to 3.12 from tables here, made by
 * tests/oracle/cpython/offsets.sh from each version's headers, from 3.13 on from what the process
 * itself says (_Py_DebugOffsets). Run against: 3.8, 3.9, 3.10, 3.11, 3.12, 3.13; not run: 3.14.
 * Refused: others, builds without the GIL, and where a thread's state is not at one distance from
 * its thread pointer (musl).
 *
 * A thread's state is found as pthread_getspecific would: its place in the C library's record of a
 * thread is looked for once in each process, and checked at every sample by the thread that the
 * state says to be of.
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
    bool is_code_inside; /* frames point to instructions, which lie in the code object */
    uint16_t place_unit; /* bytes of what a frame's place counts */
    enum cpython_line_form line_form;
    uint16_t interpreters_head; /* runtime */
    uint16_t threads_head;      /* interpreter */
    uint16_t thread_next;
    uint16_t thread_interpreter;
    uint16_t code_first_line;
    uint16_t code_file;
    uint16_t code_name;
    uint16_t code_qualified_name;
    uint16_t code_lines;
    uint16_t code_instructions;
    uint16_t ascii_bytes; /* of the head of a string */
    uint16_t unicode_bytes;
    struct interpreter_layout frames;
};

/* NULL: of a version that says itself, or that is not known. */
const struct cpython_layout *cpython_layout_find(uint32_t version);
/* From what a process of 3.13 or later says, its _Py_DebugOffsets. Not READY: why not. */
enum interpreter_outcome cpython_layout_read(struct span offsets,
                                             struct cpython_layout *ret_layout);
enum { CPYTHON_OFFSETS_BYTES = 656 }; /* what is looked at, and no more than the runtime has */

#endif
