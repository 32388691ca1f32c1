#include "store/query/merge_query.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mem.h"
#include "lib/profile/profile.h"
#include "store/block/selector.h"
#include "store/query/frame_resolution.h"
#include "store/query/merge_internal.h"
#include "store/query/neighbours.h"
#include "store/query/result_cache.h"
#include "store/query/tree_rounding.h"
#include "store/values/cadence.h"

static const char *text_of(struct scan *scan, struct span text)
{
    return arena_strndup(scan_arena(scan), text.data, text.size);
}

/* The type of the series that were found, else the one that the query names. */
static const struct span *find_type(struct scan *scan, struct span *named)
{
    const struct store_query *query = scan_query(scan);
    struct selector *selector;
    struct err err;
    const struct store_type *type = scan_type(scan);
    if (type)
        return type->parts;
    const bool is_one = query->selector_count == 1 &&
                        !selector_parse(scan_arena(scan), query->selectors[0], &selector, &err);
    return is_one && selector_find_type(selector, named) ? named : NULL;
}

struct names_limit {
    const struct merge *merge;
    size_t unnamed_bytes; /* size of the profile before names were added */
};

static enum err_code check_names(void *context, size_t bytes, struct err *err)
{
    const struct names_limit *limit = context;
    const struct merge *merge = limit->merge;
    const enum err_code code = merge_check_limits(merge, bytes - limit->unnamed_bytes);
    if (code && err != scan_err(merge->scan))
        *err = *scan_err(merge->scan);
    return code;
}

/* Counts what names add: the tables of the profile are about as large as those of the union, and
 * its samples were counted before they were made. The frames of inlined calls also make the views
 * of reports larger. */
static enum err_code add_names(struct merge *merge, struct profile *profile)
{
    enum { FRAME_BYTES = 2 * sizeof(uint32_t) }; /* in two views */
    struct scan *scan = merge->scan;
    struct names_limit limit = {.merge = merge, .unnamed_bytes = arena_bytes(profile->arena)};
    const struct names_memory memory = {.context = &limit, .check = check_names};
    const uint64_t before = profile_count_frames(profile);
    enum err_code code =
        frame_resolution_resolve(scan_resolver(scan), scan_query(scan)->tenant_id, &memory, profile,
                                 profile->arena, profile, scan_symbolization(scan), scan_err(scan));
    if (code)
        return code;
    const uint64_t after = profile_count_frames(profile);
    const size_t frame_bytes = after > before ? (size_t)(after - before) * FRAME_BYTES : 0;
    return merge_check_limits(merge,
                              arena_bytes(profile->arena) - limit.unnamed_bytes + frame_bytes);
}

static enum err_code check_samples(const void *context, size_t bytes)
{
    return merge_check_limits(context, bytes);
}

/* The values of gauges and counters are scaled until here, because the order depends on names. */
static enum err_code round_values(struct merge *merge, struct profile *profile,
                                  const int64_t *starts)
{
    struct scan *scan = merge->scan;
    if (merge->result.aggregation == STORE_SUM)
        return ERR_NONE;
    enum err_code code =
        merge_check_limits(merge, arena_bytes(profile->arena) + tree_rounding_memory(profile));
    return code ? code
                : tree_rounding_apply(profile, starts, merge->scale_bits,
                                      scan_query(scan)->cpu_deadline_ns, scan_err(scan));
}

