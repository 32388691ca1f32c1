/*
 * spool: the queue of batches between the agent and the uploader, as files in a folder, so that it
 * survives outages and restarts.
 *
 * A file is one batch: an ExportProfilesServiceRequest, zstd. Its name is the time at which it was
 * added and its batch id, TIME-ID.otlp.zst, so that names sort by age and `perfolio push --format
 * otlp` can send it too. A file is renamed into place when it is complete and deleted when the
 * batch was accepted. If the batches exceed the limit, the oldest are deleted and counted. Without
 * a limit (--offline-dir) all batches are kept and none is read; the user moves the files
 * elsewhere. Files with other names, or with a time in the next century, are ignored. One process
 * uses the folder at a time (flock(2)). Nothing is synced, because a batch every 10 s must not wake
 * a disk: SIGKILL and a restart lose no batch, a power failure may lose those of the last half
 * minute. Threads: any.
 */
#ifndef AGENT_UPLOAD_SPOOL_H
#define AGENT_UPLOAD_SPOOL_H

#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/err_code.h"

#include <stdint.h>

enum {
    SPOOL_NAME_BYTES = 64,
    SPOOL_BATCH_MAX_BYTES = 8 << 20, /* the server's limit */
};

#define SPOOL_NO_LIMIT UINT64_MAX

struct spool;

struct spool_counts {
    uint64_t bytes; /* of the queued batches; 0 without a limit, where they are not known */
    uint32_t batches;
    /* Since the spool was opened: */
    uint64_t put_batches;
    uint64_t put_bytes;
    /* Queued batches that were deleted for newer ones or could not be read. Batches that spool_put
     * refused are not included. */
    uint64_t dropped_batches;
};

/* Creates the folder with mode 0700 if it does not exist. Errors: ERR_CONFLICT (another process
 * uses it), ERR_IO. */
enum err_code spool_open(const char *folder, uint64_t max_bytes, struct spool **ret_spool,
                         struct err *err) MUST_USE;
void spool_close(struct spool *spool); /* NULL is a no-op */
/* Closes a spool that was never used: a folder that spool_open created, and that is empty, is
 * removed.
 */
void spool_abandon(struct spool *spool); /* NULL is a no-op */

/* Adds a batch under a new id. Errors: ERR_TOO_LARGE, ERR_IO. */
enum err_code spool_put(struct spool *spool, struct span batch, struct err *err) MUST_USE;

struct spool_batch {
    char name[SPOOL_NAME_BYTES];
    char id[DIGEST_ID_BYTES];
};

/* Reads the oldest batch into bytes; it stays in the spool until spool_remove. Errors:
 * ERR_NOT_FOUND (the spool is empty), ERR_IO (a later attempt may succeed), ERR_CORRUPT (the batch
 * is missing or damaged and is skipped; a damaged file stays until the next start). */
enum err_code spool_read(struct spool *spool, struct spool_batch *ret_batch, struct buf *bytes,
                         struct err *err) MUST_USE;
void spool_remove(struct spool *spool, const struct spool_batch *batch);

void spool_count(struct spool *spool, struct spool_counts *ret_counts);

#endif
