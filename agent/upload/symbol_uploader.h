/*
 * symbol_uploader: sends symbol tables of sampled binaries to the server, on its own thread and
 * with a child process of low priority.
 *
 * The server is queried for each build id. If it has no names, perfolio-symbolize builds a table in
 * its sandbox, with bounded memory and CPU time, one at a time and small files first. Then
 * the server is queried again, because other hosts run the same binary, and the table is sent. Only
 * symbols leave the host, never code: if a table cannot be built within its bounds, the separate
 * debug file is sent if the settings allow it and it contains no code; otherwise the server can use
 * its debuginfod servers. Temporary failures are retried with doubling pauses. A server without
 * symbol tables is queried again after minutes, in the end once an hour, because a proxy may have
 * responded in its place.
 *
 * Threads: symbol_uploader_* belong to one thread, which is not the uploader's own.
 */
#ifndef AGENT_UPLOAD_SYMBOL_UPLOADER_H
#define AGENT_UPLOAD_SYMBOL_UPLOADER_H

#include "agent/upload/server_config.h"

#include <stdbool.h>
#include <stdint.h>

struct symbol_uploader;

enum symbol_policy {
    SYMBOL_POLICY_OFF,
    /* Tables of binaries for which the server has no names and cannot get any, or for which the
     * team's own table has no lines. */
    SYMBOL_POLICY_MISSING,
    /* Tables of all binaries for which the team has no table of its own, or one without lines or
     * from an older builder. */
    SYMBOL_POLICY_ALL,
};

struct symbol_uploader_options {
    const struct server_config *access; /* borrowed; outlives the uploader */
    enum symbol_policy policy;
    bool may_send_files;        /* send the separate debug file if its table exceeds the bounds */
    uint64_t memory_bytes;      /* limit of the child's address space */
    const char *work_folder;    /* for the temporary file of a table; used by the agent only */
    uint32_t pauses_divided_by; /* shortens all pauses in tests; 0: 1 */
};

struct symbol_uploader_counts {
    uint64_t queried; /* build ids that symbol_uploader_give accepted, in order to query them */
    uint64_t known;   /* the server had names */
    uint64_t sent_tables;
    uint64_t sent_files;
    uint64_t sent_bytes;
    uint64_t nameless; /* stripped, without a debug file */
    uint64_t failed;   /* failed builds, and refusals of the server */
    uint32_t waiting;
};

/* Errors: ERR_INVALID, ERR_NOT_FOUND, ERR_IO (the server's address, files). */
enum err_code symbol_uploader_start(const struct symbol_uploader_options *options,
                                    struct symbol_uploader **ret_uploader,
                                    struct err *err) MUST_USE;
/* Cancels the current work. NULL is a no-op. */
void symbol_uploader_stop(struct symbol_uploader *uploader);

enum symbol_want {
    SYMBOL_WANT_NEVER, /* it was offered before */
    SYMBOL_WANT_LATER, /* too many wait, or the server accepts none now */
    SYMBOL_WANT_NOW,
};
/* Whether the caller should open this binary and pass it to symbol_uploader_give. */
enum symbol_want symbol_uploader_wants(struct symbol_uploader *uploader, const char *build_id);
/* True once after binaries were dropped because the server accepted none: sampled binaries have to
 * be offered again. */
bool symbol_uploader_has_forgotten(struct symbol_uploader *uploader);
/* Takes both files over; debug_fd -1: there is none. If too many binaries wait, it closes them, and
 * the binary may be offered again. */
void symbol_uploader_give(struct symbol_uploader *uploader, const char *build_id, const char *path,
                          int fd, int debug_fd);
/* While it is paused, for lack of memory, nothing is built. */
void symbol_uploader_pause(struct symbol_uploader *uploader, bool is_paused);

void symbol_uploader_count(struct symbol_uploader *uploader,
                           struct symbol_uploader_counts *ret_counts);

#endif
