/*
 * secret: tokens and passwords that travel in header fields, checked before they are sent.
 *
 * A header field cannot hold control characters (RFC 9110, section 5.5): a server refuses such a
 * request, often without a reason that a person understands. Messages name the character and its
 * place, never the secret. Threads: any.
 */
#ifndef LIB_BASE_SECRET_H
#define LIB_BASE_SECRET_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* A token for "Authorization: Bearer …": visible ASCII characters only. source, for the message, is
 * where it was read: "PERFOLIO_TOKEN". Handles: ERR_INVALID. */
enum err_code secret_check_token(struct span token, const char *source, struct err *err) MUST_USE;

/* Any secret: all but control characters. Handles: ERR_INVALID. */
enum err_code secret_check(struct span secret, const char *source, struct err *err) MUST_USE;

#endif
