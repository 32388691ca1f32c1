/*
 * debuginfo_builder: builds the symbol tables of a debug file: first one with names only, within
 * milliseconds, then the complete one.
 *
 * A large file is read twice, each time by a perfolio-symbolize process of its own: first only for
 * its ELF symbols, so that users do not see addresses while its debug information is read, and then
 * completely. For api/debuginfo/debuginfo_build.c and api/debuginfo/debuginfo_fetch.c. Threads:
 * any; each call waits.
 */
#ifndef API_DEBUGINFO_DEBUGINFO_BUILDER_H
#define API_DEBUGINFO_DEBUGINFO_BUILDER_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>

struct wait_limit;
struct server;
struct symbol_builder_report;

/* Smaller files are read only once, completely, because that takes no longer than reading their
 * symbols only. */
enum { DEBUGINFO_FIRST_NAMES_MIN_BYTES = 2 << 20 };

struct debuginfo_built {
    struct span bytes;   /* borrowed for the call */
    const char *problem; /* what was left out; may be "" */
    bool is_first_names; /* another table follows, and replaces this one if it is better */
};

/* Receives a table that was built, and stores it. context is that of struct debuginfo_reader. */
typedef enum err_code debuginfo_publish(void *context, const struct debuginfo_built *table,
                                        struct err *err);

/* Opens the shared file of dwz with this build id (hexadecimal). *ret_fd, which the caller closes,
 * is -1 if the file is not available. */
typedef enum err_code debuginfo_find_shared(void *context, const char *build_id, int *ret_fd,
                                            struct err *err);

/* Called several times a second while other builders have all of the memory. If it returns false,
 * debuginfo_builder_run ends with ERR_CANCELLED. */
typedef bool debuginfo_may_wait(void *context);

struct debuginfo_reader {
    debuginfo_publish *publish;
    debuginfo_find_shared *find_shared; /* NULL: shared files are not available */
    debuginfo_may_wait *may_wait;       /* NULL: only wait_limit ends a wait */
    void *context;                      /* for all functions */
};

/*
 * Reads the file at input and passes each table to publish. A file that refers to dwz's shared file
 * is read again with it; the table made without it is published if the shared file is not
 * available. It is not an error if the table of names only cannot be made or published: the
 * complete table, or the reason why there is none, suffices. *ret_report is the report of
 * symbol_builder_run about the complete table; it contains the id also if the file has no symbols.
 * Each process waits until the others leave enough memory, in order of arrival (builder_queue.h).
 * Errors: those of symbol_builder_run and find_shared, and those of publish for the complete
 * table.
 */
enum err_code debuginfo_builder_run(struct server *server, int input,
                                    const struct wait_limit *wait_limit,
                                    const struct debuginfo_reader *reader,
                                    struct symbol_builder_report *ret_report,
                                    struct err *err) MUST_USE;

#endif
