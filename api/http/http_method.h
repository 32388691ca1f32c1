/*
 * http_method: the HTTP methods that routes have. Threads: any.
 */
#ifndef API_HTTP_HTTP_METHOD_H
#define API_HTTP_HTTP_METHOD_H

#include "lib/base/buf.h"

#include <stdbool.h>

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_OPTIONS
};

/* "GET"; a literal. */
const char *http_method_name(enum http_method method);
/* False for methods that no route has. */
bool http_method_parse(struct span name, enum http_method *ret_method);

#endif
