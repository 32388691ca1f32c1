/*
 * link: parses links and ids of a share, or of a diff of two shares, on any server.
 *
 *   <id>                                          22 characters of 0-9A-Za-z
 *   https://host/p/<id>[.svg|/raw|?view|…]        the page of a share, its pictures and files
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
    const char *a;            /* the id of the share, or of side a of the diff */
    const char *b;            /* the id of side b; NULL unless a diff */
    const char *delete_token; /* NULL: the link has none */
};

/* False if text is neither a link nor an id. Texts are in arena. */
bool link_parse(const char *text, struct arena *arena, struct link *ret_link);
/* Whether text starts with http:// or https://. */
bool link_is_url(const char *text);

#endif
