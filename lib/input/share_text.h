/*
 * share_text: checks titles, descriptions and expiry times of shares.
 *
 * Server and clients use the same checks, so that a client can reject a text before it records or
 * uploads a profile. Threads: any.
 */
#ifndef LIB_INPUT_SHARE_TEXT_H
#define LIB_INPUT_SHARE_TEXT_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

enum { SHARE_TITLE_CHARACTERS = 200, SHARE_DESCRIPTION_CHARACTERS = 20000 };

/* Checks that text is UTF-8 of at most max_characters characters without control characters;
 * line breaks and tabs are allowed unless is_one_line. name is the name of the field, for the
 * message. Errors: ERR_INVALID. */
enum err_code share_text_check(const char *name, struct span text, size_t max_characters,
                               bool is_one_line, struct err *err) MUST_USE;

/* Parses "never" (0 seconds) or a number of hours, days or weeks ("12h", "30d", "8w") between an
 * hour and a hundred years. Errors: ERR_INVALID. */
enum err_code share_text_parse_expires(struct span text, int64_t *ret_seconds,
                                       struct err *err) MUST_USE;

#endif
