/*
 * ruby_code: the names, files and lines of instruction sequences, read from a process and kept.
 *
 * Functions are read and cached as code_reader.h describes. A function whose sequence no longer
 * exists gets the name "[Ruby function that is gone]". Threads: one.
 */
#ifndef AGENT_INTERPRETER_RUBY_CODE_H
#define AGENT_INTERPRETER_RUBY_CODE_H

#include "agent/interpreter/ruby.h"

struct ruby_codes;

/* share: the process's part of the budget for functions; it is copied and must have 0 bytes. */
struct ruby_codes *ruby_codes_create(const struct ruby_layout *layout, uint32_t process_id,
                                     const struct code_share *share);
struct ruby_codes *ruby_codes_ref(struct ruby_codes *codes);
void ruby_codes_unref(struct ruby_codes *codes);
/* The function and line of a frame of the process. */
void ruby_codes_find(struct ruby_codes *codes, uint32_t process_id,
                     const struct interpreted_frame *frame, struct interpreter_name *ret_name);

#endif
