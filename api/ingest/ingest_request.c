/*
 * The steps of a request:
 *
 *   open    checks that the tenant's token bucket is not empty, before anything is decoded
 *   put     for each batch: checks labels, times and days, and adds its series to the tenant's set
 *           of active series, as pending
 *   commit  takes the samples from the bucket, then the store adds all batches in one transaction;
 *           a failure returns the samples
 *   close   settles the pending series: as stored after a commit, otherwise as not stored
 *
 * restart returns to the state after open, when a body has to be decoded again with more memory.
 */
#include "api/ingest/ingest_request.h"

#include "api/core/metrics.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/request.h"
#include "api/ingest/batch_check.h"
#include "api/ingest/ingest_counts.h"
#include "api/ingest/ingest_parts.h"
#include "api/ingest/ingest_storage.h"
#include "api/ingest/sources.h"
#include "api/report/symbol_resolver.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/profile/batch/batch.h"
#include "lib/profile/batch/batch_labels.h"
#include "lib/profile/batch/batch_subset.h"
#include "lib/profile/otlp/otlp.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    SERIES_RETRY_S = 600,
    COMMIT_LEAST_MS = 5000,
};

struct ingest_request {
    struct request *request;
    struct tenant_limits limits;
    struct ingest_counts_tenant counts;
    struct store_addition *addition;
    uint64_t sample_count;
    uint64_t cut_string_count;
    struct ingest_counts_pending pending;
    struct map_u64 days; /* since 1970, of the profiles that were put */
    uint32_t day_count;
};

/* ---- from open to close ---- */

static void forget_days(struct ingest_request *ingest_request)
{
    map_u64_fini(&ingest_request->days);
    ingest_request->days = (struct map_u64){0};
    ingest_request->day_count = 0;
}

void ingest_request_restart(struct ingest_request *ingest_request)
{
    struct request *request = ingest_request->request;
    ingest_counts_settle_series(&ingest_request->counts, &ingest_request->pending, false);
    store_addition_destroy(ingest_request->addition);
    ingest_request->addition =
        store_addition_create(request->server->store, request->principal.tenant_id);
    ingest_request->sample_count = 0;
    ingest_request->cut_string_count = 0;
    forget_days(ingest_request);
    request->service_count = 0;
    request->partial_error = NULL;
    request->may_repeat = false;
    request->oldest_ns = 0;
}

enum err_code ingest_request_open(struct request *request,
                                  struct ingest_request **ret_ingest_request, struct err *err)
{
    struct tenant_limits limits;
    enum err_code code = tenant_limits_get(request, &limits, err);
    if (code)
        return code;
    code = ingest_storage_check(request->server, &limits, err);
    if (code)
        return code;
    struct ingest_request *ingest_request = mem_new(struct ingest_request, 1);
    ingest_request->request = request;
    ingest_request->limits = limits;
    ingest_request->counts = (struct ingest_counts_tenant){
        request->server->ingest->counts, request->principal.tenant_id, &ingest_request->limits};
    /* Checked before anything is decoded, so that a client far over its limit costs little. */
    code = ingest_counts_take_samples(&ingest_request->counts, 1, err);
    if (code) {
        ingest_request_close(ingest_request);
        return code;
    }
    ingest_counts_return_samples(&ingest_request->counts, 1);
    ingest_request_restart(ingest_request);
    *ret_ingest_request = ingest_request;
    return ERR_NONE;
}

void ingest_request_close(struct ingest_request *ingest_request)
{
    if (!ingest_request)
        return;
    ingest_counts_settle_series(&ingest_request->counts, &ingest_request->pending, false);
    store_addition_destroy(ingest_request->addition);
    forget_days(ingest_request);
    ingest_counts_fini_pending(&ingest_request->pending);
    mem_free(ingest_request);
}

/* ---- sizes ---- */

void ingest_request_set_limits(const struct ingest_request *ingest_request,
                               struct profile_limits *limits)
{
    const size_t most = (size_t)ingest_request->limits.values[TENANT_LIMIT_PROFILE_BYTES];
    if (limits->raw_bytes == 0 || limits->raw_bytes > most)
        limits->raw_bytes = most;
    limits->string_bytes = (size_t)ingest_request->limits.values[TENANT_LIMIT_STRING_BYTES];
    limits->expansion_ratio =
        (uint32_t)ingest_request->request->server->settings->max_expansion_ratio;
    limits->expansion_setting = "max-expansion-ratio";
}

