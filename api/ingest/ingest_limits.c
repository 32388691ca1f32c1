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
 * The counts of a tenant are shared by its requests, under one mutex that is held only for
 * counting.
 */
#include "api/ingest/ingest_limits.h"

#include "api/core/disk.h"
#include "api/core/metrics.h"
#include "api/core/object_store_setup.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/request.h"
#include "api/ingest/ingest_parts.h"
#include "api/ingest/series_set.h"
#include "api/ingest/sources.h"
#include "api/report/symbol_resolver.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/batch/batch.h"
#include "lib/profile/batch/batch_labels.h"
#include "lib/profile/batch/batch_subset.h"
#include "lib/profile/otlp/otlp.h"
#include "store/store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    BUCKET_COUNT = 1024,
    SWEEP_COUNT = 1024,
    LABELS_MAX = 256,
    SERIES_RETRY_S = 600,
    COMMIT_LEAST_MS = 5000,
    TYPE_PART_BYTES_MAX = 512
};

/* The counts of one tenant's recent requests. */
struct sent {
    struct sent *next;
    int64_t tenant_id;
    int64_t used_ns;
    double samples; /* tokens in the bucket */
    struct series_set series;
};

struct ingest_limits_memory {
    pthread_mutex_t mutex;
    struct sent *buckets[BUCKET_COUNT]; /* by tenant */
    uint32_t count;
    uint32_t sweep_count; /* at this number of tenants, idle ones are looked for */
    int64_t (*now_ns)(void);
};

struct ingest_limits {
    struct request *request;
    struct ingest_limits_memory *memory;
    struct tenant_limits limits;
    struct store_addition *addition;
    uint64_t sample_count;
    uint64_t cut_string_count;
    uint64_t *pending; /* series that are not known to be stored (api/ingest/series_set.h) */
    uint32_t pending_count;
    uint32_t pending_capacity;
    struct map_u64 days; /* since 1970, of the profiles that were put */
    uint32_t day_count;
};

/* ---- memory of all tenants ---- */

struct ingest_limits_memory *ingest_limits_memory_create(int64_t (*now_ns)(void))
{
    struct ingest_limits_memory *memory = mem_new(struct ingest_limits_memory, 1);
    pthread_mutex_init(&memory->mutex, NULL);
    memory->now_ns = now_ns;
    memory->sweep_count = SWEEP_COUNT;
    return memory;
}

static void free_sent(struct sent *sent)
{
    series_set_fini(&sent->series);
    mem_free(sent);
}

void ingest_limits_memory_destroy(struct ingest_limits_memory *memory)
{
    if (!memory)
        return;
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        while (memory->buckets[i]) {
            struct sent *first = memory->buckets[i];
            memory->buckets[i] = first->next;
            free_sent(first);
        }
    }
    pthread_mutex_destroy(&memory->mutex);
    mem_free(memory);
}

/* A tenant that has sent nothing for that long has a full bucket and no series. */
static void drop_idle(struct ingest_limits_memory *memory, int64_t now_ns)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        struct sent **link = &memory->buckets[i];
        while (*link) {
            struct sent *sent = *link;
            if (now_ns - sent->used_ns > INGEST_LIMITS_SERIES_S * CLOCK_NS_PER_S) {
                *link = sent->next;
                free_sent(sent);
                memory->count--;
            } else {
                link = &sent->next;
            }
        }
    }
    memory->sweep_count = memory->count * 2 > SWEEP_COUNT ? memory->count * 2 : SWEEP_COUNT;
}

