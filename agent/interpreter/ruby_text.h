/*
 * ruby_text: strings of Ruby, as UTF-8, and the paths of instruction sequences.
 *
 * A short string's bytes lie in the object, a long one's elsewhere; a path is a string or an array
 * of two, of which the first is the one that errors tell. Threads:
 * any.
 */
#ifndef AGENT_INTERPRETER_RUBY_TEXT_H
#define AGENT_INTERPRETER_RUBY_TEXT_H

#include "agent/interpreter/ruby.h"

enum { RUBY_TEXT_MAX_BYTES = 4096, RUBY_OBJECT_BYTES = 40 };

struct ruby_text_place {
    uint64_t address; /* 0: in the object, at offset */
    uint32_t offset;
    uint32_t bytes;
};

/* Where a string's bytes are, by what its object has; false when it is no string. */
bool ruby_text_find(const struct ruby_layout *layout, const uint8_t object[RUBY_OBJECT_BYTES],
                    struct ruby_text_place *ret_place);
/* Where they are not UTF-8, all that is not ASCII becomes a question mark. */
void ruby_text_clean(uint8_t *bytes, size_t size);
/* Cut where it is too long. */
bool ruby_text_read(uint32_t process_id, const struct ruby_layout *layout, uint64_t address,
                    struct buf *text);
bool ruby_text_read_path(uint32_t process_id, const struct ruby_layout *layout, uint64_t address,
                         struct buf *text);

#endif
