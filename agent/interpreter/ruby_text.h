/*
 * ruby_text: strings of Ruby, as UTF-8, and the paths of instruction sequences.
 *
 * The bytes of a short string are in its object, those of a long one elsewhere. The path of an
 * instruction sequence is a string, or an array of two of which the first is shown in error
 * messages. Threads: any.
 */
#ifndef AGENT_INTERPRETER_RUBY_TEXT_H
#define AGENT_INTERPRETER_RUBY_TEXT_H

#include "agent/interpreter/ruby.h"

enum { RUBY_TEXT_MAX_BYTES = 4096, RUBY_OBJECT_BYTES = 40 };

struct ruby_text_location {
    uint64_t address; /* 0: in the object, at offset */
    uint32_t offset;
    uint32_t bytes;
};

/* Finds the bytes of a string by a copy of its object; false: it is no string. */
bool ruby_text_find(const struct ruby_layout *layout, const uint8_t object[RUBY_OBJECT_BYTES],
                    struct ruby_text_location *ret_location);
/* If the bytes are not UTF-8, replaces all that are not ASCII with question marks. */
void ruby_text_clean(uint8_t *bytes, size_t size);
/* Append a string or a path of a process, cut after RUBY_TEXT_MAX_BYTES. False: it cannot be read.
 */
bool ruby_text_read(uint32_t process_id, const struct ruby_layout *layout, uint64_t address,
                    struct buf *text);
bool ruby_text_read_path(uint32_t process_id, const struct ruby_layout *layout, uint64_t address,
                         struct buf *text);

#endif