/* Called with the lock held; fills the bucket up to the present. */
static struct sent *find_sent(const struct ingest_limits *ingest_limits, int64_t now_ns)
{
    struct ingest_limits_memory *memory = ingest_limits->memory;
    const int64_t tenant_id = ingest_limits->request->principal.tenant_id;
    const double most = (double)ingest_limits->limits.values[TENANT_LIMIT_SAMPLES_BURST];
    const double per_s = (double)ingest_limits->limits.values[TENANT_LIMIT_SAMPLES_PER_SECOND];
    struct sent **bucket = &memory->buckets[(uint64_t)tenant_id % BUCKET_COUNT];
    struct sent *sent = *bucket;
    while (sent && sent->tenant_id != tenant_id)
        sent = sent->next;
    if (!sent) {
        if (memory->count >= memory->sweep_count)
            drop_idle(memory, now_ns);
        sent = mem_new(struct sent, 1);
        *sent = (struct sent){
            .next = *bucket, .tenant_id = tenant_id, .used_ns = now_ns, .samples = most};
        *bucket = sent;
        memory->count++;
    }
    sent->samples += (double)(now_ns - sent->used_ns) / (double)CLOCK_NS_PER_S * per_s;
    sent->samples = sent->samples < most ? sent->samples : most;
    sent->used_ns = now_ns;
    return sent;
}

/* ---- samples ---- */

static enum err_code refuse_samples(const struct ingest_limits *ingest_limits, uint64_t wanted,
                                    double there, struct err *err)
{
    char limit[TENANT_LIMITS_TEXT_BYTES];
    const int64_t per_s = ingest_limits->limits.values[TENANT_LIMIT_SAMPLES_PER_SECOND];
    double wait_s = per_s > 0 ? ((double)wanted - there) / (double)per_s : 3600;
    tenant_limits_describe(&ingest_limits->limits, TENANT_LIMIT_SAMPLES_PER_SECOND, limit);
    err_set(err, ERR_RATE_LIMITED, "Your team sends more samples than its limit: %s", limit);
    err->retry_after_s = wait_s < 1 ? 1 : wait_s < 3600 ? (int)wait_s + 1 : 3600;
    return ERR_RATE_LIMITED;
}

static enum err_code take_samples(const struct ingest_limits *ingest_limits, uint64_t count,
                                  struct err *err)
{
    struct ingest_limits_memory *memory = ingest_limits->memory;
    const int64_t burst = ingest_limits->limits.values[TENANT_LIMIT_SAMPLES_BURST];
    if (count > (uint64_t)burst) {
        char limit[TENANT_LIMITS_TEXT_BYTES];
        tenant_limits_describe(&ingest_limits->limits, TENANT_LIMIT_SAMPLES_BURST, limit);
        return err_set(err, ERR_TOO_LARGE,
                       "%" PRIu64 " samples are more than are ever allowed at once: %s", count,
                       limit);
    }
    pthread_mutex_lock(&memory->mutex);
    struct sent *sent = find_sent(ingest_limits, memory->now_ns());
    const double there = sent->samples;
    const bool is_enough =
        there >= (double)count && ingest_limits->limits.values[TENANT_LIMIT_SAMPLES_PER_SECOND] > 0;
    if (is_enough)
        sent->samples -= (double)count;
    pthread_mutex_unlock(&memory->mutex);
    return is_enough ? ERR_NONE : refuse_samples(ingest_limits, count, there, err);
}

static void return_samples(const struct ingest_limits *ingest_limits)
{
    struct ingest_limits_memory *memory = ingest_limits->memory;
    pthread_mutex_lock(&memory->mutex);
    find_sent(ingest_limits, memory->now_ns())->samples += (double)ingest_limits->sample_count;
    pthread_mutex_unlock(&memory->mutex);
}

enum { DISK_PART = 2 };

/* The limit 0 is half of the file system. A bucket has no size. */
static uint64_t most_stored(const struct server *server, const struct tenant_limits *limits,
                            char ret_text[TENANT_LIMITS_TEXT_BYTES])
{
    const int64_t most = limits->values[TENANT_LIMIT_STORED_PROFILE_BYTES];
    tenant_limits_describe(limits, TENANT_LIMIT_STORED_PROFILE_BYTES, ret_text);
    if (most)
        return (uint64_t)most;
    snprintf(
        ret_text, TENANT_LIMITS_TEXT_BYTES,
        "stored_profile_bytes is half of the disk, by the setting tenant-stored-profile-bytes");
    return object_store_setup_are_in_s3(server->settings)
               ? UINT64_MAX
               : disk_total_bytes(server->disk) / DISK_PART;
}

