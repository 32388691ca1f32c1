/*
 * http_url: the parts of an http or https URL, read as http_client will read them: libcurl's
 * reader. Whoever decides by a URL's host must see the host that is asked in the end. Threads: any.
 */
#ifndef LIB_IO_HTTP_URL_H
#define LIB_IO_HTTP_URL_H

#include "lib/base/err.h"

#include <stdbool.h>

struct arena;

struct http_url {
    const char *text;   /* the whole, normalised, without a fragment */
    const char *scheme; /* "http" or "https" */
    const char *host;   /* lower case; IPv6 without brackets */
    const char *port;   /* always there: "443" */
    const char *path;   /* "/…" */
    bool has_query;
};

/* Parts live in arena. Handles: ERR_INVALID (no such URL, or one with user information). */
enum err_code http_url_read(struct arena *arena, const char *text, struct http_url *ret_url,
                            struct err *err) MUST_USE;
/* Where an answer's Location leads that came from base. Handles: ERR_INVALID. */
enum err_code http_url_follow(struct arena *arena, const struct http_url *base,
                              const char *location, struct http_url *ret_url,
                              struct err *err) MUST_USE;
/* Same scheme, host and port? */
bool http_url_same_origin(const struct http_url *a, const struct http_url *b);

#endif
