/*
 * ingest_parts: what api/ingest keeps in memory between requests: a part of struct server
 * (api/core/server.h). Threads: any; each member has its own lock.
 */
#ifndef API_INGEST_INGEST_PARTS_H
#define API_INGEST_INGEST_PARTS_H

struct ingest_counts;
struct sources;

struct ingest_parts {
    struct ingest_counts *counts; /* api/ingest/ingest_counts.h: what tenants have sent lately */
    struct sources *sources;      /* api/ingest/sources.h: services and agents that send */
};

struct ingest_parts *ingest_parts_create(void);
void ingest_parts_destroy(struct ingest_parts *parts); /* NULL is a no-op */

#endif
