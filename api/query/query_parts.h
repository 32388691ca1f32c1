/*
 * query_parts: what api/query keeps in memory between requests: a part of struct server
 * (api/core/server.h). Threads: any; each member has its own lock.
 */
#ifndef API_QUERY_QUERY_PARTS_H
#define API_QUERY_QUERY_PARTS_H

struct disk;
struct export_space;
struct report_cache;
struct settings;

struct query_parts {
    struct report_cache *report_cache; /* api/query/report_cache.h: finished reports */
    struct export_space *exports;      /* api/query/export_space.h: disk space of exports */
};

struct query_parts *query_parts_create(const struct settings *settings, struct disk *disk);
void query_parts_destroy(struct query_parts *parts); /* NULL is a no-op */

#endif