/* Blocks that a merge replaced stay on the disk for some minutes, because queries may still read
 * them. A team that sends much could fill the disk with replaced blocks while it stores little. */
static enum err_code check_replaced(const struct server *server, const struct tenant_limits *limits,
                                    uint64_t most, struct err *err)
{
    enum { RETRY_S = 30 };
    const uint64_t disk_part = disk_total_bytes(server->disk) / DISK_PART;
    const uint64_t bytes =
        (uint64_t)limits->stored_profile_bytes + (uint64_t)limits->replaced_profile_bytes;
    if (object_store_setup_are_in_s3(server->settings) ||
        bytes < (most > disk_part ? most : disk_part))
        return ERR_NONE;
    err_set(
        err, ERR_RATE_LIMITED,
        "the profiles of this team and those that merges replaced, which are deleted after some "
        "minutes, take %" PRIu64 " bytes, half of the disk: send more slowly",
        bytes);
    err->retry_after_s = RETRY_S;
    return ERR_RATE_LIMITED;
}

/* A merge of segments writes a block for each day. A team that sends profiles of many days at once
 * would fill the catalogue and the disk with small blocks faster than they are merged. */
static enum err_code check_blocks(const struct tenant_limits *limits, struct err *err)
{
    enum { RETRY_S = 30, MAX_BLOCKS = 20000 };
    if (limits->block_count <= MAX_BLOCKS)
        return ERR_NONE;
    err_set(err, ERR_RATE_LIMITED,
            "the profiles of this team are in %" PRId64
            " blocks, more than %d, which have to be merged first: send profiles in the order of "
            "their time, of few days at once, or delete old ones",
            limits->block_count, MAX_BLOCKS);
    err->retry_after_s = RETRY_S;
    return ERR_RATE_LIMITED;
}

/* The stored size is read every TENANT_LIMITS_S seconds, so a tenant may exceed the limit by what
 * it sends in that time. */
static enum err_code check_stored(const struct server *server, const struct tenant_limits *limits,
                                  struct err *err)
{
    enum { RETRY_S = 300 };
    char limit[TENANT_LIMITS_TEXT_BYTES];
    const uint64_t most = most_stored(server, limits, limit);
    if ((uint64_t)limits->stored_profile_bytes < most)
        return check_replaced(server, limits, most, err);
    err_set(err, ERR_QUOTA,
            "the stored profiles of this team take %" PRId64
            " bytes: %s; keep them for a shorter time (perfolio retention set), delete some, or "
            "ask the operator for more",
            limits->stored_profile_bytes, limit);
    err->retry_after_s = RETRY_S;
    return ERR_QUOTA;
}

/* ---- from open to close ---- */

static void settle_series(struct ingest_limits *ingest_limits, bool are_stored)
{
    struct ingest_limits_memory *memory = ingest_limits->memory;
    if (!ingest_limits->pending_count)
        return;
    pthread_mutex_lock(&memory->mutex);
    struct sent *sent = find_sent(ingest_limits, memory->now_ns());
    for (uint32_t i = 0; i < ingest_limits->pending_count; i++)
        series_set_settle(&sent->series, ingest_limits->pending[i], are_stored);
    pthread_mutex_unlock(&memory->mutex);
    ingest_limits->pending_count = 0;
}

static void forget_days(struct ingest_limits *ingest_limits)
{
    map_u64_fini(&ingest_limits->days);
    ingest_limits->days = (struct map_u64){0};
    ingest_limits->day_count = 0;
}

