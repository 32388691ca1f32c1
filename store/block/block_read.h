/*
 * block_read: a block (store/block/block_format.h) opened for questions.
 *
 * Opening reads the end of the block: dictionary, series and the list of granules; the extents of a
 * granule are read and their checksums verified each time they are asked for, so a broken byte is
 * found by whoever would have used it and harms nobody else. ERR_CORRUPT names block and part.
 * A block may be opened for its series first, which is a tenth of the work and of the memory: then
 * it has no tables and no stacks, and of its extents only the profiles can be read.
 * Threads: an open block is shared by any number; a block_cursor belongs to one.
 */
#ifndef STORE_BLOCK_BLOCK_READ_H
#define STORE_BLOCK_BLOCK_READ_H

#include "store/block/block_format.h"
#include "store/block/block_write.h"
#include "store/block/dictionary.h"
#include "store/block/stack_hashes.h"

struct block;

/* Where a block's bytes are read from. */
struct block_source {
    /*
     * size bytes from offset on, borrowed until the next call with the same buf, which is room for
     * those that are not in memory anyway.
     */
    enum err_code (*read)(void *context, uint64_t offset, size_t size, struct buf *room,
                          struct span *ret_bytes, struct err *err);
    /* These are read soon, one after the other; may be NULL where there is nothing to wait for. */
    void (*read_ahead)(void *context, uint64_t offset, uint64_t size);
    void (*close)(void *context); /* may be NULL */
    void *context;
    uint64_t size;
    const char *name; /* for messages: the object and place; lives as long as the source */
};

/* Of bytes in memory, which outlive the block. */
struct block_source block_source_memory(const struct span *bytes, const char *name);

/*
 * Takes the source, which block_close closes (a failure does at once). tenant_id must be the
 * block's; seed is of its stacks' hashes (store/block/stack_hashes.h). Handles: ERR_CORRUPT (it is
 * no whole block of that tenant), what reading does.
 */
enum err_code block_open(struct block_source source, int64_t tenant_id, uint64_t seed,
                         struct block **ret_block, struct err *err) MUST_USE;
enum err_code block_open_series(struct block_source source, int64_t tenant_id, uint64_t seed,
                                struct block **ret_block, struct err *err) MUST_USE;
/*
 * The same block with its stacks, from one that was opened for its series: that lends it all else,
 * its granules and source included, and lives until release(context), which block_close calls (a
 * failure does at once). Handles: as block_open.
 */
enum err_code block_open_stacks(const struct block *series, void (*release)(void *context),
                                void *context, struct block **ret_block, struct err *err) MUST_USE;
void block_close(struct block *block); /* NULL is a no-op */

const struct dictionary *block_dictionary(const struct block *block);
const struct stack_hashes *block_hashes(const struct block *block);
const struct block_granule *block_granules(const struct block *block, uint32_t *ret_count);
/* What all granules of the series have together, as one granule with no extent but totals, which
 * takes their place where all of them are wanted; NULL: the block has none, as where they are few.
 */
const struct block_granule *block_series_totals(const struct block *block, uint32_t series);
const struct block_footer *block_footer(const struct block *block);
const char *block_name(const struct block *block);
/* What opening it has read of its source. */
uint64_t block_opening_bytes(const struct block *block);
/* Bytes of memory that the open block takes, its stacks' hashes included, which are made when they
 * are first asked for; not what is lent to it. */
size_t block_memory(const struct block *block);

/* Extents first to last of the granule are read soon: from a disk, many at once come faster than
 * each when it is its turn. */
void block_read_ahead(const struct block *block, const struct block_granule *granule,
                      enum block_extent first, enum block_extent last);

/* Room for what is read of granules, kept from one to the next. */
struct block_cursor;
struct block_cursor *block_cursor_create(void);
void block_cursor_destroy(struct block_cursor *cursor); /* NULL is a no-op */

/* Profiles of one granule; borrowed until the cursor's next call. */
enum err_code block_read_profiles(const struct block *block, const struct block_granule *granule,
                                  struct block_cursor *cursor,
                                  const struct block_profile **ret_profiles,
                                  struct err *err) MUST_USE;

/* Per entry: stack, how many rows, and the sum of their values. Borrowed as above. */
struct block_totals {
    const uint32_t *stacks;
    const uint32_t *counts;
    const int64_t *sums;
    uint32_t count;
};
enum err_code block_read_totals(const struct block *block, const struct block_granule *granule,
                                struct block_cursor *cursor, struct block_totals *ret_totals,
                                struct err *err) MUST_USE;

/* Adds the granule's totals to sums, one number per stack of the block. What is added up must stay
 * below 2^63: the granules' magnitudes tell. */
enum err_code block_add_totals(const struct block *block, const struct block_granule *granule,
                               struct block_cursor *cursor, int64_t *sums,
                               struct err *err) MUST_USE;

/* As block_add_totals, of the rows with first <= ordinal < end. */
enum err_code block_add_range(const struct block *block, const struct block_granule *granule,
                              struct block_cursor *cursor, uint32_t first, uint32_t end,
                              int64_t *sums, struct err *err) MUST_USE;

/* All rows of one granule, with their details where wants_details and there are any. Borrowed. */
enum err_code block_read_rows(const struct block *block, const struct block_granule *granule,
                              struct block_cursor *cursor, bool wants_details,
                              struct block_rows *ret_rows, struct err *err) MUST_USE;

/* Reads every byte and verifies all checksums and numbers. Handles: ERR_CORRUPT. */
enum err_code block_verify(const struct block *block, struct err *err) MUST_USE;
/* Likewise the totals of series: that they are what the granules add up to. Where they are not,
 * nothing that was sent is lost. */
enum err_code block_verify_series_totals(const struct block *block, struct err *err) MUST_USE;

#endif
