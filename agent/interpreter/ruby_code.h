/*
 * ruby_code: the names, files and lines of instruction sequences, read from a process and kept.
 *
 * The rules are those of agent/interpreter/cpython_code.h: a sequence is identified by its address
 * and by the fields that the kernel program compared, read again when they differ, shared with
 * child processes, and limited in count and bytes. Threads: one.
 */
#ifndef AGENT_INTERPRETER_RUBY_CODE_H
#define AGENT_INTERPRETER_RUBY_CODE_H

#include "agent/interpreter/ruby.h"

struct ruby_codes;

/* share, which has nothing yet, is copied. */
struct ruby_codes *ruby_codes_create(const struct ruby_layout *layout, uint32_t process_id,
                                     const struct code_share *share);
struct ruby_codes *ruby_codes_ref(struct ruby_codes *codes);
void ruby_codes_unref(struct ruby_codes *codes);
/* Read from that process, or from the one that they were created for. */
void ruby_codes_find(struct ruby_codes *codes, uint32_t process_id,
                     const struct interpreted_frame *frame, struct interpreter_name *ret_name);

#endif
