/*
 * text_input: converts text as editors and shells write it to UTF-8: UTF-8 with a byte order mark,
 * and UTF-16 in either byte order (which PowerShell's ">" writes). Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_TEXT_INPUT_H
#define LIB_PROFILE_FORMATS_TEXT_INPUT_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

struct buf;

/*
 * *ret_text is bytes without a byte order mark or, for UTF-16 with a mark, the text converted into
 * storage (initialised and freed by the caller; needs at most 1.5 times the bytes). Without a mark
 * *ret_text is bytes, also if they are UTF-16. Errors: ERR_INVALID (an incomplete character),
 * ERR_TOO_LARGE (storage's maximum).
 */
enum err_code text_input_read(struct span bytes, struct buf *storage, struct span *ret_text,
                              struct err *err) MUST_USE;

/* Whether the first 4,096 bytes contain control characters that text does not have: all but white
 * space and escape. */
bool text_input_is_binary(struct span bytes);

#endif
