/*
 * Three caches, because an open block is needed in parts, by different queries:
 *
 *   written   bytes of blocks that this server wrote and nothing has opened yet
 *   series    blocks open for strings, label sets, series and granules: a tenth of the work; lists
 *             and unfiltered values over time need no more
 *   stacks    the same with tables and stacks; each entry holds its entry of `series`
 *
 * With one cache, the stacks of a single large query would evict what all other queries need to
 * find their tasks. `written` and `series` have fixed shares of the memory, and `stacks` the rest,
 * which is measured before each use (resize_stacks). The caches make each value once: the first
 * caller makes it, the others wait (lib/base/flight_cache.h).
 *
 * Example, with 256 MiB: 64 for `written`, 32 for `series`. A flush commits a segment in which
 * tenant 7 has a block of 200 KB from byte 4096 on.
 *
 *   1. block_cache_keep moves the 200 KB into `written`, with the key "segment/3/x 4096 7".
 *   2. A list of series finds nothing in `series`, so make_series opens the block. Its origin
 *      holds the entry of `written`, and nothing is read. The entry of `series` counts as its
 *      tables and the 200 KB.
 *   3. A merge finds it in `series`, then nothing in `stacks`. make_stacks decodes the stacks from
 *      the same bytes. Its entry holds that of `series`, which is therefore not evicted before.
 *   4. Another query opens 300 MiB of stacks. This evicts entries of `stacks` only: those that
 *      nothing used within HOLD_NS, and else the newest; the block stays in `series`.
 *   5. A merge replaces the segment. block_cache_remove forgets the key in all three caches;
 *      queries that hold the block go on with it.
 *
 * A whole object (key "block/...") is not read: it is opened as a file and read by extent. If it is
 * in a bucket, that file is a copy on the disk, which the entry keeps. Copies have no cache of
 * their own: with copy_bytes of 10 GB, the copy of a block of 100 MB counts as a hundredth of the
 * memory of each of the two caches, so both evict before a hundred of them exceed the disk's share.
 */
#include "store/query/block_cache.h"

#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/parallel.h"
#include "lib/io/object.h"

#include <inttypes.h>
#include <stdio.h>

/* CACHE_BYTES holds the stacks of 15 minutes of 500 agents that send 320 samples every 10 s. When
 * these did not fit, every query opened blocks again, a third of the CPU time. */
enum {
    CACHE_BYTES = 256 << 20,
    WRITTEN_PART = 4,
    SERIES_PART = 8,
    SLACK_PART = 8,
    KEY_BYTES = 256,
    NAME_BYTES = 280
};

/* When queries use more blocks than the cache holds, one after the other, some blocks stay for this
 * time: with plain LRU, each block was opened again for every query. Replaced blocks are removed at
 * once. */
#define HOLD_NS (30 * CLOCK_NS_PER_S)

struct block_cache {
    struct object_store *objects;
    struct flight_cache *series;  /* struct block, opened for its series */
    struct flight_cache *stacks;  /* struct block with its stacks; each holds an entry of series */
    struct flight_cache *written; /* struct buf: blocks that this server wrote, not opened yet */
    size_t max_bytes;             /* of all three */
    uint64_t copy_bytes;          /* block_cache_limit_copies; 0: open makes no copies */
    uint64_t seed;                /* of all hashes, so that blocks can be compared */
};

/* The origin of an open block's bytes: memory, or a file. */
struct origin {
    struct buf bytes;
    struct flight_entry *written; /* holds the bytes; NULL: they are in `bytes` or in the file */
    int fd;                       /* -1: in memory */
    uint64_t size;
    char name[NAME_BYTES];
};

struct request {
    struct block_cache *blocks;
    const struct catalogue_place *place;
    const struct wait_limit *wait_limit;
    const char *key;
    int64_t tenant_id;
    bool is_background;
};

static void destroy_block(void *block)
{
    block_close(block);
}

static void destroy_bytes(void *bytes)
{
    buf_fini(bytes);
    mem_free(bytes);
}

struct block_cache *block_cache_create(struct object_store *objects, size_t max_bytes)
{
    struct block_cache *blocks = mem_new(struct block_cache, 1);
    blocks->objects = objects;
    digest_random(&blocks->seed, sizeof(blocks->seed));
    max_bytes = max_bytes ? max_bytes : CACHE_BYTES;
    blocks->max_bytes = max_bytes;
    blocks->series = flight_cache_create(max_bytes / SERIES_PART, destroy_block);
    flight_cache_set_hold(blocks->series, HOLD_NS);
    blocks->stacks = flight_cache_create(max_bytes, destroy_block);
    flight_cache_set_hold(blocks->stacks, HOLD_NS);
    blocks->written = flight_cache_create(max_bytes / WRITTEN_PART, destroy_bytes);
    return blocks;
}

