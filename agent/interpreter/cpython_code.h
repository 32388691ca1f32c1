/*
 * cpython_code: the names, files and lines of code objects, read from a process and kept.
 *
 * A code object is identified by its address and by the fields that the kernel program compared
 * when it ran. Another object that reuses the address is read again; an object that no longer
 * exists gets a name that states this. A process shares its objects with its children, because most
 * children run the same code and may end before it is read. Count and bytes are limited, per
 * process and in total (code_budget.h); past a limit all are dropped and read again. Threads: one.
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