enum err_code ingest_request_explain(const struct ingest_request *ingest_request,
                                     const struct profile_limits *limits, enum err_code code,
                                     struct err *err)
{
    char limit[TENANT_LIMITS_TEXT_BYTES];
    if (code != ERR_TOO_LARGE || err->is_final ||
        limits->raw_bytes != (size_t)ingest_request->limits.values[TENANT_LIMIT_PROFILE_BYTES])
        return code;
    tenant_limits_describe(&ingest_request->limits, TENANT_LIMIT_PROFILE_BYTES, limit);
    return err_add(err, "%s", limit);
}

/* ---- labels ---- */

enum err_code ingest_request_check_labels(const struct ingest_request *ingest_request,
                                          const struct batch_text_label *labels, size_t count,
                                          struct err *err)
{
    return batch_check_labels(&ingest_request->limits, labels, count, err);
}

struct batch_limits ingest_request_label_limits(const struct ingest_request *ingest_request)
{
    const int64_t *values = ingest_request->limits.values;
    return (struct batch_limits){.series_labels = (uint32_t)values[TENANT_LIMIT_SERIES_LABELS],
                                 .name_bytes = (uint32_t)values[TENANT_LIMIT_LABEL_NAME_BYTES],
                                 .value_bytes = (uint32_t)values[TENANT_LIMIT_LABEL_VALUE_BYTES]};
}

uint32_t ingest_request_series_labels(const struct ingest_request *ingest_request,
                                      struct span ret_names[SAMPLE_LABELS_MAX])
{
    return sample_labels_split(ingest_request->limits.sample_labels, ret_names);
}

/* ---- series ---- */

static enum err_code refuse_series(const struct ingest_request *ingest_request, struct err *err)
{
    char limit[TENANT_LIMITS_TEXT_BYTES];
    tenant_limits_describe(&ingest_request->limits, TENANT_LIMIT_ACTIVE_SERIES, limit);
    err_set(err, ERR_QUOTA,
            "Your team has reached its limit of series with profiles in the last hour: %s", limit);
    err->retry_after_s = SERIES_RETRY_S;
    return ERR_QUOTA;
}

/* Adds the batch's series to the active series of the tenant, as pending. *ret_refused_count is the
 * number of series for which the limit has no space. Returns, for each series of the batch, whether
 * it is active now. */
static bool *add_series(struct ingest_request *ingest_request, const struct batch *batch,
                        struct arena *arena, uint32_t *ret_refused_count)
{
    uint64_t *hashes = arena_new_raw(arena, uint64_t, batch->series_count);
    bool *is_counted = arena_new(arena, bool, batch->series_count);
    for (uint32_t i = 0; i < batch->series_count; i++)
        hashes[i] = store_series_hash(batch, i);
    *ret_refused_count = ingest_counts_see_series(
        &ingest_request->counts, hashes, batch->series_count, is_counted, &ingest_request->pending);
    return is_counted;
}

/* ---- services ---- */

static struct span service_of(const struct batch *batch, const struct batch_series *series)
{
    for (uint32_t i = 0; i < series->label_count; i++) {
        const struct batch_label *label = &batch->series_labels[series->first_label + i];
        if (span_equal_text(batch->tables->strings[label->name], "service_name"))
            return batch->tables->strings[label->value];
    }
    return SPAN_LITERAL("");
}

/* Adds the first profile_count profiles of the batch to the counts of their services. */
static void note_services(struct ingest_request *ingest_request, const struct batch *batch,
                          uint32_t profile_count)
{
    struct request *request = ingest_request->request;
    arena_auto arena = arena_create();
    uint32_t *indexes = arena_new_raw(arena, uint32_t, batch->series_count);
    bool *is_counted = arena_new(arena, bool, SOURCES_SERVICES_MAX);
    for (uint32_t i = 0; i < batch->series_count; i++) {
        indexes[i] = sources_find_service(request, service_of(batch, &batch->series[i]));
        if (!is_counted[indexes[i]])
            request->services[indexes[i]].cut_string_count += batch->tables->cut_string_count;
        is_counted[indexes[i]] = true;
    }
    for (uint32_t i = 0; i < profile_count; i++) {
        const struct batch_profile *profile = &batch->profiles[i];
        struct sources_service *service = &request->services[indexes[profile->series]];
        service->profile_count++;
        service->sample_count += profile->sample_count;
    }
}

/* ---- batches ---- */

/* A profile without samples costs about as much as a sample, and counts as one. */
static uint64_t count_samples(const struct batch *batch)
{
    uint64_t count = batch->sample_count;
    for (uint32_t i = 0; i < batch->profile_count; i++)
        count += batch->profiles[i].sample_count == 0;
    return count;
}

