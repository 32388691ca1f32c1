/*
 * secret: checks tokens and passwords before they are sent in header fields.
 *
 * A header field cannot contain control characters (RFC 9110, section 5.5): a server rejects such a
 * request, often without an understandable reason. Messages name the character and its position,
 * never the secret. Threads: any.
 */
#ifndef LIB_INPUT_SECRET_H
#define LIB_INPUT_SECRET_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

/* Checks a token for "Authorization: Bearer …": visible ASCII characters only. source is the
 * origin of the token for the message, such as "PERFOLIO_TOKEN". Errors: ERR_INVALID. */
enum err_code secret_check_token(struct span token, const char *source, struct err *err) MUST_USE;

/* Checks any secret: all characters but control characters are allowed. source is as above. Errors:
 * ERR_INVALID. */
enum err_code secret_check(struct span secret, const char *source, struct err *err) MUST_USE;

#endif