void block_cache_limit_copies(struct block_cache *blocks, uint64_t copy_bytes)
{
    blocks->copy_bytes = copy_bytes;
}

bool block_cache_evict(struct block_cache *blocks)
{
    static const char whole[] = "block/"; /* parts of segments are in memory and have no copy */
    return flight_cache_evict_oldest(blocks->series, whole) ||
           flight_cache_evict_oldest(blocks->stacks, whole);
}

void block_cache_destroy(struct block_cache *blocks)
{
    if (!blocks)
        return;
    flight_cache_destroy(blocks->stacks);
    flight_cache_destroy(blocks->series);
    flight_cache_destroy(blocks->written);
    mem_free(blocks);
}

/* ---- origins ---- */

static void close_origin(void *context)
{
    struct origin *origin = context;
    os_close(origin->fd);
    flight_cache_unref(origin->written);
    buf_fini(&origin->bytes);
    mem_free(origin);
}

/* Reads size bytes at offset into buffer. */
static enum err_code read_file(const struct origin *origin, int fd, uint64_t offset, size_t size,
                               struct buf *buffer, struct err *err)
{
    buf_clear(buffer);
    uint8_t *data = buf_reserve(buffer, size);
    if (!data)
        return err_set(err, ERR_TOO_LARGE, "%s: a part of %zu bytes", origin->name, size);
    for (size_t done = 0; done < size;) {
        const ssize_t count = os_pread(fd, data + done, size - done, (off_t)(offset + done));
        if (count < 0)
            return object_fail_reading(err, "reading", origin->name);
        if (count == 0)
            return err_set(err, ERR_CORRUPT, "%s: the object ends too early", origin->name);
        done += (size_t)count;
    }
    buf_commit(buffer, size);
    return ERR_NONE;
}

static enum err_code read_origin(void *context, uint64_t offset, size_t size, struct buf *buffer,
                                 struct span *ret_bytes, struct err *err)
{
    const struct origin *origin = context;
    if (origin->fd < 0) {
        const struct buf *bytes =
            origin->written ? flight_cache_get(origin->written) : &origin->bytes;
        *ret_bytes = span_of(bytes->data + offset, size);
        return ERR_NONE;
    }
    enum err_code code = read_file(origin, origin->fd, offset, size, buffer, err);
    if (!code)
        *ret_bytes = buf_span(buffer);
    return code;
}

static void read_origin_ahead(void *context, uint64_t offset, uint64_t size)
{
    const struct origin *origin = context;
    if (origin->fd >= 0 && offset <= origin->size && size <= origin->size - offset)
        os_read_ahead(origin->fd, (off_t)offset, (off_t)size);
}

/* A part of an object is taken from memory or read whole; a whole object is opened as a file. */
static enum err_code open_origin(struct origin *origin, const struct request *request,
                                 struct err *err)
{
    const struct catalogue_place *place = request->place;
    struct object_store *objects = request->blocks->objects;
    if (!place->bytes && request->is_background)
        return object_open_in_background(objects, place->object_key, &origin->fd, &origin->size,
                                         err);
    if (!place->bytes)
        return object_open_within(objects, place->object_key, request->wait_limit, &origin->fd,
                                  &origin->size, err);
    origin->size = place->bytes;
    origin->written = flight_cache_try(request->blocks->written, request->key);
    if (origin->written)
        return ERR_NONE;
    return object_read_range_within(objects, place->object_key, place->offset, (size_t)place->bytes,
                                    request->wait_limit, &origin->bytes, err);
}

typedef enum err_code open_function(struct block_source source, int64_t tenant_id, uint64_t seed,
                                    struct block **ret_block, struct err *err);

static enum err_code open_block(const struct request *request, open_function *open,
                                struct block **ret_block, struct err *err)
{
    struct origin *origin = mem_new(struct origin, 1);
    origin->fd = -1;
    buf_init(&origin->bytes, SIZE_MAX / 2);
    snprintf(origin->name, sizeof(origin->name), "%s at byte %" PRIu64, request->place->object_key,
             request->place->offset);
    enum err_code code = open_origin(origin, request, err);
    if (code) {
        close_origin(origin);
        return code;
    }
    const struct block_source source = {
        .read = read_origin,
        .read_ahead = read_origin_ahead,
        .close = close_origin,
        .context = origin,
        .size = origin->size,
        .name = origin->name,
        .footer_crc = request->place->footer_crc,
    };
    return open(source, request->tenant_id, request->blocks->seed, ret_block, err);
}