/* Whether the day is one of the request's, or can be added. */
static bool take_day(struct ingest_request *ingest_request, int64_t day)
{
    const uint32_t most = (uint32_t)ingest_request->request->server->settings->max_request_days;
    if (map_u64_find(&ingest_request->days, (uint64_t)day) != MAP_ABSENT)
        return true;
    if (ingest_request->day_count == most)
        return false;
    map_u64_add(&ingest_request->days, (uint64_t)day, 0);
    ingest_request->day_count++;
    return true;
}

static enum err_code check_days(struct ingest_request *ingest_request, const struct batch *batch,
                                struct err *err)
{
    const int64_t day_ns = 86400 * CLOCK_NS_PER_S;
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        const int64_t time_ns = batch->profiles[i].time_ns;
        if (take_day(ingest_request, time_ns / day_ns - (time_ns % day_ns < 0)))
            continue;
        err_set(err, ERR_TOO_LARGE,
                "the profiles of this request begin on more than %d days, the limit of one "
                "request (max-request-days): send them in several requests",
                ingest_request->request->server->settings->max_request_days);
        err->is_final = true;
        return ERR_TOO_LARGE;
    }
    return ERR_NONE;
}

static void note_oldest(struct request *request, const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        if (!request->oldest_ns || batch->profiles[i].time_ns < request->oldest_ns)
            request->oldest_ns = batch->profiles[i].time_ns;
    }
}

static bool is_older_than_ids(const struct batch *batch)
{
    const int64_t kept_ns = (int64_t)STORE_BATCH_ID_S * CLOCK_NS_PER_S;
    int64_t newest_ns = INT64_MIN;
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        if (batch->profiles[i].time_ns > newest_ns)
            newest_ns = batch->profiles[i].time_ns;
    }
    return newest_ns < clock_wall_ns() - kept_ns;
}

static enum err_code put_batch(struct ingest_request *ingest_request, const struct batch *batch,
                               const uint8_t *batch_id, struct err *err)
{
    if (batch->profile_count == 0)
        return ERR_NONE;
    const enum err_code code = check_days(ingest_request, batch, err);
    if (code)
        return code;
    ingest_request->sample_count += count_samples(batch);
    ingest_request->cut_string_count += batch->tables->cut_string_count;
    symbol_resolver_note(ingest_request->request->server->symbol_resolver,
                         ingest_request->request->principal.tenant_id, batch->tables);
    note_oldest(ingest_request->request, batch);
    ingest_request->request->may_repeat |= batch_id && is_older_than_ids(batch);
    return store_addition_put(ingest_request->addition, batch, batch_id, err);
}

enum err_code ingest_request_put(struct ingest_request *ingest_request, const struct batch *batch,
                                 const uint8_t *batch_id, struct err *err)
{
    arena_auto arena = arena_create();
    uint32_t refused_count;
    note_services(ingest_request, batch,
                  batch->profile_count); /* a refusal is recorded for them, too */
    for (uint32_t i = 0; i < batch->series_count; i++) {
        enum err_code code =
            batch_check_series(&ingest_request->limits, batch, &batch->series[i], err);
        if (code)
            return code;
    }
    enum err_code code = batch_check_times(&ingest_request->limits, batch, err);
    if (code)
        return code;
    add_series(ingest_request, batch, arena, &refused_count);
    return refused_count ? refuse_series(ingest_request, err)
                         : put_batch(ingest_request, batch, batch_id, err);
}

/* Reports the first reason, after those of the decoder. */
static void report_rejected(struct otlp_result *result, uint32_t count, const struct err *err)
{
    const size_t used = strlen(result->message);
    result->profile_count -= count;
    result->rejected_profiles += count;
    snprintf(result->message + used, sizeof(result->message) - used,
             "%s%" PRIu32 " profile%s dropped: %s", used ? "; " : "", count, count == 1 ? "" : "s",
             err->message);
}

/* The batch without profiles that are too far in the future, which are recorded for their services.
 */
static struct batch *drop_future(struct ingest_request *ingest_request, struct batch *batch,
                                 struct arena *arena, struct otlp_result *result)
{
    const int64_t now_ns = clock_wall_ns();
    bool *keeps = arena_new(arena, bool, batch->profile_count);
    struct err first = {0}, why;
    uint32_t dropped_count = 0;
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        keeps[i] = !batch_check_time(&ingest_request->limits, &batch->profiles[i], now_ns, &why);
        if (keeps[i])
            continue;
        if (dropped_count++ == 0)
            first = why;
        sources_note_problem(ingest_request->request,
                             service_of(batch, &batch->series[batch->profiles[i].series]),
                             why.message);
    }
    if (!dropped_count)
        return batch;
    report_rejected(result, dropped_count, &first);
    return batch_subset(batch, keeps);
}

