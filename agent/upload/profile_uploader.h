/*
 * sender: sends what is in the spool to the server, oldest first, on a thread of its own.
 *
 * OTLP over HTTPS: POST of /v1development/profiles, zstd, with the token and the batch's id, so
 * that a batch whose answer was lost counts once when it is sent again. What may pass (no
 * connection, 429, 5xx) is tried again with doubling, jittered pauses of at most a minute, or as
 * Retry-After says; so is what a person may mend (401, 403, an unreadable token file), and a 200
 * that no server of OTLP has given (a login page's). What the server will never take (other 4xx) is
 * dropped and counted. The token file is read for every batch, so that it may be replaced.
 */
#ifndef AGENT_UPLOAD_PROFILE_UPLOADER_H
#define AGENT_UPLOAD_PROFILE_UPLOADER_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct profile_uploader;
struct server_config;
struct spool;

struct profile_uploader_counts {
    uint64_t sent_batches;
    uint64_t sent_bytes;
    uint64_t failed_tries;
    uint64_t refused_batches;  /* dropped: the server will not have them */
    uint64_t refused_profiles; /* of batches that were taken in part */
};

/* Starts the thread. Handles: ERR_INVALID (the server's address), ERR_NOT_FOUND, ERR_IO (files). */
enum err_code profile_uploader_start(const struct server_config *access, struct spool *spool,
                                     struct profile_uploader **ret_sender,
                                     struct err *err) MUST_USE;
/* There is something new in the spool. */
void profile_uploader_wake(struct profile_uploader *uploader);
/* Gives it up to that long to empty the spool, then ends the thread. NULL is a no-op. */
void profile_uploader_stop(struct profile_uploader *uploader, int64_t patience_ms);
void profile_uploader_count(struct profile_uploader *uploader,
                            struct profile_uploader_counts *ret_counts);

#endif
