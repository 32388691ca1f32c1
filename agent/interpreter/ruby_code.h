/*
 * ruby_code: reads the names, files and lines of Ruby functions (instruction sequences) from a
 * process and caches them.
 *
 * Functions are read and cached as code_reader.h describes. A function whose sequence no longer
 * exists gets the name "[Ruby function that is gone]". Threads: one.
 */
#ifndef AGENT_INTERPRETER_RUBY_CODE_H
#define AGENT_INTERPRETER_RUBY_CODE_H

#include "agent/interpreter/ruby.h"

struct ruby_codes;

/* quota: of the process, for functions; it is copied and must have 0 bytes. */
struct ruby_codes *ruby_codes_create(const struct ruby_layout *layout, uint32_t process_id,
                                     const struct code_quota *quota);
struct ruby_codes *ruby_codes_ref(struct ruby_codes *codes);
void ruby_codes_unref(struct ruby_codes *codes);
/* Finds the function and the line of a frame. Never fails: a frame that cannot be read gets a
 * placeholder name. */
void ruby_codes_find(struct ruby_codes *codes, uint32_t process_id,
                     const struct interpreted_frame *frame, struct interpreter_name *ret_name);

#endif