static enum err_code make_profile(struct merge *merge)
{
    struct scan *scan = merge->scan;
    struct store_result *result = &merge->result;
    struct stack_union_type type = {
        .sample_type = "samples", .sample_unit = "count", .period_type = "", .period_unit = ""};
    struct span named[SELECTOR_TYPE_PARTS];
    const struct span *parts = find_type(scan, named);
    if (parts) {
        type = (struct stack_union_type){
            .sample_type = text_of(scan, parts[STORE_TYPE_SAMPLE_TYPE]),
            .sample_unit = text_of(scan, parts[STORE_TYPE_SAMPLE_UNIT]),
            .period_type = text_of(scan, parts[STORE_TYPE_PERIOD_TYPE]),
            .period_unit = text_of(scan, parts[STORE_TYPE_PERIOD_UNIT]),
        };
    }
    const struct store_query *query = scan_query(scan);
    const struct store_type *scanned = scan_type(scan);
    int64_t first_ns, last_ns;
    const bool has_own = scan_find_times(scan, &first_ns, &last_ns);
    if (scanned) {
        type.time_ns = has_own ? first_ns : query->start_ns;
        type.duration_ns =
            has_own ? last_ns - first_ns : cadence_distance(query->start_ns, query->end_ns);
    }
    type.labels = merge->labels;
    type.check_memory = check_samples;
    type.check_context = merge;
    const bool has_data = has_own || merge->has_increases || merge->weights.covered_ns;
    result->type = scanned && has_data ? scanned->name : "";
    struct profile *profile;
    const int64_t *starts;
    enum err_code code =
        stack_union_profile(merge->stacks, &type, &profile, &starts, scan_err(scan));
    if (code)
        return code;
    code = add_names(merge, profile);
    if (!code)
        code = round_values(merge, profile, starts);
    result->statistics = *scan_statistics(scan);
    if (code)
        profile_destroy(profile);
    else
        result->profile = result->own_profile = profile;
    return code;
}

static enum err_code add_values(struct merge *merge)
{
    const struct scan *scan = merge->scan;
    enum err_code code = ERR_NONE;
    /* A single profile is returned as it is, not aggregated. */
    merge->result.aggregation = scan_query(scan)->profile ? STORE_SUM : scan_aggregation(scan);
    merge->stacks = stack_union_create();
    if (merge->result.aggregation == STORE_MEAN)
        code = merge_add_means(merge);
    else
        code = merge->result.aggregation == STORE_SUM ? merge_add_sums(merge)
                                                      : merge_add_increases(merge);
    if (!code)
        code = row_labels_check(merge->labels, scan_err(merge->scan));
    if (!code)
        scan_note_absent_filter_label(merge->scan, row_labels_describe_absent_key(merge->labels));
    int64_t left_out, start;
    const uint32_t count = stack_union_left_out(merge->stacks, &left_out, &start);
    merge->result.left_out = tree_rounding_round(left_out, merge->scale_bits) -
                             tree_rounding_round(start, merge->scale_bits);
    if (!code && count)
        merge->result.absent_label = row_labels_describe_absent(merge->labels);
    return code ? code : make_profile(merge);
}

static enum err_code make_result(struct scan *scan, struct store_result *ret_result)
{
    const struct store_query *query = scan_query(scan);
    struct merge merge = {.scan = scan, .query = query};
    merge.labels = row_labels_create(
        scan_arena(scan), query->label_filter, scan_row_selectors(scan), query->label_names,
        query->label_name_count, query->wants_all_labels ? ROW_LABELS_ALL : ROW_LABELS_EXACT);
    enum err_code code = scan_open_all_stacks(scan, true);
    if (!code)
        code = add_values(&merge);
    *ret_result = merge.result;
    stack_union_destroy(merge.stacks);
    row_labels_destroy(merge.labels);
    mem_free(merge.keys);
    return code;
}

struct merging {
    struct result_cache *results;
    struct store_result result;
    bool lacks_neighbours; /* the query has to run again, with them */
};

/* Gauges and counters need neighbours, which the first scan does not look for. Without a match in
 * the window the type is unknown: it may be that of a gauge whose last snapshot holds until then.
 */
static bool lacks_neighbours(const struct scan *scan)
{
    return !scan_query(scan)->ahead_ns && !scan_query(scan)->profile &&
           !scan_query(scan)->wants_single_profiles &&
           (!scan_type(scan) || scan_aggregation(scan) != STORE_SUM);
}

