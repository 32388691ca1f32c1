/*
 * query_title: the default title of a share that is made from a query: "CPU time, payments, 26 Nov
 * 2026, 18:34–19:34 UTC", so that several shares of one query can be distinguished. Threads: any.
 */
#ifndef API_QUERY_QUERY_TITLE_H
#define API_QUERY_QUERY_TITLE_H

#include "lib/base/buf.h"
#include "lib/base/mem.h"

struct arena;

/* type: a profile type's complete name. selector: the query. Times in ns since 1970; the end is
 * exclusive. The result is allocated in arena and is a valid title (share_text_check of
 * lib/input/share_text.h): at most SHARE_TITLE_CHARACTERS, no control characters. */
const char *query_title(struct arena *arena, struct span type, struct span selector,
                        int64_t start_ns, int64_t end_ns);

#endif
