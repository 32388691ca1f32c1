/*
 * profile_uploader: sends the batches of the spool to the server, oldest first, on its own thread.
 *
 * OTLP over HTTPS: POST /v1development/profiles, zstd, with the token and the batch id, so that a
 * batch whose response was lost counts once when it is sent again. Temporary failures (no
 * connection, a redirect, 408, 429, 5xx; also 404, which a proxy may send while its server is
 * replaced) are retried with doubling, jittered pauses of at most a minute, or after Retry-After.
 * So are failures that a person can repair (401, 403, an unreadable token file), and a 200 that is
 * no OTLP response (such as a login page). Batches that the server refuses for good (other 4xx) are
 * dropped and counted. The token file is read for every batch, so it may be replaced.
 */
#ifndef AGENT_UPLOAD_PROFILE_UPLOADER_H
#define AGENT_UPLOAD_PROFILE_UPLOADER_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct profile_uploader;
struct server_config;
struct spool;

struct profile_uploader_counts {
    uint64_t sent_batches;
    uint64_t sent_bytes;
    uint64_t failed_tries;
    uint64_t refused_batches;  /* dropped because the server refused them */
    uint64_t refused_profiles; /* in batches that the server accepted in part */
};

/* Starts the thread. The texts of access, and spool, are borrowed until profile_uploader_stop.
 * Errors: ERR_INVALID (the server's address), ERR_NOT_FOUND, ERR_IO (files). */
enum err_code profile_uploader_start(const struct server_config *access, struct spool *spool,
                                     struct profile_uploader **ret_uploader,
                                     struct err *err) MUST_USE;
/* The spool has a new batch. */
void profile_uploader_wake(struct profile_uploader *uploader);
/* Ends the thread when the spool is empty or timeout_ms have passed. NULL is a no-op. */
void profile_uploader_stop(struct profile_uploader *uploader, int64_t timeout_ms);
void profile_uploader_count(struct profile_uploader *uploader,
                            struct profile_uploader_counts *ret_counts);

#endif
