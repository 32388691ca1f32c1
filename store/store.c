#include "store/store.h"

#include "lib/base/arena.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/batch/batch.h"
#include "lib/profile/profile.h"
#include "store/block/aggregation.h"
#include "store/block/block_write.h"
#include "store/block/selector.h"
#include "store/catalogue/catalogue.h"
#include "store/catalogue/catalogue_check.h"
#include "store/catalogue/writer.h"
#include "store/maintain/flush.h"
#include "store/maintain/maintenance.h"
#include "store/maintain/orphans.h"
#include "store/maintain/verify.h"
#include "store/query/block_cache.h"
#include "store/query/export.h"
#include "store/query/merge_query.h"
#include "store/query/profile_list.h"
#include "store/query/range_query.h"
#include "store/query/result_cache.h"
#include "store/query/scan.h"
#include "store/query/series_hash.h"
#include "store/query/series_list.h"
#include "store/query/stack_filter.h"

enum { BLOCK_MAX_BYTES = 256 << 20, FILTERS_PART = 4 /* of the memory for cached results */ };

static_assert((int)STORE_BATCH_ID_S == (int)CATALOGUE_BATCH_ID_S, "the same");

struct store {
    struct store_options options;
    struct block_cache *blocks;
    struct result_cache *results;
    struct stack_filters *filters;
    struct flusher *flusher;
    struct writer *writer;
    struct maintenance *maintenance;
    struct orphans *orphans;
};

static void cache_block(void *context, int64_t tenant_id, const char *object_key, uint64_t offset,
                        struct buf *block)
{
    struct store *store = context;
    block_cache_keep(store->blocks, tenant_id, object_key, offset, block);
}

enum err_code store_open(const struct store_options *options, struct store **ret_store,
                         struct err *err)
{
    struct store *store = mem_new(struct store, 1);
    store->options = *options;
    store->writer = writer_create(options->jobs_database, options->name);
    store->blocks = block_cache_create(options->objects, options->cache_bytes);
    block_cache_limit_copies(store->blocks, options->copy_bytes);
    const size_t filter_bytes = options->result_cache_bytes / FILTERS_PART;
    store->results = result_cache_create(options->result_cache_bytes - filter_bytes);
    store->filters = stack_filters_create(filter_bytes);
    const struct flush_options flush = {
        .objects = options->objects,
        .jobs_database = options->jobs_database,
        .retention_s = options->retention_s,
        .writer = store->writer,
        .interval_ms = options->flush_interval_ms,
        .max_waiting_requests = options->flush_requests,
        .max_waiting_bytes = options->max_waiting_bytes,
        .keep = cache_block,
        .keep_context = store,
    };
    const struct maintenance_options maintenance = {
        .objects = options->objects,
        .jobs_database = options->jobs_database,
        .query_time_s = options->query_time_s,
        .max_batch_ids = options->max_batch_ids,
        .retention_s = options->retention_s,
        .blocks = store->blocks,
        .writer = store->writer,
        .max_open_bytes = options->merge_bytes,
        .report = options->report,
        .report_context = options->report_context,
        .has_space = options->has_space,
        .has_space_context = options->has_space_context,
    };
    enum err_code code = flusher_create(&flush, &store->flusher, err);
    if (!code)
        code = maintenance_create(&maintenance, &store->maintenance, err);
    if (!code)
        code = orphans_create(&maintenance, &store->orphans, err);
    if (code) {
        store_close(store);
        return code;
    }
    *ret_store = store;
    return ERR_NONE;
}

bool store_evict_block(struct store *store)
{
    return block_cache_evict(store->blocks);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    flusher_destroy(store->flusher);
    orphans_destroy(store->orphans);
    maintenance_destroy(store->maintenance);
    writer_destroy(store->writer);
    result_cache_destroy(store->results);
    stack_filters_destroy(store->filters);
    block_cache_destroy(store->blocks);
    mem_free(store);
}

struct store_addition {
    struct store *store;
    int64_t tenant_id;
    struct arena *arena;
    struct flush_item *items;
    uint32_t count;
    uint32_t capacity;
    bool is_expected; /* announced to the flusher */
};

