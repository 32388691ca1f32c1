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
 * storage (initialised by the caller; needs at most 1.5 times the bytes). Without a mark bytes are
 * returned unchanged. Errors: ERR_INVALID (an incomplete character), ERR_TOO_LARGE (storage).
 */
enum err_code text_input_read(struct span bytes, struct buf *storage, struct span *ret_text,
                              struct err *err) MUST_USE;

/* Whether bytes contain control characters other than white space and escape, which text does
 * not have. */
bool text_input_is_binary(struct span bytes);

#endif
