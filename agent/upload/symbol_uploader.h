/*
 * symbol_sender: gives the server names: symbol tables of the binaries that were sampled, on a
 * thread of its own and in a child of low priority.
 *
 * Of each build id the server is asked first. What it has no names of is built by
 * perfolio-symbolize, in its sandbox, with bounded memory and processor time, one at a time and
 * small files first; then it is asked again, since other hosts run the same binary, and the table
 * is sent. Only symbols leave the host, never code: where a table cannot be built within its
 * bounds, the separate debug file goes itself if the settings allow it and it holds no code, else
 * the server has its debuginfod servers. What fails for a reason that may pass waits, with doubling
 * pauses; a server that knows nothing of symbol tables is asked again, too, after minutes and in
 * the end once an hour, since a proxy may have answered in its place.
 *
 * Threads: symbol_sender_* belong to one, which is not the sender's own.
 */
#ifndef AGENT_UPLOAD_SYMBOL_UPLOADER_H
#define AGENT_UPLOAD_SYMBOL_UPLOADER_H

#include "agent/upload/server_config.h"

#include <stdbool.h>
#include <stdint.h>

struct symbol_uploader;

enum symbol_policy {
    SYMBOL_POLICY_OFF,
    SYMBOL_POLICY_MISSING, /* what the server has no names of, and cannot get from elsewhere */
    SYMBOL_POLICY_ALL,     /* also where ours is better than the team's own, or it has none */
};

struct symbol_uploader_options {
    const struct server_config *access; /* borrowed, as long as the sender lives */
    enum symbol_policy policy;
    bool may_send_files;        /* debug files above the bounds of a table */
    uint64_t memory_bytes;      /* of the child's address space */
    const char *work_folder;    /* where tables are put while they wait; of the agent alone */
    uint32_t pauses_divided_by; /* 0: not; for tests */
};

struct symbol_uploader_counts {
    uint64_t asked; /* build ids */
    uint64_t known; /* the server had names */
    uint64_t sent_tables;
    uint64_t sent_files;
    uint64_t sent_bytes;
    uint64_t nameless; /* stripped, without a debug file */
    uint64_t failed;   /* builds, and what the server refused */
    uint32_t waiting;
};

/* Handles: ERR_INVALID, ERR_NOT_FOUND, ERR_IO (the server's address, files). */
enum err_code symbol_uploader_start(const struct symbol_uploader_options *options,
                                    struct symbol_uploader **ret_sender, struct err *err) MUST_USE;
/* Gives up what is under way. NULL is a no-op. */
void symbol_uploader_stop(struct symbol_uploader *uploader);

enum symbol_want {
    SYMBOL_WANT_NEVER, /* it was given before */
    SYMBOL_WANT_LATER, /* too many wait, or the server takes none now */
    SYMBOL_WANT_NOW,
};
enum symbol_want symbol_uploader_wants(struct symbol_uploader *uploader, const char *build_id);
/* True once after what was given and not sent has been given up, since the server took none: what
 * is sampled is to be given again. */
bool symbol_uploader_has_forgotten(struct symbol_uploader *uploader);
/* Both files become the sender's, debug_fd where it is not -1. */
void symbol_uploader_give(struct symbol_uploader *uploader, const char *build_id, const char *path,
                          int fd, int debug_fd);
/* While there is too little memory nothing is built. */
void symbol_uploader_pause(struct symbol_uploader *uploader, bool is_paused);

void symbol_uploader_count(struct symbol_uploader *uploader,
                           struct symbol_uploader_counts *ret_counts);

#endif
