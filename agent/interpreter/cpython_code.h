/*
 * cpython_code: the names, files and lines of code objects, read from a process and kept.
 *
 * A code object is known by its address and by what the kernel compared of it when it ran: another
 * that lies there later is read anew, and one that is gone has a name that says so. A process
 * shares them with its children, since most of those have no other, and may end before they were
 * looked at. Bounded: by count and bytes, and of all processes together (code_budget.h); past that
 * all are forgotten and read again. Threads: one.
 */
#ifndef AGENT_INTERPRETER_CPYTHON_CODE_H
#define AGENT_INTERPRETER_CPYTHON_CODE_H

#include "agent/interpreter/cpython.h"

struct cpython_codes;

/* share, which has nothing yet, is copied. */
struct cpython_codes *cpython_codes_create(const struct cpython_layout *layout, uint32_t process_id,
                                           uint64_t code_type, const struct code_share *share);
struct cpython_codes *cpython_codes_ref(struct cpython_codes *codes);
void cpython_codes_unref(struct cpython_codes *codes);
/* Read from that process, or from the one that they were created for. False: no function of the
 * program (what the interpreter puts between). */
bool cpython_codes_find(struct cpython_codes *codes, uint32_t process_id,
                        const struct interpreted_frame *frame, struct interpreter_name *ret_name);

#endif