void ingest_limits_restart(struct ingest_limits *ingest_limits)
{
    struct request *request = ingest_limits->request;
    settle_series(ingest_limits, false);
    store_addition_destroy(ingest_limits->addition);
    ingest_limits->addition =
        store_addition_create(request->server->store, request->principal.tenant_id);
    ingest_limits->sample_count = 0;
    ingest_limits->cut_string_count = 0;
    forget_days(ingest_limits);
    request->service_count = 0;
    request->partial_error = NULL;
    request->may_repeat = false;
    request->oldest_ns = 0;
}

enum err_code ingest_limits_open(struct request *request, struct ingest_limits **ret_ingest_limits,
                                 struct err *err)
{
    struct tenant_limits limits;
    enum err_code code = tenant_limits_get(request, &limits, err);
    if (!code)
        code = check_stored(request->server, &limits, err);
    if (!code)
        code = check_blocks(&limits, err);
    if (code)
        return code;
    struct ingest_limits *ingest_limits = mem_new(struct ingest_limits, 1);
    ingest_limits->request = request;
    ingest_limits->memory = request->server->ingest->limits;
    ingest_limits->limits = limits;
    /* Checked before anything is decoded, so that a client far over its limit costs little. */
    code = take_samples(ingest_limits, 1, err);
    if (code) {
        ingest_limits_close(ingest_limits);
        return code;
    }
    ingest_limits->sample_count = 1;
    return_samples(ingest_limits);
    ingest_limits_restart(ingest_limits);
    *ret_ingest_limits = ingest_limits;
    return ERR_NONE;
}

void ingest_limits_close(struct ingest_limits *ingest_limits)
{
    if (!ingest_limits)
        return;
    settle_series(ingest_limits, false);
    store_addition_destroy(ingest_limits->addition);
    forget_days(ingest_limits);
    mem_free(ingest_limits->pending);
    mem_free(ingest_limits);
}

/* ---- sizes ---- */

void ingest_limits_limit_profile(const struct ingest_limits *ingest_limits,
                                 struct profile_limits *limits)
{
    const size_t most = (size_t)ingest_limits->limits.values[TENANT_LIMIT_PROFILE_BYTES];
    if (limits->raw_bytes == 0 || limits->raw_bytes > most)
        limits->raw_bytes = most;
    limits->string_bytes = (size_t)ingest_limits->limits.values[TENANT_LIMIT_STRING_BYTES];
    limits->expansion_ratio =
        (uint32_t)ingest_limits->request->server->settings->max_expansion_ratio;
    limits->expansion_setting = "max-expansion-ratio";
}

enum err_code ingest_limits_explain(const struct ingest_limits *ingest_limits,
                                    const struct profile_limits *limits, enum err_code code,
                                    struct err *err)
{
    char limit[TENANT_LIMITS_TEXT_BYTES];
    if (code != ERR_TOO_LARGE || err->is_final ||
        limits->raw_bytes != (size_t)ingest_limits->limits.values[TENANT_LIMIT_PROFILE_BYTES])
        return code;
    tenant_limits_describe(&ingest_limits->limits, TENANT_LIMIT_PROFILE_BYTES, limit);
    return err_add(err, "%s", limit);
}

/* ---- labels ---- */

static enum err_code refuse_label(const struct ingest_limits *ingest_limits,
                                  enum tenant_limit limit, const char *what, struct span name,
                                  size_t size, struct err *err)
{
    enum { SHOWN = 60 };
    char text[TENANT_LIMITS_TEXT_BYTES];
    tenant_limits_describe(&ingest_limits->limits, limit, text);
    return err_set(err, ERR_INVALID, "the %s of label '%.*s%s' has %zu bytes: %s", what,
                   (int)(name.size < SHOWN ? name.size : SHOWN), (const char *)name.data,
                   name.size > SHOWN ? "…" : "", size, text);
}

