#include "api/query/query_fields.h"

#include "api/core/server.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "store/store.h"

#include <inttypes.h>

static const char *describe_broken(struct arena *arena, const struct store_statistics *read)
{
    if (!read->broken_count)
        return "";
    return arena_printf(
        arena,
        "%" PRIu32 " of the parts to be read %s broken and left out of the result; the first: %s",
        read->broken_count, read->broken_count == 1 ? "is" : "are", read->broken_message);
}

static const char *describe_oversized(struct arena *arena, const struct store_statistics *read)
{
    if (!read->oversized_count)
        return "";
    return arena_printf(arena,
                        "%" PRIu32 " %s left out: names take too much of the query's memory "
                        "there; the largest takes %s",
                        read->oversized_count,
                        read->oversized_count == 1 ? "block is" : "blocks are",
                        read->oversized_message);
}

static const char *describe_hours(struct arena *arena, uint32_t count)
{
    return arena_printf(arena, "%" PRIu32 " %s, counted by series and block,", count,
                        count == 1 ? "hour" : "hours");
}

static const char *describe_totals(struct arena *arena, const struct store_statistics *read)
{
    const char *cut = "", *unlabelled = "";
    if (read->cut_count)
        cut = arena_printf(arena,
                           "%s %s left out: only totals are kept there; let windows and steps "
                           "begin and end at full hours",
                           describe_hours(arena, read->cut_count),
                           read->cut_count == 1 ? "is" : "are");
    const uint32_t unlabelled_count = read->unlabelled_count + read->unmatched_count;
    if (unlabelled_count)
        unlabelled = arena_printf(arena, "%sof %s labels of samples are not kept any more",
                                  *cut ? "; " : "", describe_hours(arena, unlabelled_count));
    return arena_printf(arena, "%s%s", cut, unlabelled);
}

/* Snapshots of two processes in one series look like restarts. */
static const char *describe_restarts(struct arena *arena, uint32_t count)
{
    if (!count)
        return "";
    return arena_printf(arena,
                        "%" PRIu32 " %s in more than a quarter of the snapshots: if several "
                        "processes send the same labels, give each a label of its own, such as "
                        "instance",
                        count, count == 1 ? "counter restarts" : "counters restart");
}

/* A gauge shows one of them at a time, not their sum. */
static const char *describe_interleaved(struct arena *arena, uint32_t count)
{
    if (!count)
        return "";
    return arena_printf(arena,
                        "%" PRIu32 " %s the snapshots of several processes in turn, not their sum: "
                        "give each process a label of its own, such as instance",
                        count, count == 1 ? "gauge shows" : "gauges show");
}

/* Where labels of samples are lost, the hours are named instead. */
static const char *describe_absent(struct arena *arena, const struct store_statistics *read)
{
    if (!read->absent_filter_label || !read->profile_count || read->unlabelled_count)
        return "";
    return arena_printf(arena, "label: %s", read->absent_filter_label);
}

const char *query_fields_describe_missing(struct arena *arena, const struct store_statistics *read)
{
    const char *parts[] = {describe_broken(arena, read),
                           describe_oversized(arena, read),
                           describe_totals(arena, read),
                           describe_absent(arena, read),
                           describe_restarts(arena, read->restarting_count),
                           describe_interleaved(arena, read->interleaved_count)};
    char *text = arena_strdup(arena, "");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        text = arena_printf(arena, "%s%s%s", text, *text && *parts[i] ? "; " : "", parts[i]);
    for (char *at = text; *at; at++)
        *at = *at < ' ' || *at > '~' ? '?' : *at;
    return *text ? text : NULL;
}

void query_fields_add_statistics(struct request *request, struct response *response,
                                 const struct store_statistics *read, int64_t begin_ns)
{
    response_add(request, response, "perfolio-statistics",
                 arena_printf(request->arena,
                              "blocks=%" PRIu32 ", granules=%" PRIu32 ", series=%" PRIu32
                              ", profiles=%" PRIu64 ", rows=%" PRIu64 ", bytes=%" PRIu64
                              ", unnamed=%" PRIu32 ", totals=%" PRIu32 ", cut=%" PRIu32
                              ", us=%" PRId64,
                              read->block_count, read->granule_count, read->series_count,
                              read->profile_count, read->row_count, read->bytes_read,
                              read->names.unknown_count, read->totals_count, read->cut_count,
                              (clock_monotonic_ns() - begin_ns) / 1000));
    const char *missing = query_fields_describe_missing(request->arena, read);
    if (missing)
        response_add(request, response, "perfolio-warning", missing);
}

/* Texts from profiles are escaped. */
void query_fields_add(struct request *request, struct response *response,
                      const struct store_result *result, int64_t begin_ns)
{
    buf_auto type;
    buf_init(&type, 1 << 16);
    buf_append_url(&type, span_text(result->type));
    response_add(request, response, "perfolio-profile-type",
                 arena_strndup(request->arena, type.data, type.size));
    response_add(request, response, "perfolio-rule", store_aggregation_name(result->aggregation));
    query_fields_add_statistics(request, response, &result->statistics, begin_ns);
}

enum err_code query_fields_refuse_label(struct arena *arena, const char *parameter,
                                        const struct store_result *result, struct err *err)
{
    const char *missing = query_fields_describe_missing(arena, &result->statistics);
    return err_set(err, ERR_INVALID, "%s: %s%s%s", parameter, result->absent_label,
                   missing ? "; " : "", missing ? missing : "");
}

void query_fields_explain_labels(struct request *request, struct response *response,
                                 const struct store_query *query,
                                 const struct store_statistics *read)
{
    struct span name;
    struct err ignored;
    if (read->profile_count || query_fields_describe_missing(request->arena, read))
        return;
    if (store_find_absent_label(request->server->store, request->arena, query, &name, &ignored) ||
        !name.size)
        return;
    response_add(request, response, "perfolio-warning",
                 arena_printf(request->arena,
                              "no series and no sample of this window has the label %.*s",
                              SPAN_PRINT(name)));
}
