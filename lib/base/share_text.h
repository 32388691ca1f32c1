/*
 * share_text: what people write of a share, as the server takes it and a client can tell before it
 * has done the work that it is of. Threads: any.
 */
#ifndef LIB_BASE_SHARE_TEXT_H
#define LIB_BASE_SHARE_TEXT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { SHARE_TITLE_CHARACTERS = 200, SHARE_DESCRIPTION_CHARACTERS = 20000 };

/* UTF-8 of at most so many characters, without control characters but, where it may have more than
 * one line, breaks and tabs. Handles: ERR_INVALID (it names what it is of). */
enum err_code share_text_check(const char *name, struct span text, size_t max_characters,
                               bool is_one_line, struct err *err) MUST_USE;

/* never (0 seconds), or hours, days or weeks, 12h, 30d, 8w, from an hour to a hundred years.
 * Handles: ERR_INVALID. */
enum err_code share_text_parse_expires(struct span text, int64_t *ret_seconds,
                                       struct err *err) MUST_USE;

#endif