enum err_code ingest_limits_check_labels(const struct ingest_limits *ingest_limits,
                                         const struct batch_text_label *labels, size_t count,
                                         struct err *err)
{
    const int64_t *values = ingest_limits->limits.values;
    if (count > (size_t)values[TENANT_LIMIT_SERIES_LABELS]) {
        char limit[TENANT_LIMITS_TEXT_BYTES];
        tenant_limits_describe(&ingest_limits->limits, TENANT_LIMIT_SERIES_LABELS, limit);
        return err_set(err, ERR_INVALID, "a series has %zu labels: %s", count, limit);
    }
    for (size_t i = 0; i < count; i++) {
        const struct batch_text_label *label = &labels[i];
        if (label->name.size > (size_t)values[TENANT_LIMIT_LABEL_NAME_BYTES])
            return refuse_label(ingest_limits, TENANT_LIMIT_LABEL_NAME_BYTES, "name", label->name,
                                label->name.size, err);
        if (label->value.size > (size_t)values[TENANT_LIMIT_LABEL_VALUE_BYTES])
            return refuse_label(ingest_limits, TENANT_LIMIT_LABEL_VALUE_BYTES, "value", label->name,
                                label->value.size, err);
    }
    return ERR_NONE;
}

struct batch_limits ingest_limits_of_labels(const struct ingest_limits *ingest_limits)
{
    const int64_t *values = ingest_limits->limits.values;
    return (struct batch_limits){.series_labels = (uint32_t)values[TENANT_LIMIT_SERIES_LABELS],
                                 .name_bytes = (uint32_t)values[TENANT_LIMIT_LABEL_NAME_BYTES],
                                 .value_bytes = (uint32_t)values[TENANT_LIMIT_LABEL_VALUE_BYTES]};
}

uint32_t ingest_limits_series_labels(const struct ingest_limits *ingest_limits,
                                     struct span ret_names[SAMPLE_LABELS_MAX])
{
    return sample_labels_split(ingest_limits->limits.sample_labels, ret_names);
}

/* The name part of a profile type appears in addresses, header fields and selectors. */
static enum err_code check_type(const struct batch *batch, const struct batch_series *series,
                                struct err *err)
{
    const struct batch_type *type = &series->type;
    const uint32_t parts[] = {type->name, type->sample_type.type, type->sample_type.unit,
                              type->period_type.type, type->period_type.unit};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const struct span part = batch->tables->strings[parts[i]];
        if (part.size > TYPE_PART_BYTES_MAX)
            return err_set(
                err, ERR_INVALID,
                "a part of the profile type's name has %zu bytes; at most %d are allowed",
                part.size, TYPE_PART_BYTES_MAX);
        for (size_t j = 0; j < part.size; j++) {
            if (part.data[j] < ' ' || part.data[j] == 0x7f)
                return err_set(err, ERR_INVALID,
                               "the profile type's name contains a control character");
        }
    }
    return ERR_NONE;
}

/* Checks the labels of a series and its type. */
static enum err_code check_series_labels(const struct ingest_limits *ingest_limits,
                                         const struct batch *batch,
                                         const struct batch_series *series, struct err *err)
{
    enum err_code code = check_type(batch, series, err);
    if (code)
        return code;
    struct batch_text_label labels[LABELS_MAX];
    const uint32_t count = series->label_count < LABELS_MAX ? series->label_count : LABELS_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct batch_label *label = &batch->series_labels[series->first_label + i];
        labels[i].name = batch->tables->strings[label->name];
        labels[i].value = batch->tables->strings[label->value];
    }
    return ingest_limits_check_labels(ingest_limits, labels, count, err);
}

/* ---- times ---- */

/* "3 hours", in the largest unit of which there are at least two. */
static void format_skew(int64_t skew_ns, char *text, size_t text_bytes)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = {{"years", 365 * 86400}, {"days", 86400}, {"hours", 3600}, {"minutes", 60}};
    const int64_t skew_s = skew_ns / CLOCK_NS_PER_S;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (skew_s >= 2 * units[i].seconds) {
            snprintf(text, text_bytes, "%" PRId64 " %s", skew_s / units[i].seconds, units[i].name);
            return;
        }
    }
    snprintf(text, text_bytes, "%" PRId64 " s", skew_s);
}