/* A merge takes the deltas that begin in the window, so tasks found by the reach are dropped. */
static void drop_deltas_outside(struct scan *scan)
{
    if (scan_query(scan)->ahead_ns && scan_aggregation(scan) == STORE_SUM)
        scan_drop_all(scan);
}

/* Checks the memory that the caller needs to use the result. It does not include the blocks, which
 * the scan still holds but frees before that. */
static enum err_code check_use(const struct scan *scan, struct store_result *result)
{
    const struct store_query *query = scan_query(scan);
    if (!query->result_use_bytes)
        return ERR_NONE;
    const enum err_code code = scan_check_total(
        scan, arena_bytes(result->profile->arena) +
                  query->result_use_bytes(query->result_use_context, result->profile));
    if (code)
        merge_query_fini_result(result);
    return code;
}

static enum err_code merge_tasks(struct scan *scan, void *context)
{
    struct merging *merging = context;
    struct store_result *result = &merging->result;
    const struct store_query *query = scan_query(scan);
    char identity[STORE_IDENTITY_BYTES];
    *result = (struct store_result){0};
    enum err_code code = scan_check_types(scan);
    if (!code)
        code = scan_check_magnitude(scan);
    if (code)
        return code;
    merging->lacks_neighbours = lacks_neighbours(scan);
    if (merging->lacks_neighbours)
        return ERR_NONE;
    drop_deltas_outside(scan);
    scan_count_unlabelled(scan, query->label_names, query->label_name_count);
    result_cache_identify(scan, identity);
    if (*identity && query->has_result && query->has_result(query->has_result_context, identity)) {
        result->is_known = true;
        result->type = scan_type(scan)->name;
        return ERR_NONE;
    }
    code = *identity && !query->wants_own_profile
               ? scan_explain_wait(
                     scan, result_cache_ref(merging->results, scan, identity, make_result, result))
               : make_result(scan, result);
    if (!code)
        code = check_use(scan, result);
    if (!code && !result->statistics.broken_count && !result->statistics.oversized_count)
        memcpy(result->identity, identity, sizeof(identity));
    return code;
}

/* Whether oversized blocks are all that the query found. Such a query fails, because an empty
 * result would look as if there were no profiles. */
static bool is_all_left_out(const struct store_result *result)
{
    const struct store_statistics *read = &result->statistics;
    return !result->is_known && read->oversized_count && !read->profile_count &&
           !result->left_out && !result->profile->sample_count;
}

enum err_code merge_query_run(const struct scan_source *source, struct arena *arena,
                              const struct store_query *query, struct store_result *ret_result,
                              struct err *err)
{
    struct merging merging = {.results = source->results};
    struct store_query reaching = *query;
    enum err_code code;
    bool is_again;
    do {
        struct arena *run = arena_create();
        code = scan_run(source, &reaching, SCAN_TASKS, run, merge_tasks, &merging, err);
        is_again = !code && merging.lacks_neighbours &&
                   neighbours_extend(&reaching, NEIGHBOURS_REACH_MAX_NS);
        if (is_again)
            merge_query_fini_result(&merging.result);
        if (is_again || code)
            arena_destroy(run);
        else
            arena_adopt(arena, run);
    } while (is_again);
    if (code)
        return code;
    if (is_all_left_out(&merging.result))
        code = err_set(err, ERR_LIMIT,
                       "all that this query finds is left out: names take too much of its memory; "
                       "the largest block takes %s: select other series or less time",
                       merging.result.statistics.oversized_message);
    else if (!*merging.result.type && !merging.result.statistics.broken_count)
        code = scan_explain_nothing(source, query, arena, err);
    if (code)
        merge_query_fini_result(&merging.result);
    else
        *ret_result = merging.result;
    return code;
}

void merge_query_fini_result(struct store_result *result)
{
    profile_destroy(result->own_profile);
    flight_cache_unref(result->kept);
    result->profile = result->own_profile = NULL;
    result->kept = NULL;
}
