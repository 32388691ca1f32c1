#include "store/store.h"

#include "lib/base/mem.h"
#include "store/block_write.h"
#include "store/execute.h"
#include "store/flush.h"
#include "store/open_blocks.h"
#include "store/upkeep.h"
#include "store/writer.h"

enum { BLOCK_MAX_BYTES = 256 << 20 };

struct store {
    struct store_options options;
    struct open_blocks *blocks;
    struct flusher *flusher;
    struct writer *writer;
    struct upkeep *upkeep;
};

static void keep_block(void *context, int64_t tenant_id, const char *object_key, uint64_t offset,
                       struct buf *block)
{
    struct store *store = context;
    open_blocks_keep(store->blocks, tenant_id, object_key, offset, block);
}

enum err_code store_open(const struct store_options *options, struct store **ret_store,
                         struct err *err)
{
    struct store *store = mem_new(struct store, 1);
    store->options = *options;
    store->writer = writer_create(options->jobs_database, options->name);
    store->blocks = open_blocks_create(options->objects, options->cache_bytes);
    const struct flush_options flush = {
        .objects = options->objects,
        .jobs_database = options->jobs_database,
        .writer = store->writer,
        .interval_ms = options->flush_interval_ms,
        .max_waiting_bytes = options->max_waiting_bytes,
        .keep = keep_block,
        .keep_context = store,
    };
    const struct upkeep_options upkeep = {
        .objects = options->objects,
        .jobs_database = options->jobs_database,
        .blocks = store->blocks,
        .writer = store->writer,
        .report = options->report,
        .report_context = options->report_context,
    };
    enum err_code code = flusher_create(&flush, &store->flusher, err);
    if (!code)
        code = upkeep_create(&upkeep, &store->upkeep, err);
    if (code) {
        store_close(store);
        return code;
    }
    *ret_store = store;
    return ERR_NONE;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    flusher_destroy(store->flusher);
    upkeep_destroy(store->upkeep);
    writer_destroy(store->writer);
    open_blocks_destroy(store->blocks);
    mem_free(store);
}

enum err_code store_append(struct store *store, int64_t tenant_id, const struct batch *batch,
                           const uint8_t *batch_id, struct store_receipt *ret_receipt,
                           struct err *err)
{
    buf_auto block;
    struct block_summary summary;
    buf_init(&block, BLOCK_MAX_BYTES);
    enum err_code code = block_write_batch(batch, tenant_id, 0, &block, &summary, err);
    struct store_receipt receipt = {.row_count = summary.row_count, .bytes = summary.bytes};
    if (!code)
        code = flusher_append(store->flusher, tenant_id, &block, &summary, batch_id,
                              &receipt.is_duplicate, err);
    if (!code)
        *ret_receipt = receipt;
    return code;
}

enum err_code store_merge(struct store *store, struct arena *arena, const struct store_query *query,
                          struct store_answer *ret_answer, struct err *err)
{
    return execute_merge(store->blocks, store->options.database, arena, query, ret_answer, err);
}