/* Copies on the disk have a limit of their own, but the same caches: a copy counts as the part of
 * the cache's memory that it takes of the disk space for copies. Both caches count it, because an
 * entry of stacks keeps its entry of series from being evicted. */
static size_t copy_cost(const struct request *request, const struct block *block,
                        size_t cache_bytes)
{
    const uint64_t copy_bytes = request->blocks->copy_bytes;
    /* A part of an object is in memory, a whole object may be a copy. */
    if (!copy_bytes || request->place->bytes)
        return 0;
    return (size_t)((double)block_footer(block)->block_bytes / (double)copy_bytes *
                    (double)cache_bytes);
}

static enum err_code make_series(void *context, void **ret_value, size_t *ret_bytes,
                                 struct err *err)
{
    const struct request *request = context;
    struct block *block;
    enum err_code code = open_block(request, block_open_series, &block, err);
    if (code)
        return code;
    *ret_value = block;
    *ret_bytes = block_memory(block) + (size_t)request->place->bytes +
                 copy_cost(request, block, request->blocks->max_bytes / SERIES_PART);
    return ERR_NONE;
}

static void release_series(void *entry)
{
    flight_cache_unref(entry);
}

static enum err_code make_stacks(void *context, void **ret_value, size_t *ret_bytes,
                                 struct err *err)
{
    const struct request *request = context;
    struct flight_entry *series;
    struct block *block;
    enum err_code code = block_cache_ref(request->blocks, request->tenant_id, request->place,
                                         request->wait_limit, &series, err);
    if (!code)
        code = block_open_stacks(block_cache_get(series), release_series, series, &block, err);
    if (code)
        return code;
    *ret_value = block;
    *ret_bytes = block_memory(block) + copy_cost(request, block, request->blocks->max_bytes);
    return ERR_NONE;
}

/* ---- by place ---- */

static void write_key(char key[KEY_BYTES], int64_t tenant_id, const char *object_key,
                      uint64_t offset)
{
    snprintf(key, KEY_BYTES, "%s %" PRIu64 " %" PRId64, object_key, offset, tenant_id);
}

enum err_code block_cache_ref(struct block_cache *blocks, int64_t tenant_id,
                              const struct catalogue_place *place,
                              const struct wait_limit *wait_limit, struct flight_entry **ret_entry,
                              struct err *err)
{
    char key[KEY_BYTES];
    struct request request = {.blocks = blocks,
                              .place = place,
                              .wait_limit = wait_limit,
                              .key = key,
                              .tenant_id = tenant_id};
    write_key(key, tenant_id, place->object_key, place->offset);
    return flight_cache_ref_within(blocks->series, key, wait_limit, make_series, &request,
                                   ret_entry, err);
}

/* Stacks may use the memory that the other two caches do not use. */
static void resize_stacks(struct block_cache *blocks)
{
    const size_t others = flight_cache_bytes(blocks->series) + flight_cache_bytes(blocks->written);
    flight_cache_set_max_bytes(blocks->stacks,
                               others < blocks->max_bytes ? blocks->max_bytes - others : 0);
}

enum err_code block_cache_ref_stacks(struct block_cache *blocks, int64_t tenant_id,
                                     const struct catalogue_place *place,
                                     const struct wait_limit *wait_limit,
                                     struct flight_entry **ret_entry, struct err *err)
{
    char key[KEY_BYTES];
    struct request request = {
        .blocks = blocks, .place = place, .wait_limit = wait_limit, .tenant_id = tenant_id};
    write_key(key, tenant_id, place->object_key, place->offset);
    resize_stacks(blocks);
    return flight_cache_ref_within(blocks->stacks, key, wait_limit, make_stacks, &request,
                                   ret_entry, err);
}

struct block *block_cache_get(const struct flight_entry *entry)
{
    return flight_cache_get(entry);
}

/* ---- several at once ---- */

struct batch_open {
    struct block_cache *blocks;
    int64_t tenant_id;
    const struct catalogue_place *const *places;
    enum block_cache_part part;
    const struct wait_limit *wait_limit;
    struct block_cache_outcome *outcomes;
    size_t *missing; /* indexes of those that are not open */
    size_t missing_count;
};

/* Most queries use blocks that others have opened: these need no thread. */
static bool find_cached(const struct batch_open *batch_open, size_t i)
{
    struct block_cache *blocks = batch_open->blocks;
    const struct catalogue_place *place = batch_open->places[i];
    struct block_cache_outcome *outcome = &batch_open->outcomes[i];
    char key[KEY_BYTES];
    write_key(key, batch_open->tenant_id, place->object_key, place->offset);
    outcome->code = ERR_NONE;
    outcome->entry = flight_cache_try(
        batch_open->part == BLOCK_CACHE_SERIES ? blocks->series : blocks->stacks, key);
    return outcome->entry != NULL;
}