/* A profile of the future is found by queries of no usual window, and outlives every retention
 * rule. Clocks of clients differ, so some time ahead is allowed. */
static enum err_code check_time(const struct ingest_limits *ingest_limits,
                                const struct batch_profile *profile, int64_t now_ns,
                                struct err *err)
{
    const int64_t most_s = ingest_limits->limits.values[TENANT_LIMIT_FUTURE_S];
    const int64_t skew_ns = profile->time_ns > now_ns ? profile->time_ns - now_ns : 0;
    if (skew_ns / CLOCK_NS_PER_S <= most_s)
        return ERR_NONE;
    char skew[32], limit[TENANT_LIMITS_TEXT_BYTES];
    format_skew(skew_ns, skew, sizeof(skew));
    tenant_limits_describe(&ingest_limits->limits, TENANT_LIMIT_FUTURE_S, limit);
    return err_set(
        err, ERR_INVALID,
        "the profile's time is %s ahead of this server's clock, more than the limit "
        "allows (%s): check the clock of the agent, and whether it sends nanoseconds since 1970",
        skew, limit);
}

static enum err_code check_times(const struct ingest_limits *ingest_limits,
                                 const struct batch *batch, struct err *err)
{
    const int64_t now_ns = clock_wall_ns();
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < batch->profile_count && !code; i++)
        code = check_time(ingest_limits, &batch->profiles[i], now_ns, err);
    return code;
}

/* ---- series ---- */

static enum err_code refuse_series(const struct ingest_limits *ingest_limits, struct err *err)
{
    char limit[TENANT_LIMITS_TEXT_BYTES];
    tenant_limits_describe(&ingest_limits->limits, TENANT_LIMIT_ACTIVE_SERIES, limit);
    err_set(err, ERR_QUOTA,
            "Your team has reached its limit of series with profiles in the last hour: %s", limit);
    err->retry_after_s = SERIES_RETRY_S;
    return ERR_QUOTA;
}

static void note_pending(struct ingest_limits *ingest_limits, uint64_t hash)
{
    vec_reserve(ingest_limits->pending, ingest_limits->pending_capacity,
                ingest_limits->pending_count + 1);
    ingest_limits->pending[ingest_limits->pending_count++] = hash;
}

/* Adds the series of these hashes to the tenant's active series, in this order, until the limit is
 * reached. ret_has_room[i]: series i is active. Returns the number of series that are not. */
static uint32_t see_series(struct ingest_limits *ingest_limits, const uint64_t *hashes,
                           uint32_t count, bool *ret_has_room)
{
    struct ingest_limits_memory *memory = ingest_limits->memory;
    const uint32_t most = (uint32_t)ingest_limits->limits.values[TENANT_LIMIT_ACTIVE_SERIES];
    uint32_t refused_count = 0;
    pthread_mutex_lock(&memory->mutex);
    const int64_t now_ns = memory->now_ns();
    const int64_t now_s = now_ns / CLOCK_NS_PER_S + INGEST_LIMITS_SERIES_S; /* never 0 */
    struct sent *sent = find_sent(ingest_limits, now_ns);
    for (uint32_t i = 0; i < count; i++) {
        bool is_pending;
        ret_has_room[i] = series_set_see(&sent->series, hashes[i], now_s,
                                         now_s - INGEST_LIMITS_SERIES_S, most, &is_pending);
        refused_count += !ret_has_room[i];
        if (is_pending)
            note_pending(ingest_limits, hashes[i]);
    }
    pthread_mutex_unlock(&memory->mutex);
    return refused_count;
}

