/*
 * block_read: reads a block (store/block/block_format.h).
 *
 * Opening reads the end of the block: dictionary, series and the list of granules. The extents of a
 * granule are read, and their checksums verified, at each call, so a damaged byte affects only the
 * callers that need it. ERR_CORRUPT names block and part. A block may be opened for its series
 * first, which takes a tenth of the work and the memory: it then has no tables and no stacks, and
 * of its extents only the profiles can be read.
 *
 * Threads: an open block may be shared by any number of threads; a block_cursor belongs to one.
 */
#ifndef STORE_BLOCK_BLOCK_READ_H
#define STORE_BLOCK_BLOCK_READ_H

#include "store/block/block_format.h"
#include "store/block/block_write.h"
#include "store/block/dictionary.h"
#include "store/block/stack_hashes.h"

struct block;

/* Where the bytes of a block are read from. */
struct block_source {
    /* Reads size bytes at offset. They are borrowed until the next call with the same buffer,
     * which is used when the bytes are not in memory already. */
    enum err_code (*read)(void *context, uint64_t offset, size_t size, struct buf *buffer,
                          struct span *ret_bytes, struct err *err);
    /* Announces that a range is read soon. May be NULL where reading never waits. */
    void (*read_ahead)(void *context, uint64_t offset, uint64_t size);
    void (*close)(void *context); /* may be NULL */
    void *context;
    uint64_t size;
    const char *name;    /* for messages: object and offset; lives as long as the source */
    uint32_t footer_crc; /* of the block that must be there (struct block_summary); 0: any block */
};

/* A source of bytes in memory, which must outlive the block. */
struct block_source block_source_memory(const struct span *bytes, const char *name);

/*
 * Opens a block whole, or for its series. Takes ownership of the source, also on failure;
 * block_close closes it. tenant_id must be the block's; seed is the seed of its stacks' hashes
 * (store/block/stack_hashes.h). Errors: ERR_CORRUPT (it is not a complete block of that tenant),
 * what reading returns.
 */
enum err_code block_open(struct block_source source, int64_t tenant_id, uint64_t seed,
                         struct block **ret_block, struct err *err) MUST_USE;
enum err_code block_open_series(struct block_source source, int64_t tenant_id, uint64_t seed,
                                struct block **ret_block, struct err *err) MUST_USE;
/* Opens the stacks of a block that was opened for its series. The new block borrows everything else
 * from it, including granules and source; block_close calls release(context) when it no longer
 * needs it. A failure calls it at once. Errors: as block_open. */
enum err_code block_open_stacks(const struct block *series, void (*release)(void *context),
                                void *context, struct block **ret_block, struct err *err) MUST_USE;
void block_close(struct block *block); /* NULL is a no-op */

const struct dictionary *block_dictionary(const struct block *block);
const struct stack_hashes *block_hashes(const struct block *block);
const struct block_granule *block_granules(const struct block *block, uint32_t *ret_count);
/*
 * The series totals, in the form of a granule whose only extent is TOTALS. A caller that needs the
 * totals of all granules of the series reads it in place of them. NULL: the block has no totals for
 * this series, for example because the series has few granules.
 */
const struct block_granule *block_series_totals(const struct block *block, uint32_t series);
const struct block_footer *block_footer(const struct block *block);
const char *block_name(const struct block *block);
/* Bytes that opening has read. */
uint64_t block_opening_bytes(const struct block *block);
/* Bytes of memory that the open block takes, without what it borrows. Includes the hashes of its
 * stacks, which are computed at first use. */
size_t block_memory(const struct block *block);
/* The memory that a cursor takes to read the rows of a granule, or with wants_rows false its
 * profiles: known before they are read. */
size_t block_granule_memory(const struct block_granule *granule, bool wants_rows);

/* Announces that the extents first to last are read soon: from a disk, many requests at once are
 * faster than one after the other. */
void block_read_ahead(const struct block *block, const struct block_granule *granule,
                      enum block_extent first, enum block_extent last);

/* Buffers for what is read of granules, reused from one to the next. */
struct block_cursor;
struct block_cursor *block_cursor_create(void);
void block_cursor_destroy(struct block_cursor *cursor); /* NULL is a no-op */

/* Reads the profiles of one granule; borrowed until the cursor's next call. */
enum err_code block_read_profiles(const struct block *block, const struct block_granule *granule,
                                  struct block_cursor *cursor,
                                  const struct block_profile **ret_profiles,
                                  struct err *err) MUST_USE;

/* Per entry: the stack, the number of its rows and their sum. Borrowed as above. */
struct block_totals {
    const uint32_t *stacks;
    const uint32_t *counts;
    const int64_t *sums;
    uint32_t count;
};
enum err_code block_read_totals(const struct block *block, const struct block_granule *granule,
                                struct block_cursor *cursor, struct block_totals *ret_totals,
                                struct err *err) MUST_USE;

/* Adds the granule's totals to sums, one number per stack of the block. The caller ensures by the
 * granules' magnitudes that sums stay below 2^63. */
enum err_code block_add_totals(const struct block *block, const struct block_granule *granule,
                               struct block_cursor *cursor, int64_t *sums,
                               struct err *err) MUST_USE;

/* As block_add_totals, of the rows with first <= ordinal < end. */
enum err_code block_add_range(const struct block *block, const struct block_granule *granule,
                              struct block_cursor *cursor, uint32_t first, uint32_t end,
                              int64_t *sums, struct err *err) MUST_USE;

/* Reads all rows of one granule, with their details where wants_details and the granule has any.
 * Borrowed as above. */
enum err_code block_read_rows(const struct block *block, const struct block_granule *granule,
                              struct block_cursor *cursor, bool wants_details,
                              struct block_rows *ret_rows, struct err *err) MUST_USE;

/* Reads every byte and verifies all checksums and numbers. Errors: ERR_CORRUPT. */
enum err_code block_verify(const struct block *block, struct err *err) MUST_USE;
/* Verifies that the series totals are the sums of the granules. Where they are not, no uploaded
 * data is lost. */
enum err_code block_verify_series_totals(const struct block *block, struct err *err) MUST_USE;

#endif
