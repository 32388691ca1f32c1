/*
 * block_cache: caches open blocks.
 *
 * Blocks of segments are read whole and stay in memory. The bytes of those that this server wrote
 * are added when they are committed, so that the newest profiles are never read back, and opened at
 * first use. Larger blocks are not read whole: their dictionary is cached, and extents are read on
 * demand. A block is opened for its series, and again with its stacks if a query needs them. The
 * two forms have separate shares of the memory, since stacks take most of it: so the stacks of
 * other queries never evict a block that is open for its series. Single flight: concurrent callers
 * open a block once. Threads: any. Private to store/.
 */
#ifndef STORE_QUERY_BLOCK_CACHE_H
#define STORE_QUERY_BLOCK_CACHE_H

#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "store/block/block_read.h"
#include "store/catalogue/catalogue.h"

struct object_store;
struct block_cache;
struct wait_limit;

/* max_bytes 0 means 256 MiB. At most a quarter of it holds bytes of blocks that were just written,
 * an eighth blocks that are open for their series; the rest is for stacks. */
struct block_cache *block_cache_create(struct object_store *objects, size_t max_bytes);
/* For an object store whose open makes copies on the disk: those of the blocks that no query uses
 * take at most copy_bytes. Call it before the first block is opened. */
void block_cache_limit_copies(struct block_cache *blocks, uint64_t copy_bytes);
/* Evicts a block of a whole object (not a part of a segment) that no query uses, to free its copy
 * on the disk: the least recently used one that is open for its series only, else the least
 * recently used one with stacks. The copy of a block that is open in both ways is deleted by two
 * calls. false: there is none. */
bool block_cache_evict(struct block_cache *blocks);
void block_cache_destroy(struct block_cache *blocks); /* NULL is a no-op */

/*
 * Opens the block at place for its series, or returns the cached one. The caller returns *ret_entry
 * with flight_cache_unref and reads it with block_cache_get. wait_limit (NULL: none) limits this
 * caller only: if a caller gives up, another one that waits opens the block. Errors: ERR_NOT_FOUND
 * (the object is gone: the catalogue has changed meanwhile), ERR_CORRUPT, ERR_IO with is_unreadable
 * (store/catalogue/reachability.h), ERR_CANCELLED (wait_limit).
 */
enum err_code block_cache_ref(struct block_cache *blocks, int64_t tenant_id,
                              const struct catalogue_place *place,
                              const struct wait_limit *wait_limit, struct flight_entry **ret_entry,
                              struct err *err) MUST_USE;
/* The same with its stacks, for a block that is open for its series. */
enum err_code block_cache_ref_stacks(struct block_cache *blocks, int64_t tenant_id,
                                     const struct catalogue_place *place,
                                     const struct wait_limit *wait_limit,
                                     struct flight_entry **ret_entry, struct err *err) MUST_USE;
struct block *block_cache_get(const struct flight_entry *entry);

/* The parts to open. BLOCK_CACHE_HASHES: with stacks, and their hashes are computed if the block
 * was not open. */
enum block_cache_part { BLOCK_CACHE_SERIES, BLOCK_CACHE_STACKS, BLOCK_CACHE_HASHES };

/* The outcome for one of several places, as of block_cache_ref or block_cache_ref_stacks. */
struct block_cache_outcome {
    struct flight_entry *entry; /* where code is ERR_NONE: the caller returns it */
    enum err_code code;
    struct err err;
};
/* Opens several blocks in parallel (lib/base/parallel.h). Writes one outcome per place. */
void block_cache_ref_several(struct block_cache *blocks, int64_t tenant_id,
                             const struct catalogue_place *const *places, size_t count,
                             enum block_cache_part part, const struct wait_limit *wait_limit,
                             struct block_cache_outcome *outcomes);

/* A block with its stacks for background work, which reads it once: it is opened if it is
 * not cached, and is not added to the cache. */
struct open_block {
    struct block *block;
    struct flight_entry *entry; /* NULL: the block is not cached */
};
/* The caller returns it with block_cache_return. Errors: as block_cache_ref. */
enum err_code block_cache_borrow(struct block_cache *blocks, int64_t tenant_id,
                                 const struct catalogue_place *place, struct open_block *ret_opened,
                                 struct err *err) MUST_USE;
void block_cache_return(struct open_block *opened);

/* Adds the bytes of a block that was just written, and takes their ownership. */
void block_cache_keep(struct block_cache *blocks, int64_t tenant_id, const char *object_key,
                      uint64_t offset, struct buf *bytes);
/* Removes a block that was replaced or cannot be read. Callers that hold it may go on; later
 * callers open the object again. */
void block_cache_remove(struct block_cache *blocks, int64_t tenant_id,
                        const struct catalogue_place *place);

struct object_store *block_cache_objects(const struct block_cache *blocks);
size_t block_cache_bytes(struct block_cache *blocks);

#endif