static void open_missing(void *context, size_t i)
{
    const struct batch_open *batch_open = context;
    const size_t index = batch_open->missing[i];
    struct block_cache_outcome *outcome = &batch_open->outcomes[index];
    outcome->code =
        (batch_open->part == BLOCK_CACHE_SERIES ? block_cache_ref : block_cache_ref_stacks)(
            batch_open->blocks, batch_open->tenant_id, batch_open->places[index],
            batch_open->wait_limit, &outcome->entry, &outcome->err);
    if (!outcome->code && batch_open->part == BLOCK_CACHE_HASHES)
        block_hashes(block_cache_get(outcome->entry));
}

void block_cache_ref_several(struct block_cache *blocks, int64_t tenant_id,
                             const struct catalogue_place *const *places, size_t count,
                             enum block_cache_part part, const struct wait_limit *wait_limit,
                             struct block_cache_outcome *outcomes)
{
    struct batch_open batch_open = {.blocks = blocks,
                                    .tenant_id = tenant_id,
                                    .places = places,
                                    .part = part,
                                    .wait_limit = wait_limit,
                                    .outcomes = outcomes,
                                    .missing = mem_new(size_t, count)};
    for (size_t i = 0; i < count; i++) {
        if (!find_cached(&batch_open, i))
            batch_open.missing[batch_open.missing_count++] = i;
    }
    if (part != BLOCK_CACHE_SERIES)
        resize_stacks(blocks);
    parallel_for(batch_open.missing_count, open_missing, &batch_open);
    mem_free(batch_open.missing);
}

enum err_code block_cache_borrow(struct block_cache *blocks, int64_t tenant_id,
                                 const struct catalogue_place *place, struct open_block *ret_opened,
                                 struct err *err)
{
    char key[KEY_BYTES];
    const struct request request = {.blocks = blocks,
                                    .place = place,
                                    .key = key,
                                    .tenant_id = tenant_id,
                                    .is_background = true};
    write_key(key, tenant_id, place->object_key, place->offset);
    struct open_block opened = {.entry = flight_cache_try(blocks->stacks, key)};
    enum err_code code = ERR_NONE;
    if (opened.entry)
        opened.block = block_cache_get(opened.entry);
    else
        code = open_block(&request, block_open, &opened.block, err);
    if (!code)
        *ret_opened = opened;
    return code;
}

void block_cache_return(struct open_block *opened)
{
    if (!opened->entry)
        block_close(opened->block);
    flight_cache_unref(opened->entry);
    *opened = (struct open_block){0};
}

static enum err_code move_bytes(void *context, void **ret_value, size_t *ret_bytes, struct err *err)
{
    (void)err;
    struct buf *given = context, *bytes = mem_new(struct buf, 1);
    buf_init(bytes, given->max_size);
    if (given->capacity - given->size > given->capacity / SLACK_PART) {
        /* cheaper than evicting another block that is read back later */
        buf_append_span(bytes, buf_span(given));
        buf_fini(given);
    } else {
        *bytes = *given;
        *given = (struct buf){.max_size = given->max_size};
    }
    *ret_value = bytes;
    *ret_bytes = bytes->capacity;
    return ERR_NONE;
}

void block_cache_keep(struct block_cache *blocks, int64_t tenant_id, const char *object_key,
                      uint64_t offset, struct buf *bytes)
{
    char key[KEY_BYTES];
    struct flight_entry *entry;
    struct err err;
    write_key(key, tenant_id, object_key, offset);
    if (!flight_cache_ref(blocks->written, key, move_bytes, bytes, &entry, &err))
        flight_cache_unref(entry);
}

void block_cache_remove(struct block_cache *blocks, int64_t tenant_id,
                        const struct catalogue_place *place)
{
    char key[KEY_BYTES];
    write_key(key, tenant_id, place->object_key, place->offset);
    flight_cache_forget(blocks->written, key);
    flight_cache_forget(blocks->stacks, key);
    flight_cache_forget(blocks->series, key);
}

struct object_store *block_cache_objects(const struct block_cache *blocks)
{
    return blocks->objects;
}

size_t block_cache_bytes(struct block_cache *blocks)
{
    return flight_cache_bytes(blocks->series) + flight_cache_bytes(blocks->stacks) +
           flight_cache_bytes(blocks->written);
}
