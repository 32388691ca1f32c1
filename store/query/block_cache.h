/*
 * open_blocks: blocks opened from objects, kept while there is room.
 *
 * Blocks of segments are read whole and stay in memory; the bytes of those that this server wrote
 * itself are put here when they are committed, so that the newest profiles are never read back, and
 * opened when somebody asks for them or merges them. Of larger blocks the dictionary is kept and
 * extents are read when asked for. Blocks are opened for their series, and again with their stacks
 * where those are asked for: as most of the memory is theirs, what a question needs of series is
 * there however many stacks others ask for. Single flight: many who ask for one block open it once.
 * Threads: any. Private to the room.
 */
#ifndef STORE_QUERY_BLOCK_CACHE_H
#define STORE_QUERY_BLOCK_CACHE_H

#include "lib/base/flight_cache.h"
#include "store/block/block_read.h"
#include "store/catalogue/catalogue.h"

struct object_store;
struct block_cache;
struct wait_limit;

/* max_bytes: of memory; 0: 256 MiB. At most a quarter is of bytes of blocks that were just
 * written, an eighth of blocks that are open for their series; the rest is for stacks. */
struct block_cache *block_cache_create(struct object_store *objects, size_t max_bytes);
void block_cache_destroy(struct block_cache *blocks); /* NULL is a no-op */

/*
 * The block at place, opened for its series; the caller gives *ret_entry back with
 * flight_cache_unref and reads it with block_cache_get. patience, NULL without end, is of the
 * caller alone: who waits for a block that another gave up opens it. Handles: ERR_NOT_FOUND (the
 * object is gone: the catalogue has changed meanwhile), ERR_CORRUPT, ERR_IO with is_unreadable
 * (store/catalogue/reachability.h), ERR_CANCELLED (the patience is over).
 */
enum err_code block_cache_ref(struct block_cache *blocks, int64_t tenant_id,
                              const struct catalogue_place *place,
                              const struct wait_limit *wait_limit, struct flight_entry **ret_entry,
                              struct err *err) MUST_USE;
/* The same block with its stacks, of one that is open for its series. */
enum err_code block_cache_ref_stacks(struct block_cache *blocks, int64_t tenant_id,
                                     const struct catalogue_place *place,
                                     const struct wait_limit *wait_limit,
                                     struct flight_entry **ret_entry, struct err *err) MUST_USE;
struct block *block_cache_get(const struct flight_entry *entry);

/* BLOCK_CACHE_HASHES: with stacks, whose hashes are made where the block was not open. */
enum block_cache_part { BLOCK_CACHE_SERIES, BLOCK_CACHE_STACKS, BLOCK_CACHE_HASHES };

/* What became of one of several places, as of block_cache_ref or block_cache_ref_stacks. */
struct block_cache_outcome {
    struct flight_entry *entry; /* where code is ERR_NONE: the caller gives it back */
    enum err_code code;
    struct err err;
};
/* Several at once, on as many threads as there are for it (lib/base/parallel.h). One outcome is
 * written per place. */
void block_cache_ref_several(struct block_cache *blocks, int64_t tenant_id,
                             const struct catalogue_place *const *places, size_t count,
                             enum block_cache_part part, const struct wait_limit *wait_limit,
                             struct block_cache_outcome *outcomes);

/* A block with its stacks for who reads it once and no more, as merging does: opened, if it is not
 * open already, and not kept open. */
struct open_block {
    struct block *block;
    struct flight_entry *entry; /* NULL: it is nobody else's */
};
/* The caller gives it back with block_cache_return. Handles: what block_cache_ref does. */
enum err_code block_cache_borrow(struct block_cache *blocks, int64_t tenant_id,
                                 const struct catalogue_place *place, struct open_block *ret_opened,
                                 struct err *err) MUST_USE;
void block_cache_return(struct open_block *opened);

/* Keeps the bytes of a block that was just written; takes them. */
void block_cache_keep(struct block_cache *blocks, int64_t tenant_id, const char *object_key,
                      uint64_t offset, struct buf *bytes);
/* Of a block that others have replaced, or that cannot be read, nothing is kept; who reads it still
 * may go on, who comes later opens the object anew. */
void block_cache_remove(struct block_cache *blocks, int64_t tenant_id,
                        const struct catalogue_place *place);

struct object_store *block_cache_objects(const struct block_cache *blocks);
size_t block_cache_bytes(struct block_cache *blocks);

#endif
