/*
 * cpython_text: strings of CPython (str objects), as UTF-8.
 *
 * A string has one, two or four bytes per character, depending on its widest character (PEP 393).
 * Code objects contain only "compact" strings, whose characters follow their head. Threads: any.
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

/* Decodes the 32 bits PyASCIIObject.state; false: it is no compact string. */
bool cpython_text_form(uint32_t state, struct cpython_text_form *ret_form);
/* Appends characters as UTF-8; invalid ones (surrogates) become U+FFFD. */
void cpython_text_decode(struct span characters, uint32_t character_bytes, struct buf *text);
/* Appends a string of a process, cut after 1,000 characters. ascii_bytes, unicode_bytes: size of
 * the head of an ASCII string and of another one. False: it cannot be read. */
bool cpython_text_read(uint32_t process_id, uint64_t address, uint16_t ascii_bytes,
                       uint16_t unicode_bytes, struct buf *text);

#endif
