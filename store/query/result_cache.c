#include "store/query/result_cache.h"

#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mem.h"
#include "lib/base/wait_limit.h"
#include "lib/profile/profile.h"
#include "lib/profile/report/label_filter.h"
#include "store/block/selector.h"
#include "store/query/scan.h"

#include <inttypes.h>
#include <stdio.h>

enum { WORDS_MAX_BYTES = 1 << 24 };

struct result_cache {
    struct flight_cache *cache;
};

static void destroy_result(void *value)
{
    struct store_result *result = value;
    profile_destroy(result->own_profile);
    mem_free(result);
}

struct result_cache *result_cache_create(size_t max_bytes)
{
    struct result_cache *results = mem_new(struct result_cache, 1);
    results->cache = flight_cache_create(max_bytes, destroy_result);
    return results;
}

void result_cache_destroy(struct result_cache *results)
{
    if (!results)
        return;
    flight_cache_destroy(results->cache);
    mem_free(results);
}

size_t result_cache_bytes(struct result_cache *results)
{
    return flight_cache_bytes(results->cache);
}

/* ---- the key of a result ---- */

static void append_word(struct buf *words, struct span word)
{
    buf_append_u64(words, word.size);
    buf_append_span(words, word);
}

/* Appends everything but the tasks. */
static void append_query(const struct scan *scan, struct buf *words)
{
    const struct store_query *query = scan_query(scan);
    buf_append_u64(words, scan_statistics(scan)->names.generation);
    buf_append_u32(words, query->profile != NULL);
    buf_append_u32(words, scan_statistics(scan)->cut_count); /* part of the result */
    buf_append_u32(words, query->wants_all_labels);
    buf_append_u64(words, query->label_name_count);
    for (size_t i = 0; i < query->label_name_count; i++)
        append_word(words, query->label_names[i]);
    buf_append_u64(words, (uint64_t)query->ahead_ns);
    if (query->ahead_ns) { /* the parts of values at the window's edges count */
        buf_append_u64(words, (uint64_t)query->start_ns);
        buf_append_u64(words, (uint64_t)query->end_ns);
    }
    if (query->label_filter)
        label_filter_append_rules(query->label_filter, words);
    const struct selector_set *row_selectors = scan_row_selectors(scan);
    for (size_t i = 0; row_selectors && i < row_selectors->count; i++)
        selector_append_canonical(row_selectors->selectors[i], words);
}

/* Appends a block's name when it changes, and for each task its granule and ordinals. */
static void append_tasks(const struct scan *scan, struct digest_stream *stream)
{
    const struct block *block = NULL;
    uint32_t count, task_count;
    const struct scan_task *tasks = scan_tasks(scan, &task_count);
    for (uint32_t i = 0; i < task_count; i++) {
        const struct scan_task *task = &tasks[i];
        const char *name = block_name(task->block);
        const struct block_granule *first = block_granules(task->block, &count);
        const uint32_t numbers[] = {(uint32_t)(task->granule - first) + 1, task->first, task->end,
                                    task->has_totals_only};
        if (task->block != block) {
            const uint32_t size[] = {0, (uint32_t)strlen(name), 0, 0};
            digest_stream_append(stream, span_of(size, sizeof(size)));
            digest_stream_append(stream, span_of(name, strlen(name)));
        }
        block = task->block;
        digest_stream_append(stream, span_of(numbers, sizeof(numbers)));
    }
}

void result_cache_identify(const struct scan *scan, char ret_identity[STORE_IDENTITY_BYTES])
{
    uint8_t hash[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];
    buf_auto words;
    buf_init(&words, WORDS_MAX_BYTES);
    append_query(scan, &words);
    ret_identity[0] = '\0';
    const struct store_statistics *statistics = scan_statistics(scan);
    uint32_t task_count;
    scan_tasks(scan, &task_count);
    if (!task_count || statistics->broken_count || statistics->oversized_count ||
        buf_failed(&words))
        return;
    struct digest_stream *stream = digest_stream_create();
    const uint64_t size = words.size;
    digest_stream_append(stream, span_of(&size, sizeof(size)));
    digest_stream_append(stream, buf_span(&words));
    append_tasks(scan, stream);
    digest_stream_finish(stream, hash);
    digest_stream_destroy(stream);
    digest_hex(span_of(hash, DIGEST_BYTES), hex);
    snprintf(ret_identity, STORE_IDENTITY_BYTES, "%" PRId64 " %s", scan_query(scan)->tenant_id,
             hex);
}

/* ---- results ---- */

struct merge_job {
    struct scan *scan;
    bool has_begun; /* by this query, not by another */
    enum err_code (*make)(struct scan *scan, struct store_result *ret_result);
};

/* Copies texts, which outlive the query that computed the result. */
static void copy_texts(struct store_result *result)
{
    struct arena *arena = result->own_profile->arena;
    result->type = arena_strdup(arena, result->type);
    if (result->absent_label)
        result->absent_label = arena_strdup(arena, result->absent_label);
    if (result->statistics.absent_filter_label)
        result->statistics.absent_filter_label =
            arena_strdup(arena, result->statistics.absent_filter_label);
    if (result->statistics.broken_message)
        result->statistics.broken_message = arena_strdup(arena, result->statistics.broken_message);
    if (result->statistics.oversized_message)
        result->statistics.oversized_message =
            arena_strdup(arena, result->statistics.oversized_message);
}

/* A result with damaged data is not cached: the data may be readable later. It goes only to the
 * queries that wait for it. */
static enum err_code make_result(void *context, void **ret_value, size_t *ret_bytes,
                                 struct err *err)
{
    struct merge_job *job = context;
    job->has_begun = true;
    struct store_result *result = mem_new(struct store_result, 1);
    enum err_code code = job->make(job->scan, result);
    if (code) {
        if (err != scan_err(job->scan))
            *err = *scan_err(job->scan);
        mem_free(result);
        return code;
    }
    copy_texts(result);
    *ret_value = result;
    *ret_bytes = result->statistics.broken_count || result->statistics.oversized_count
                     ? SIZE_MAX
                     : sizeof(*result) + arena_bytes(result->own_profile->arena);
    return ERR_NONE;
}

enum err_code
result_cache_ref(struct result_cache *results, struct scan *scan, const char *identity,
                 enum err_code (*make)(struct scan *scan, struct store_result *ret_result),
                 struct store_result *ret_result)
{
    const struct wait_limit *wait_limit = &scan_query(scan)->wait_limit;
    struct merge_job job = {.scan = scan, .make = make};
    struct flight_entry *entry;
    enum err_code code;
    /* The query that computed the result may have failed for reasons of its own: its client left,
     * or its limits were lower. Then one of those that waited computes it under its own limits, and
     * the others wait for that one. */
    do {
        code = flight_cache_ref_within(results->cache, identity, wait_limit, make_result, &job,
                                       &entry, scan_err(scan));
    } while (code && !job.has_begun && !wait_limit_is_over(wait_limit));
    if (code)
        return job.has_begun ? code : ERR_CANCELLED;
    *ret_result = *(const struct store_result *)flight_cache_get(entry);
    ret_result->own_profile = NULL;
    ret_result->kept = entry;
    return ERR_NONE;
}
