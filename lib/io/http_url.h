/*
 * http_url: splits an http or https URL with libcurl's parser, as http_client does. A check of a
 * URL's host must see the host that the request goes to. Threads: any.
 */
#ifndef LIB_IO_HTTP_URL_H
#define LIB_IO_HTTP_URL_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct arena;

struct http_url {
    const char *text;   /* the whole URL, normalised, without a fragment */
    const char *scheme; /* "http" or "https" */
    const char *host;   /* lower case; IPv6 without brackets */
    const char *port;   /* always present: "443" */
    const char *path;   /* "/…" */
    bool has_query;
};

/* The parts are in arena. Errors: ERR_INVALID (not such a URL, or with user information). */
enum err_code http_url_read(struct arena *arena, const char *text, struct http_url *ret_url,
                            struct err *err) MUST_USE;
/* Resolves the Location of a response from base. Errors: ERR_INVALID. */
enum err_code http_url_follow(struct arena *arena, const struct http_url *base,
                              const char *location, struct http_url *ret_url,
                              struct err *err) MUST_USE;
/* Whether scheme, host and port are equal. */
bool http_url_same_origin(const struct http_url *a, const struct http_url *b);

#endif
