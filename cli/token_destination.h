/*
 * token_destination: decides to which server a token may be sent: only to the account's own, and
 * only encrypted.
 */
#ifndef CLI_TOKEN_DESTINATION_H
#define CLI_TOKEN_DESTINATION_H

#include <stdbool.h>

/* Whether a secret may be sent to the server at url: by https, or by http to this machine. */
bool token_destination_is_confidential(const char *url);
/* Whether both are the same server: scheme, host, port and path prefix are equal. localhost,
 * 127.0.0.1 and [::1] are one host, because a server may use one of them in its links and the user
 * another one. */
bool token_destination_is_same(const char *base, const char *other_base);

#endif
