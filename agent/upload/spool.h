/*
 * spool: batches that wait to be sent, as files in a folder: the queue between the agent and the
 * sender, which so survives outages and restarts.
 *
 * Each file is one batch: an ExportProfilesServiceRequest, zstd; its name is the time when it was
 * put and its batch id, TIME-ID.otlp.zst, so that names sort by age and `perfolio push --format
 * otlp` can send it, too. A file appears whole (it is renamed into place) and goes when the batch
 * was taken. Where all are larger than the limit the oldest go, counted; without a limit all stay,
 * and none is read: that is for a folder that somebody else empties. Other files in the folder are
 * left alone, and so are names with a time of the next century. One process has the folder at a
 * time, by flock(2). Nothing is synced, as a batch every 10 s must not wake a disk: SIGKILL and a
 * restart lose none, a power cut may take those of the last half minute. Threads: any.
 */
#ifndef AGENT_UPLOAD_SPOOL_H
#define AGENT_UPLOAD_SPOOL_H

#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"

#include <stdint.h>

enum {
    SPOOL_NAME_BYTES = 64,
    SPOOL_BATCH_MAX_BYTES = 8 << 20, /* what the server takes at a time */
};

#define SPOOL_NO_LIMIT UINT64_MAX

struct spool;

struct spool_counts {
    uint64_t bytes; /* of those that wait; without a limit they are not known, and 0 */
    uint32_t batches;
    uint64_t put_batches; /* since it was opened, as are the following */
    uint64_t put_bytes;
    /* They were there, and made room for others or could not be read. What spool_put refused is not
     * among them: its caller knows. */
    uint64_t dropped_batches;
};

/* Makes the folder where it is not there, with mode 0700. Handles: ERR_CONFLICT (another process
 * has it), ERR_IO. */
enum err_code spool_open(const char *folder, uint64_t max_bytes, struct spool **ret_spool,
                         struct err *err) MUST_USE;
void spool_close(struct spool *spool); /* NULL is a no-op */
/* Closes it for whoever could not begin: a folder that was made for it, and is empty, goes again.
 */
void spool_abandon(struct spool *spool); /* NULL is a no-op */

/* Gives it an id of its own. Handles: ERR_TOO_LARGE, ERR_IO. */
enum err_code spool_put(struct spool *spool, struct span batch, struct err *err) MUST_USE;

struct spool_batch {
    char name[SPOOL_NAME_BYTES];
    char id[DIGEST_ID_BYTES];
};

/* The oldest, read into bytes, which stays in the spool until spool_remove. Handles: ERR_NOT_FOUND
 * (it is empty), ERR_IO (it may be read later), ERR_CORRUPT (it is gone or broken, and left out;
 * what there is of its file stays until the next start). */
enum err_code spool_read(struct spool *spool, struct spool_batch *ret_batch, struct buf *bytes,
                         struct err *err) MUST_USE;
void spool_remove(struct spool *spool, const struct spool_batch *batch);

void spool_count(struct spool *spool, struct spool_counts *ret_counts);

#endif
