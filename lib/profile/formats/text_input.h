/*
 * text_input: UTF-8 text out of what editors and shells write: UTF-8 with a byte order mark, and
 * UTF-16 in either byte order (PowerShell's ">" writes that). Threads: any.
 */
#ifndef LIB_PROFILE_FORMATS_TEXT_INPUT_H
#define LIB_PROFILE_FORMATS_TEXT_INPUT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

/*
 * *ret_text is bytes without its byte order mark, or, for UTF-16 that has one, what was converted
 * into storage (initialised by the caller; needs at most 1.5 times the bytes). Without a mark bytes
 * are returned as they are. Handles: ERR_INVALID (half a character), ERR_TOO_LARGE (storage).
 */
enum err_code text_input_read(struct span bytes, struct buf *storage, struct span *ret_text,
                              struct err *err) MUST_USE;

/* Does it hold bytes that text does not: control characters other than white space and escape? */
bool text_input_is_binary(struct span bytes);

#endif
