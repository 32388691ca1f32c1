/*
 * cpython_code: reads the names, files and lines of code objects from a process and caches them.
 *
 * Functions are read and cached as code_reader.h describes. A function whose code object no longer
 * exists gets the name "[Python function that is gone]". Threads: one.
 */
#ifndef AGENT_INTERPRETER_CPYTHON_CODE_H
#define AGENT_INTERPRETER_CPYTHON_CODE_H

#include "agent/interpreter/cpython.h"

struct cpython_codes;

/* quota: of the process, for functions; it is copied and must have 0 bytes. */
struct cpython_codes *cpython_codes_create(const struct cpython_layout *layout, uint32_t process_id,
                                           uint64_t code_type, const struct code_quota *quota);
struct cpython_codes *cpython_codes_ref(struct cpython_codes *codes);
void cpython_codes_unref(struct cpython_codes *codes);
/* Finds the function and the line of a frame. False: the frame is the interpreter's own (a shim
 * between C and Python) and is left out. */
bool cpython_codes_find(struct cpython_codes *codes, uint32_t process_id,
                        const struct interpreted_frame *frame, struct interpreter_name *ret_name);

#endif
