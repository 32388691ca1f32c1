/*
 * plain_text: text from outside as a terminal or a log may show it.
 *
 * Names that agents and profiles bring (labels, services, functions, threads) may contain escape
 * sequences, which steer a terminal, newlines, which forge lines of a log, marks that reverse the
 * direction of text, which make it read as something else, and invisible characters, which make
 * different names look the same. Plain are the characters of UTF-8 but controls (C0, DEL, C1),
 * separators of lines and paragraphs, and what Unicode lets programs ignore when they show text
 * (Default_Ignorable_Code_Point: marks of direction, zero-width spaces, soft hyphens, fillers,
 * tags) or marks as invisible annotations (U+FFF9 to U+FFFB). Exceptions, since scripts and emoji
 * need them: variation selectors, and the joiners U+200C and U+200D before a character that is not
 * ASCII. Files and JSON keep the exact bytes. Threads: any.
 */
#ifndef LIB_BASE_PLAIN_TEXT_H
#define LIB_BASE_PLAIN_TEXT_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* One character of text that is not plain is shown so. */
enum { PLAIN_TEXT_SUBSTITUTE = '?' };

/*
 * Reads the character that non-empty text begins with. Returns its bytes; *ret_point is its code
 * point, *ret_is_plain whether it may be shown before what follows in text. A byte that begins no
 * UTF-8 is one that is not plain.
 */
size_t plain_text_next(struct span text, uint32_t *ret_point, bool *ret_is_plain);

/* Appends from, with PLAIN_TEXT_SUBSTITUTE in place of each character that is not plain. */
void plain_text_append(struct buf *text, struct span from);

/* The same in place, without an end mark. Returns the new size, which is not larger. */
size_t plain_text_clean(char *text, size_t size);

#endif
