/*
 * debuginfo_parts: the symbol tables of the server and the work on them: a part of struct server
 * (api/core/server.h). Threads: any; each member has its own lock.
 */
#ifndef API_DEBUGINFO_DEBUGINFO_PARTS_H
#define API_DEBUGINFO_DEBUGINFO_PARTS_H

#include "lib/base/err_code.h"

struct debuginfo_jobs;
struct debuginfod_client;
struct missing_symbols;
struct public_tables;
struct settings;
struct symbol_tables;

struct debuginfo_parts {
    struct symbol_tables *symbol_tables;     /* api/debuginfo/symbol_tables.h: open tables */
    struct missing_symbols *missing_symbols; /* api/debuginfo/missing_symbols.h */
    struct public_tables *public_tables; /* api/debuginfo/public_tables.h: when they were used */
    struct debuginfod_client *client;    /* api/debuginfo/debuginfo_upstreams.h; NULL: disabled */
    struct debuginfo_jobs *jobs; /* api/debuginfo/debuginfo_jobs.h: builds tables; NULL until
                                    server_run has started it */
};

/* Errors: those of debuginfo_upstreams_open. */
enum err_code debuginfo_parts_create(const struct settings *settings,
                                     struct debuginfo_parts **ret_parts, struct err *err) MUST_USE;
void debuginfo_parts_destroy(struct debuginfo_parts *parts); /* NULL is a no-op */

#endif