static bool *count_series(struct ingest_limits *ingest_limits, const struct batch *batch,
                          struct arena *arena, uint32_t *ret_refused_count)
{
    uint64_t *hashes = arena_new_raw(arena, uint64_t, batch->series_count);
    bool *is_counted = arena_new(arena, bool, batch->series_count);
    for (uint32_t i = 0; i < batch->series_count; i++)
        hashes[i] = store_series_hash(batch, i);
    *ret_refused_count = see_series(ingest_limits, hashes, batch->series_count, is_counted);
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
static void note_services(struct ingest_limits *ingest_limits, const struct batch *batch,
                          uint32_t profile_count)
{
    struct request *request = ingest_limits->request;
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
static bool take_day(struct ingest_limits *ingest_limits, int64_t day)
{
    const uint32_t most = (uint32_t)ingest_limits->request->server->settings->max_request_days;
    if (map_u64_find(&ingest_limits->days, (uint64_t)day) != MAP_ABSENT)
        return true;
    if (ingest_limits->day_count == most)
        return false;
    map_u64_add(&ingest_limits->days, (uint64_t)day, 0);
    ingest_limits->day_count++;
    return true;
}

static enum err_code check_days(struct ingest_limits *ingest_limits, const struct batch *batch,
                                struct err *err)
{
    const int64_t day_ns = 86400 * CLOCK_NS_PER_S;
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        const int64_t time_ns = batch->profiles[i].time_ns;
        if (take_day(ingest_limits, time_ns / day_ns - (time_ns % day_ns < 0)))
            continue;
        err_set(err, ERR_TOO_LARGE,
                "the profiles of this request begin on more than %d days, the limit of one "
                "request (max-request-days): send them in several requests",
                ingest_limits->request->server->settings->max_request_days);
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

static enum err_code put_batch(struct ingest_limits *ingest_limits, const struct batch *batch,
                               const uint8_t *batch_id, struct err *err)
{
    if (batch->profile_count == 0)
        return ERR_NONE;
    const enum err_code code = check_days(ingest_limits, batch, err);
    if (code)
        return code;
    ingest_limits->sample_count += count_samples(batch);
    ingest_limits->cut_string_count += batch->tables->cut_string_count;
    symbol_resolver_note(ingest_limits->request->server->symbol_resolver,
                         ingest_limits->request->principal.tenant_id, batch->tables);
    note_oldest(ingest_limits->request, batch);
    ingest_limits->request->may_repeat |= batch_id && is_older_than_ids(batch);
    return store_addition_put(ingest_limits->addition, batch, batch_id, err);
}

enum err_code ingest_limits_put(struct ingest_limits *ingest_limits, const struct batch *batch,
                                const uint8_t *batch_id, struct err *err)
{
    arena_auto arena = arena_create();
    uint32_t refused_count;
    note_services(ingest_limits, batch,
                  batch->profile_count); /* a refusal is recorded for them, too */
    for (uint32_t i = 0; i < batch->series_count; i++) {
        enum err_code code = check_series_labels(ingest_limits, batch, &batch->series[i], err);
        if (code)
            return code;
    }
    enum err_code code = check_times(ingest_limits, batch, err);
    if (code)
        return code;
    count_series(ingest_limits, batch, arena, &refused_count);
    return refused_count ? refuse_series(ingest_limits, err)
                         : put_batch(ingest_limits, batch, batch_id, err);
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
static struct batch *drop_future(struct ingest_limits *ingest_limits, struct batch *batch,
                                 struct arena *arena, struct otlp_result *result)
{
    const int64_t now_ns = clock_wall_ns();
    bool *keeps = arena_new(arena, bool, batch->profile_count);
    struct err first = {0}, why;
    uint32_t dropped_count = 0;
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        keeps[i] = !check_time(ingest_limits, &batch->profiles[i], now_ns, &why);
        if (keeps[i])
            continue;
        if (dropped_count++ == 0)
            first = why;
        sources_note_problem(ingest_limits->request,
                             service_of(batch, &batch->series[batch->profiles[i].series]),
                             why.message);
    }
    if (!dropped_count)
        return batch;
    report_rejected(result, dropped_count, &first);
    return batch_subset(batch, keeps);
}

/* Series over a limit of labels do not count as active. */
static uint32_t find_allowed(struct ingest_limits *ingest_limits, const struct batch *batch,
                             struct arena *arena, bool *is_allowed, struct err *err)
{
    uint64_t *hashes = arena_new_raw(arena, uint64_t, batch->series_count);
    uint32_t *numbers = arena_new_raw(arena, uint32_t, batch->series_count);
    bool *is_counted = arena_new(arena, bool, batch->series_count);
    struct err why = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->series_count; i++) {
        is_allowed[i] = false;
        if (check_series_labels(ingest_limits, batch, &batch->series[i], &why)) {
            *err = why;
            continue;
        }
        hashes[count] = store_series_hash(batch, i);
        numbers[count++] = i;
    }
    const uint32_t refused_count = see_series(ingest_limits, hashes, count, is_counted);
    for (uint32_t i = 0; i < count; i++)
        is_allowed[numbers[i]] = is_counted[i];
    if (refused_count)
        return (void)refuse_series(ingest_limits, err), batch->series_count - count + refused_count;
    return batch->series_count - count;
}

enum err_code ingest_limits_put_allowed(struct ingest_limits *ingest_limits, struct batch *batch,
                                        const uint8_t *batch_id, struct otlp_result *result,
                                        struct err *err)
{
    arena_auto arena = arena_create();
    bool *is_allowed = arena_new(arena, bool, batch->series_count);
    struct err why = {0};
    batch = drop_future(ingest_limits, batch, arena, result);
    if (!find_allowed(ingest_limits, batch, arena, is_allowed, &why)) {
        note_services(ingest_limits, batch, batch->profile_count);
        return put_batch(ingest_limits, batch, batch_id, err);
    }
    bool *keeps = arena_new(arena, bool, batch->profile_count);
    uint32_t dropped_count = 0;
    for (uint32_t i = 0; i < batch->profile_count; i++) {
        const uint32_t series = batch->profiles[i].series;
        keeps[i] = is_allowed[series];
        dropped_count += !keeps[i];
        if (!keeps[i])
            sources_note_problem(ingest_limits->request, service_of(batch, &batch->series[series]),
                                 why.message);
    }
    if (dropped_count)
        report_rejected(result, dropped_count, &why);
    const struct batch *kept = batch_subset(batch, keeps);
    if (kept->profile_count)
        note_services(ingest_limits, kept, kept->profile_count);
    else
        note_services(ingest_limits, batch, 0);
    return put_batch(ingest_limits, kept, batch_id, err);
}

static void count_cut_strings(const struct ingest_limits *ingest_limits)
{
    metric_add(metrics_counter(ingest_limits->request->server->metrics,
                               "perfolio_ingest_cut_strings_total", "",
                               "Strings of continuous profiles that were longer than the limit "
                               "string_bytes and were cut."),
               (int64_t)ingest_limits->cut_string_count);
}

/* Decoding may have passed the request's deadline, which is meant for the database. */
static int64_t commit_deadline_ns(const struct request *request)
{
    const int64_t least_ns = clock_monotonic_ns() + COMMIT_LEAST_MS * CLOCK_NS_PER_MS;
    return request->deadline_ns > least_ns ? request->deadline_ns : least_ns;
}

enum err_code ingest_limits_commit(struct ingest_limits *ingest_limits,
                                   struct store_receipt *ret_receipt, struct err *err)
{
    enum err_code code = take_samples(ingest_limits, ingest_limits->sample_count, err);
    if (code)
        return code;
    code = store_addition_commit(ingest_limits->addition,
                                 commit_deadline_ns(ingest_limits->request), ret_receipt, err);
    if (code)
        return_samples(ingest_limits);
    settle_series(ingest_limits, !code);
    if (!code && ret_receipt->is_duplicate) {
        ingest_limits->request->may_repeat = false;
        ingest_limits->request->oldest_ns = 0;
    }
    if (!code && ingest_limits->cut_string_count && !ret_receipt->is_duplicate)
        count_cut_strings(ingest_limits);
    return code;
}