struct store_addition *store_addition_create(struct store *store, int64_t tenant_id)
{
    struct store_addition *addition = mem_new(struct store_addition, 1);
    addition->store = store;
    addition->tenant_id = tenant_id;
    addition->arena = arena_create();
    addition->is_expected = true;
    flusher_expect(store->flusher);
    return addition;
}

void store_addition_destroy(struct store_addition *addition)
{
    if (!addition)
        return;
    if (addition->is_expected)
        flusher_cancel_expected(addition->store->flusher);
    for (uint32_t i = 0; i < addition->count; i++)
        buf_fini(&addition->items[i].block);
    mem_free(addition->items);
    arena_destroy(addition->arena);
    mem_free(addition);
}

static void list_series_hashes(struct store_addition *addition, const struct batch *batch,
                               struct flush_item *item)
{
    uint64_t *hashes = arena_new_raw(addition->arena, uint64_t, batch->series_count);
    bool *has_profile = arena_new(addition->arena, bool, batch->series_count);
    for (uint32_t i = 0; i < batch->profile_count; i++)
        has_profile[batch->profiles[i].series] = true;
    for (uint32_t i = 0; i < batch->series_count; i++) {
        if (has_profile[i])
            hashes[item->series_count++] = series_hash_of_batch(batch, i);
    }
    item->series = hashes;
}

enum err_code store_addition_put(struct store_addition *addition, const struct batch *batch,
                                 const uint8_t *batch_id, struct err *err)
{
    vec_reserve(addition->items, addition->capacity, addition->count + 1);
    struct flush_item *item = &addition->items[addition->count];
    *item = (struct flush_item){0};
    if (batch_id)
        item->batch_id = (uint8_t *)arena_strndup(addition->arena, batch_id, STORE_BATCH_ID_BYTES);
    buf_init(&item->block, BLOCK_MAX_BYTES);
    enum err_code code =
        block_write_batch(batch, addition->tenant_id, 0, &item->block, &item->summary, err);
    if (code) {
        buf_fini(&item->block);
        return code;
    }
    list_series_hashes(addition, batch, item);
    item->cut_string_count = batch->tables->cut_string_count;
    addition->count++;
    return ERR_NONE;
}

enum err_code store_addition_commit(struct store_addition *addition, int64_t deadline_ns,
                                    struct store_receipt *ret_receipt, struct err *err)
{
    struct store_receipt receipt = {.is_duplicate = addition->count > 0};
    addition->is_expected = false;
    enum err_code code = flusher_append(addition->store->flusher, addition->tenant_id,
                                        addition->items, addition->count, deadline_ns, err);
    for (uint32_t i = 0; i < addition->count && !code; i++) {
        const struct flush_item *item = &addition->items[i];
        receipt.row_count += item->summary.row_count;
        receipt.bytes += item->summary.bytes;
        receipt.is_duplicate &= item->is_duplicate;
    }
    if (!code)
        *ret_receipt = receipt;
    return code;
}

enum err_code store_append(struct store *store, int64_t tenant_id, const struct batch *batch,
                           const uint8_t *batch_id, struct store_receipt *ret_receipt,
                           struct err *err)
{
    struct store_addition *addition = store_addition_create(store, tenant_id);
    enum err_code code = store_addition_put(addition, batch, batch_id, err);
    if (!code)
        code = store_addition_commit(addition, 0, ret_receipt, err);
    store_addition_destroy(addition);
    return code;
}

enum err_code store_check_selector(struct arena *arena, struct span selector,
                                   const char **ret_canonical, struct err *err)
{
    struct selector *parsed;
    enum err_code code = selector_parse(arena, selector, &parsed, err);
    if (!code)
        code = selector_check_bounded(parsed, err);
    if (code)
        return code;
    buf_auto text;
    buf_init(&text, SELECTOR_CANONICAL_MAX_BYTES);
    selector_append_canonical(parsed, &text);
    *ret_canonical = arena_strndup(arena, text.data, text.size);
    return ERR_NONE;
}

enum err_code store_delete(struct pg_connection *connection, struct arena *arena, int64_t tenant_id,
                           struct span selector, int64_t start_ns, int64_t end_ns, int64_t *ret_id,
                           struct err *err)
{
    struct selector *parsed;
    struct catalogue_deletion deletion = {
        .selector = arena_strndup(arena, selector.data, selector.size),
        .begin_ns = start_ns,
        .end_ns = end_ns,
    };
    enum err_code code = selector_parse(arena, selector, &parsed, err);
    if (code)
        return code;
    code = selector_check_bounded(parsed, err);
    if (code)
        return code;
    code = catalogue_add_deletion(connection, arena, tenant_id, &deletion, err);
    if (code)
        return code;
    *ret_id = deletion.id;
    return ERR_NONE;
}

