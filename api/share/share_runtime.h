/*
 * share_memory: what shares keep in memory between requests. One per server, made before it starts.
 *
 * Threads: any; each part guards itself.
 */
#ifndef API_SHARE_SHARE_RUNTIME_H
#define API_SHARE_SHARE_RUNTIME_H

#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/profile/profile.h"

#include <pthread.h>

struct memory_gate;
struct flight_cache;
struct server;
struct settings;
struct view_counter;

/* Finished answers (flame graphs and the like), compressed. */
enum { SHARE_RUNTIME_ANSWER_BYTES = 64 << 20 };

struct share_runtime {
    struct memory_gate *gate;
    struct view_counter *views;
    struct flight_cache *answers; /* of struct share_answer, by share id and parameters */

    pthread_mutex_t key_mutex;
    bool has_cookie_key;
    uint8_t cookie_key[DIGEST_BYTES];

    int64_t next_sweep_ns; /* monotonic; the jobs thread's */
};

/* max_heavy_bytes as in memory_gate_create. */
struct share_runtime *share_runtime_create(uint64_t max_heavy_bytes);
/* NULL is a no-op. Views not yet written down are lost: call share_jobs_write_views before. */
void share_runtime_destroy(struct share_runtime *memory);

/*
 * HMAC-SHA-256 of message under the server's durable key: for password cookies and for the delete
 * tokens of completed uploads. The key is kept once it has been read from the database. Handles:
 * ERR_DATABASE, ERR_BUSY.
 */
enum err_code share_runtime_sign(struct server *server, struct span message,
                                 uint8_t ret_signature[DIGEST_BYTES], struct err *err) MUST_USE;

/* Drops what is kept of a share that is deleted. */
void share_runtime_forget(struct server *server, const char *share_id);

/* What one profile may hold, by the settings and the memory there is for heavy ones. */
struct profile_limits share_runtime_limits(const struct settings *settings, uint64_t heavy_bytes);

/* One finished answer. */
struct share_answer {
    struct buf body;
    bool is_zstd;
    size_t plain_bytes;            /* before compression */
    _Atomic uint32_t reader_count; /* answers that are sending it, for api/http/job.c */
};

#endif
