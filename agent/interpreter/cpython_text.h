/*
 * cpython_text: strings of CPython (str objects), as UTF-8.
 *
 * A string keeps one, two or four bytes for each character, as its widest needs (PEP 393); only
 * "compact" ones, whose characters lie behind their head, exist in code objects. The bits that say
 * which are in another place from 3.14 on, and tell that themselves. Threads: any.
 */
#ifndef AGENT_INTERPRETER_CPYTHON_TEXT_H
#define AGENT_INTERPRETER_CPYTHON_TEXT_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { CPYTHON_TEXT_MAX_BYTES = 4096, CPYTHON_TEXT_HEAD_BYTES = 40 };

struct cpython_text_form {
    uint8_t character_bytes; /* 1, 2 or 4 */
    bool is_ascii;
};

/* Of the 32 bits of a string's state; false when they are those of no compact string. */
bool cpython_text_form(uint32_t state, struct cpython_text_form *ret_form);
/* Characters to UTF-8; what is none (surrogates) becomes U+FFFD. */
void cpython_text_decode(struct span characters, uint32_t character_bytes, struct buf *text);
/* Cut where it is too long. ascii_bytes, unicode_bytes: of the head of a string that is ASCII, and
 * of one that is not. */
bool cpython_text_read(uint32_t process_id, uint64_t address, uint16_t ascii_bytes,
                       uint16_t unicode_bytes, struct buf *text);

#endif
