/*
 * request_smuggling: refuses HTTP/1 heads that libh2o 2.2.5 accepts and that two programs may read
 * differently (request smuggling): see RFC 9112 §2.2, §3.2, §5.2 and §6.3.
 *
 * Refused: lines that end in a bare LF, continued lines, no Host or two in HTTP/1.1, more than one
 * Content-Length, Transfer-Encoding beside it or other than "chunked", NUL or control characters in
 * the target, versions other than 1.0 and 1.1.
 */
#ifndef API_SERVER_REQUEST_SMUGGLING_H
#define API_SERVER_REQUEST_SMUGGLING_H

#include "lib/base/buf.h"

/* bytes begin with the head and may continue after it. NULL if it is well formed, otherwise a
 * sentence that states what is wrong. */
const char *request_smuggling_check(struct span bytes);

#endif