/* Series over a limit of labels do not count as active. */
static uint32_t find_allowed(struct ingest_request *ingest_request, const struct batch *batch,
                             struct arena *arena, bool *is_allowed, struct err *err)
{
    uint64_t *hashes = arena_new_raw(arena, uint64_t, batch->series_count);
    uint32_t *numbers = arena_new_raw(arena, uint32_t, batch->series_count);
    bool *is_counted = arena_new(arena, bool, batch->series_count);
    struct err why = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->series_count; i++) {
        is_allowed[i] = false;
        if (batch_check_series(&ingest_request->limits, batch, &batch->series[i], &why)) {
            *err = why;
            continue;
        }
        hashes[count] = store_series_hash(batch, i);
        numbers[count++] = i;
    }
    const uint32_t refused_count = ingest_counts_see_series(&ingest_request->counts, hashes, count,
                                                            is_counted, &ingest_request->pending);
    for (uint32_t i = 0; i < count; i++)
        is_allowed[numbers[i]] = is_counted[i];
    if (refused_count)
        return (void)refuse_series(ingest_request, err),
               batch->series_count - count + refused_count;
    return batch->series_count - count;
}

enum err_code ingest_request_put_allowed(struct ingest_request *ingest_request, struct batch *batch,
                                         const uint8_t *batch_id, struct otlp_result *result,
                                         struct err *err)
{
    arena_auto arena = arena_create();
    bool *is_allowed = arena_new(arena, bool, batch->series_count);
    struct err why = {0};
    batch = drop_future(ingest_request, batch, arena, result);
    if (!find_allowed(ingest_request, batch, arena, is_allowed, &why)) {
        note_services(ingest_request, batch, batch->profile_count);
        return put_batch(ingest_request, batch, batch_id, err);
    }
    bool *keeps = arena_new(arena, bool, batch->profile_count);
    uint32_t dropped_count = 0;
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        const uint32_t series = batch->profiles[i].series;
        keeps[i] = is_allowed[series];
        dropped_count += !keeps[i];
        if (!keeps[i])
            sources_note_problem(ingest_request->request, service_of(batch, &batch->series[series]),
                                 why.message);
    }
    if (dropped_count)
        report_rejected(result, dropped_count, &why);
    const struct batch *kept = batch_subset(batch, keeps);
    if (kept->profile_count)
        note_services(ingest_request, kept, kept->profile_count);
    else
        note_services(ingest_request, batch, 0);
    return put_batch(ingest_request, kept, batch_id, err);
}

static void count_cut_strings(const struct ingest_request *ingest_request)
{
    metric_add(metrics_counter(ingest_request->request->server->metrics,
                               "perfolio_ingest_cut_strings_total", "",
                               "Strings of continuous profiles that were longer than the limit "
                               "string_bytes and were cut."),
               (int64_t)ingest_request->cut_string_count);
}

/* Decoding may have passed the request's deadline, which is meant for the database. */
static int64_t commit_deadline_ns(const struct request *request)
{
    const int64_t least_ns = clock_monotonic_ns() + COMMIT_LEAST_MS * CLOCK_NS_PER_MS;
    return request->deadline_ns > least_ns ? request->deadline_ns : least_ns;
}

enum err_code ingest_request_commit(struct ingest_request *ingest_request,
                                    struct store_receipt *ret_receipt, struct err *err)
{
    enum err_code code =
        ingest_counts_take_samples(&ingest_request->counts, ingest_request->sample_count, err);
    if (code)
        return code;
    code = store_addition_commit(ingest_request->addition,
                                 commit_deadline_ns(ingest_request->request), ret_receipt, err);
    if (code)
        ingest_counts_return_samples(&ingest_request->counts, ingest_request->sample_count);
    ingest_counts_settle_series(&ingest_request->counts, &ingest_request->pending, !code);
    if (!code && ret_receipt->is_duplicate) {
        ingest_request->request->may_repeat = false;
        ingest_request->request->oldest_ns = 0;
    }
    if (!code && ingest_request->cut_string_count && !ret_receipt->is_duplicate)
        count_cut_strings(ingest_request);
    return code;
}