uint64_t store_series_hash(const struct batch *batch, uint32_t series)
{
    return series_hash_of_batch(batch, series);
}

const char *store_aggregation_name(enum store_aggregation aggregation)
{
    return aggregation_name(aggregation);
}

static struct scan_source make_scan_source(struct store *store)
{
    return (struct scan_source){.blocks = store->blocks,
                                .database = store->options.database,
                                .resolver = store->options.resolver,
                                .results = store->results,
                                .retention_s = store->options.retention_s,
                                .filters = store->filters,
                                .damaged = store->options.damaged,
                                .damaged_context = store->options.damaged_context};
}

enum err_code store_merge(struct store *store, struct arena *arena, const struct store_query *query,
                          struct store_result *ret_result, struct err *err)
{
    const struct scan_source source = make_scan_source(store);
    return merge_query_run(&source, arena, query, ret_result, err);
}

void store_result_fini(struct store_result *result)
{
    merge_query_fini_result(result);
}

size_t store_result_bytes(struct store *store)
{
    return result_cache_bytes(store->results) + stack_filters_bytes(store->filters);
}

size_t store_block_bytes(struct store *store)
{
    return block_cache_bytes(store->blocks);
}

enum err_code store_list_series(struct store *store, struct arena *arena,
                                const struct store_query *query, struct store_series_list *ret_list,
                                struct err *err)
{
    const struct scan_source source = make_scan_source(store);
    return series_list_make(&source, arena, query, ret_list, err);
}

enum err_code store_find_absent_label(struct store *store, struct arena *arena,
                                      const struct store_query *query, struct span *ret_name,
                                      struct err *err)
{
    const struct scan_source source = make_scan_source(store);
    return series_list_find_absent_label(&source, arena, query, ret_name, err);
}

void store_list_label_names(struct arena *arena, const struct store_series_list *list,
                            const struct span **ret_names, uint32_t *ret_count)
{
    series_list_label_names(arena, list, ret_names, ret_count);
}

void store_list_label_values(struct arena *arena, const struct store_series_list *list,
                             struct span label, const struct span **ret_values, uint32_t *ret_count)
{
    series_list_label_values(arena, list, label, ret_values, ret_count);
}

enum err_code store_range(struct store *store, struct arena *arena,
                          const struct store_range_query *query, struct store_range *ret_range,
                          struct err *err)
{
    const struct scan_source source = make_scan_source(store);
    return range_query_run(&source, arena, query, ret_range, err);
}

enum err_code store_list_profiles(struct store *store, struct arena *arena,
                                  const struct store_profile_query *query,
                                  struct store_profile_list *ret_list, struct err *err)
{
    const struct scan_source source = make_scan_source(store);
    return profile_list_make(&source, arena, query, ret_list, err);
}

enum err_code store_export(struct store *store, struct arena *arena,
                           const struct store_query *query, const struct store_export_sink *sink,
                           struct store_statistics *ret_statistics, struct err *err)
{
    const struct scan_source source = make_scan_source(store);
    return export_write(&source, arena, query, sink, ret_statistics, err);
}

enum err_code store_verify(const struct store_check *check, struct store_check_result *ret_result,
                           struct err *err)
{
    return verify_run(check, ret_result, err);
}

enum err_code store_catalogue_read(struct pg_pool *database, struct arena *arena,
                                   const struct store_catalogue **ret_catalogue, struct err *err)
{
    return verify_read_catalogue(database, arena, ret_catalogue, err);
}

enum err_code store_verify_copy(const struct store_check *check,
                                const struct store_catalogue *catalogue,
                                struct store_check_result *ret_result, struct err *err)
{
    return verify_copy(check, catalogue, ret_result, err);
}

enum err_code store_measure(struct pg_pool *database, struct arena *arena,
                            const struct store_measure **ret_measures, uint32_t *ret_count,
                            struct err *err)
{
    return catalogue_measure(database, arena, ret_measures, ret_count, err);
}
