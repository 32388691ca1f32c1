/*
 * debuginfo_builder: a debug file becomes symbol tables: names within milliseconds, and then all.
 *
 * A large file is read twice, each time by a perfolio-symbolize of its own: first for what its
 * symbols name, so that people do not look at numbers while its debug information is read, and then
 * whole. For api/debuginfo/build_job.c and api/debuginfo/fetch_job.c. Threads: any; each call
 * waits.
 */
#ifndef API_DEBUGINFO_BUILDER_PROCESS_H
#define API_DEBUGINFO_BUILDER_PROCESS_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>

struct wait_limit;
struct server;
struct symbol_builder_report;

/* A smaller file is read whole in the time that its symbols alone would take. */
enum { DEBUGINFO_FIRST_NAMES_MIN_BYTES = 2 << 20 };

struct debuginfo_built {
    struct span bytes;   /* borrowed for the call */
    const char *problem; /* what was left out; may be "" */
    bool is_first_names; /* another follows, and takes its place where it is better */
};

typedef enum err_code debuginfo_publish(void *context, const struct debuginfo_built *table,
                                        struct err *err);

/* dwz's shared file by its build id in hexadecimal: *ret_fd, which the caller closes, or -1: it
 * cannot be had. */
typedef enum err_code debuginfo_find_shared(void *context, const char *build_id, int *ret_fd,
                                            struct err *err);

struct debuginfo_reader {
    debuginfo_publish *publish;
    debuginfo_find_shared *find_shared; /* NULL: nobody knows where to look */
    void *context;                      /* of both */
};

/*
 * Reads the file at input and gives each table to publish. What refers to dwz's shared file is read
 * again with it; the table that was made without it is published where it cannot be had. First
 * names that cannot be had or published are no error: the whole table, or why there is none, says
 * all. *ret_report is the whole table's, as of symbol_builder_run: a file that has none tells its
 * id. Handles: what symbol_builder_run does, and what find_shared, and publish for the whole table,
 * give.
 */
enum err_code debuginfo_builder_run(struct server *server, int input,
                                    const struct wait_limit *wait_limit,
                                    const struct debuginfo_reader *reader,
                                    struct symbol_builder_report *ret_report,
                                    struct err *err) MUST_USE;

#endif
