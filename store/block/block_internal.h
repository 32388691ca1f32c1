/*
 * block_internal: an open block. block_open.c opens it and block_read.c reads its granules.
 *
 * Threads: as block_read.h.
 */
#ifndef STORE_BLOCK_BLOCK_INTERNAL_H
#define STORE_BLOCK_BLOCK_INTERNAL_H

#include "store/block/block_read.h"

struct late_hashes;

struct block {
    struct block_source source;
    /* block_close calls release(lender), which returns the block that lends source and granules.
     * NULL: the block owns them. */
    void (*release)(void *context);
    void *lender;
    struct arena *arena;
    struct block_footer footer;
    struct dictionary dictionary;
    struct late_hashes *hashes;
    const struct block_granule *granules; /* series totals follow the others */
    uint64_t opening_bytes;
};

/* Reads a part into buffer, or borrows it from a source in memory. Errors: ERR_CORRUPT (it lies
 * beyond the end), what the source returns. */
enum err_code block_read_part(const struct block *block, uint64_t offset, uint64_t size,
                              struct buf *buffer, struct span *ret_bytes, struct err *err) MUST_USE;
/* Announces that the part is read soon. */
void block_announce_part(const struct block *block, uint64_t offset, uint64_t size);

#endif
