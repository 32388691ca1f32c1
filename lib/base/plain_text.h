/*
 * plain_text: makes untrusted text safe to show on a terminal or in a log.
 *
 * Names that agents and profiles supply (labels, services, functions, threads) may contain escape
 * sequences that control a terminal, newlines that forge log lines, marks that reverse the
 * direction of text, and invisible characters that make different names look the same. All UTF-8
 * characters are plain except controls (C0, DEL, C1), line and paragraph separators, characters
 * that programs may ignore when they show text (Default_Ignorable_Code_Point: direction marks,
 * zero-width spaces, soft hyphens, fillers, tags) and invisible annotations (U+FFF9 to U+FFFB).
 * Scripts and emoji need some of these, so two groups are plain: variation selectors, and the
 * joiners U+200C and U+200D before a character that is not ASCII. Files and JSON keep the exact
 * bytes. Threads: any.
 */
#ifndef LIB_BASE_PLAIN_TEXT_H
#define LIB_BASE_PLAIN_TEXT_H

#include "lib/base/span.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;

/* The character that replaces each one that is not plain. */
enum { PLAIN_TEXT_SUBSTITUTE = '?' };

/*
 * Reads the first character of non-empty text. Returns its size in bytes; *ret_point is its code
 * point, and *ret_is_plain whether it may be shown in front of the following text. A byte that does
 * not begin a UTF-8 character counts as one that is not plain.
 */
size_t plain_text_next(struct span text, uint32_t *ret_point, bool *ret_is_plain);

/* Appends from to text, with PLAIN_TEXT_SUBSTITUTE for each character that is not plain. */
void plain_text_append(struct buf *text, struct span from);

/* The same in place, without a terminating NUL. Returns the new size, which is not larger. */
size_t plain_text_clean(char *text, size_t size);

#endif
