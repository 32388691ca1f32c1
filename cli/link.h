/*
 * link: the links and ids that people paste: of a share or of a diff of two, on any server.
 *
 *   <id>                                          22 characters of 0-9A-Za-z
 *   https://host/p/<id>[.svg|/raw|?view|…]        a share's page and what is below it
 *   https://host/p/<id>/delete#<delete token>
 *   https://host/api/v1/shares/<id>[/…]
 *   <id>..<id>, https://host/d/<id>..<id>         a diff
 */
#ifndef CLI_LINK_H
#define CLI_LINK_H

#include <stdbool.h>

struct arena;

enum { LINK_ID_LENGTH = 22 };

struct link {
    bool is_diff;
    const char *base;         /* "https://host" without "/" at its end; NULL for a bare id */
    const char *a;            /* the share's id, or side a's */
    const char *b;            /* side b's; NULL unless a diff */
    const char *delete_token; /* NULL when the link has none */
};

/* False when text is neither link nor id. Texts live in arena. */
bool link_parse(const char *text, struct arena *arena, struct link *ret_link);
/* Does it start with http:// or https://? */
bool link_is_url(const char *text);
/* Same scheme, host, port and path prefix? localhost, 127.0.0.1 and [::1] are one host, since a
 * server names itself by one of them and is called by another. */
bool link_is_same_server(const char *base, const char *other_base);

#endif
