/*
 * cpython_lines: finds the line of an instruction in a function's bytecode, from the function's
 * line table.
 *
 * Three forms: pairs of increments (co_lnotab, to 3.9), ranges (co_linetable, 3.10) and locations
 * (co_linetable, from 3.11 on). Sources: Objects/lnotab_notes.txt, Objects/locations.md (3.11),
 * InternalDocs/code_objects.md of CPython. The table is untrusted. Threads: any.
 */
#ifndef AGENT_INTERPRETER_CPYTHON_LINES_H
#define AGENT_INTERPRETER_CPYTHON_LINES_H

#include "lib/base/buf.h"

#include <stdint.h>

enum cpython_line_form { CPYTHON_LINES_INCREMENTS, CPYTHON_LINES_RANGES, CPYTHON_LINES_LOCATIONS };

/* The line of the instruction at offset, in bytes from the first instruction. offset < 0: the
 * function has not begun yet, and the result is its first line. 0: the instruction has no line, or
 * the table does not cover it. */
uint32_t cpython_lines_find(enum cpython_line_form form, struct span table, uint32_t first_line,
                            int64_t offset);

#endif
