#include "api/identity/tenant_limits.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/http/request.h"
#include "api/identity/identity_parts.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>

enum { SET_COUNT = 1024, WAYS = 4, INPUT_MAX_BYTES = 4096 };

struct limit_kind {
    const char *name;    /* in the API and the column */
    const char *setting; /* the server's setting */
    int64_t low;
    int64_t high;
};

/* The maxima for labels are those of lib/profile/batch/batch_labels.h. */
static const struct limit_kind kinds[TENANT_LIMIT_COUNT] = {
    [TENANT_LIMIT_SAMPLES_PER_SECOND] = {"samples_per_second", "tenant-samples-per-second", 0,
                                         INT64_C(1000000000)},
    [TENANT_LIMIT_SAMPLES_BURST] = {"samples_burst", "tenant-samples-burst", 1,
                                    INT64_C(1000000000)},
    [TENANT_LIMIT_ACTIVE_SERIES] = {"active_series", "tenant-active-series", 0, 10000000},
    [TENANT_LIMIT_SERIES_LABELS] = {"series_labels", "tenant-series-labels", 1, 64},
    [TENANT_LIMIT_LABEL_NAME_BYTES] = {"label_name_bytes", "tenant-label-name-bytes", 1, 1024},
    [TENANT_LIMIT_LABEL_VALUE_BYTES] = {"label_value_bytes", "tenant-label-value-bytes", 1, 2048},
    [TENANT_LIMIT_PROFILE_BYTES] = {"profile_bytes", "tenant-profile-bytes", 1024,
                                    INT64_C(1) << 36},
    [TENANT_LIMIT_STRING_BYTES] = {"string_bytes", "tenant-string-bytes", 256, 1 << 20},
    [TENANT_LIMIT_FUTURE_S] = {"future_s", "tenant-future", 0, INT64_C(8640000000)},
    [TENANT_LIMIT_QUERY_CPU_S] = {"query_cpu_s", "tenant-query-cpu-time", 0, 3600},
    [TENANT_LIMIT_QUERY_TIME_S] = {"query_time_s", "tenant-query-time", 0, 3600},
    [TENANT_LIMIT_QUERY_MEMORY_BYTES] = {"query_memory_bytes", "tenant-query-memory", 1 << 20,
                                         INT64_C(1) << 40},
    [TENANT_LIMIT_QUERY_READ_BYTES] = {"query_read_bytes", "tenant-query-read-bytes", 1,
                                       INT64_C(1) << 50},
    [TENANT_LIMIT_RULE_KEEP_S] = {"rule_keep_s", "tenant-rule-keep", 0, INT64_C(3153600000)},
    [TENANT_LIMIT_STORED_PROFILE_BYTES] = {"stored_profile_bytes", "tenant-stored-profile-bytes", 0,
                                           INT64_C(1) << 50},
};

static int64_t setting_of(const struct settings *settings, enum tenant_limit limit)
{
    return (int64_t)settings->tenant_limits[limit];
}

/* Reads from a text that PostgreSQL made of jsonb; false if it does not contain the limit. */
static bool find_own(const json_t *own, enum tenant_limit limit, int64_t *ret_value)
{
    const json_t *value = json_object_get(own, kinds[limit].name);
    if (!json_is_integer(value))
        return false;
    *ret_value = json_integer_value(value);
    return true;
}

static void resolve_limits(const struct settings *settings, const char *json,
                           struct tenant_limits *ret_limits)
{
    json_t *own = json_loads(json, 0, NULL);
    for (enum tenant_limit limit = 0; limit < TENANT_LIMIT_COUNT; limit++) {
        ret_limits->values[limit] = setting_of(settings, limit);
        ret_limits->is_own[limit] = find_own(own, limit, &ret_limits->values[limit]);
    }
    json_decref(own);
}

/* ---- cached limits ---- */

struct known {
    int64_t tenant_id; /* 0: free */
    int64_t read_ns;   /* monotonic */
    struct tenant_limits limits;
};

struct tenant_limits_memory {
    pthread_mutex_t mutex;
    struct known sets[SET_COUNT][WAYS];
    uint64_t forget_count; /* grows with each change: limits that were read before a change must not
                              be cached after it */
    char sample_labels[SAMPLE_LABELS_BYTES]; /* the default */
};

struct tenant_limits_memory *tenant_limits_create(const char *sample_labels)
{
    struct tenant_limits_memory *memory = mem_new(struct tenant_limits_memory, 1);
    pthread_mutex_init(&memory->mutex, NULL);
    snprintf(memory->sample_labels, sizeof(memory->sample_labels), "%s", sample_labels);
    return memory;
}

const char *tenant_limits_default_labels(const struct tenant_limits_memory *memory)
{
    return memory->sample_labels;
}

void tenant_limits_destroy(struct tenant_limits_memory *memory)
{
    if (!memory)
        return;
    pthread_mutex_destroy(&memory->mutex);
    mem_free(memory);
}

static struct known *find_known(struct tenant_limits_memory *memory, int64_t tenant_id)
{
    struct known *set = memory->sets[(uint64_t)tenant_id % SET_COUNT];
    for (int i = 0; i < WAYS; i++) {
        if (set[i].tenant_id == tenant_id)
            return &set[i];
    }
    return NULL;
}

/* Replaces the oldest entry of its set. */
static void cache_limits(struct tenant_limits_memory *memory, const struct known *read,
                         uint64_t version)
{
    pthread_mutex_lock(&memory->mutex);
    struct known *entry = find_known(memory, read->tenant_id);
    if (!entry) {
        struct known *set = memory->sets[(uint64_t)read->tenant_id % SET_COUNT];
        entry = &set[0];
        for (int i = 1; i < WAYS; i++)
            entry = set[i].read_ns < entry->read_ns ? &set[i] : entry;
    }
    if (version == memory->forget_count)
        *entry = *read;
    pthread_mutex_unlock(&memory->mutex);
}

void tenant_limits_forget(struct tenant_limits_memory *memory, int64_t tenant_id)
{
    pthread_mutex_lock(&memory->mutex);
    memory->forget_count++;
    struct known *known = find_known(memory, tenant_id);
    if (known)
        *known = (struct known){0};
    pthread_mutex_unlock(&memory->mutex);
}

/* How long the limits of a tenant are used. The stored bytes of a team that sends much are read
 * more often, because it may exceed its limit by the bytes that it sends until then. */
static int64_t fresh_s(const struct tenant_limits *limits)
{
    enum { MUCH_BYTES = 64 << 20, MANY_BLOCKS = 5000 };
    const bool is_much =
        limits->replaced_profile_bytes > MUCH_BYTES || limits->block_count > MANY_BLOCKS;
    return is_much ? 1 : TENANT_LIMITS_S;
}

/* Returns the cached limits. The first caller that finds them too old gets false and reads them
 * again; meanwhile other callers use the old ones. */
static bool find_fresh(struct tenant_limits_memory *memory, int64_t tenant_id,
                       struct tenant_limits *limits, bool *ret_has_any, uint64_t *ret_version)
{
    const int64_t now_ns = clock_monotonic_ns();
    bool is_fresh = false;
    pthread_mutex_lock(&memory->mutex);
    struct known *known = find_known(memory, tenant_id);
    *ret_has_any = known != NULL;
    *ret_version = memory->forget_count;
    if (known) {
        *limits = known->limits;
        is_fresh = now_ns - known->read_ns < fresh_s(&known->limits) * CLOCK_NS_PER_S;
        known->read_ns = is_fresh ? known->read_ns : now_ns;
    }
    pthread_mutex_unlock(&memory->mutex);
    return is_fresh;
}

static enum err_code refresh_limits(const struct request *request, struct tenant_limits *ret_limits,
                                    struct err *err)
{
    const struct server *server = request->server;
    const int64_t tenant_id = request->principal.tenant_id;
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *row;
    enum err_code code = pg_take(server->database, &connection, err);
    if (code)
        return code;
    pg_limit_until(connection, request->deadline_ns);
    code = pg_query_values(
        connection, tenant_id,
        "SELECT limits::text, sample_labels,"
        " (SELECT coalesce(sum(bytes), 0)::bigint FROM block"
        "  WHERE tenant_id = $1 AND swapped_at IS NULL)"
        " + (SELECT coalesce(sum(length), 0)::bigint FROM segment_tenant, unnest(lengths) AS length"
        "    WHERE tenant_id = $1 AND NOT is_swapped),"
        " (SELECT coalesce(sum(bytes), 0)::bigint FROM block"
        "  WHERE tenant_id = $1 AND swapped_at IS NOT NULL)"
        " + (SELECT coalesce(sum(length), 0)::bigint FROM segment_tenant, unnest(lengths) AS length"
        "    WHERE tenant_id = $1 AND is_swapped),"
        " (SELECT count(*) FROM block WHERE tenant_id = $1)"
        " FROM tenant WHERE id = $1",
        arena, &row, err, PG_I64(tenant_id));
    if (code)
        return code;
    const bool has_row = pg_row_count(row) > 0;
    resolve_limits(server->settings, has_row ? pg_get_text(row, 0, 0) : "{}", ret_limits);
    const char *labels = has_row && !pg_is_null(row, 0, 1)
                             ? pg_get_text(row, 0, 1)
                             : tenant_limits_default_labels(server->identity->tenant_limits);
    snprintf(ret_limits->sample_labels, sizeof(ret_limits->sample_labels), "%s", labels);
    ret_limits->stored_profile_bytes = has_row ? pg_get_i64(row, 0, 2) : 0;
    ret_limits->replaced_profile_bytes = has_row ? pg_get_i64(row, 0, 3) : 0;
    ret_limits->block_count = has_row ? pg_get_i64(row, 0, 4) : 0;
    return ERR_NONE;
}

enum err_code tenant_limits_get(const struct request *request, struct tenant_limits *ret_limits,
                                struct err *err)
{
    const struct server *server = request->server;
    const int64_t tenant_id = request->principal.tenant_id;
    struct known read = {.tenant_id = tenant_id, .read_ns = clock_monotonic_ns()};
    bool has_any;
    uint64_t version;
    if (find_fresh(server->identity->tenant_limits, tenant_id, &read.limits, &has_any, &version)) {
        *ret_limits = read.limits;
        return ERR_NONE;
    }
    struct tenant_limits fresh;
    enum err_code code = refresh_limits(request, &fresh, err);
    if (code && !has_any)
        return code;
    if (!code) {
        read.limits = fresh;
        cache_limits(server->identity->tenant_limits, &read, version);
    }
    *ret_limits = read.limits;
    return ERR_NONE;
}

void tenant_limits_describe(const struct tenant_limits *limits, enum tenant_limit limit,
                            char ret_text[TENANT_LIMITS_TEXT_BYTES])
{
    snprintf(ret_text, TENANT_LIMITS_TEXT_BYTES, "%s is %" PRId64 ", %s%s", kinds[limit].name,
             limits->values[limit], limits->is_own[limit] ? "set for this team" : "by the setting ",
             limits->is_own[limit] ? "" : kinds[limit].setting);
}

/* ---- for operators ---- */

enum err_code tenant_limits_read_input(const struct json_body *body, struct arena *arena,
                                       const char **ret_json, struct err *err)
{
    buf_auto json;
    buf_init(&json, INPUT_MAX_BYTES);
    for (enum tenant_limit limit = 0; limit < TENANT_LIMIT_COUNT; limit++) {
        const struct limit_kind *kind = &kinds[limit];
        int64_t value;
        enum err_code code =
            json_body_i64(body, kind->name, kind->low, kind->high, -1, &value, err);
        if (code)
            return code;
        if (!json_body_has(body, kind->name))
            continue;
        buf_printf(&json, "%c\"%s\":", json.size ? ',' : '{', kind->name);
        if (value < 0)
            buf_append_text(&json, "null");
        else
            buf_printf(&json, "%" PRId64, value);
    }
    buf_append_text(&json, json.size ? "}" : "{}");
    *ret_json = arena_strndup(arena, json.data, json.size);
    return ERR_NONE;
}

void tenant_limits_write_own(struct json_response *writer, const char *json)
{
    json_t *own = json_loads(json, 0, NULL);
    for (enum tenant_limit limit = 0; limit < TENANT_LIMIT_COUNT; limit++) {
        int64_t value;
        if (find_own(own, limit, &value))
            json_response_i64(writer, kinds[limit].name, value);
        else
            json_response_null(writer, kinds[limit].name);
    }
    json_decref(own);
}

void tenant_limits_write(struct json_response *writer, const struct settings *settings,
                         const char *json)
{
    struct tenant_limits limits;
    resolve_limits(settings, json, &limits);
    for (enum tenant_limit limit = 0; limit < TENANT_LIMIT_COUNT; limit++)
        json_response_i64(writer, kinds[limit].name, limits.values[limit]);
}

const char *const *tenant_limits_names(struct arena *arena, const char *const *more)
{
    size_t count = 0;
    while (more[count])
        count++;
    const char **names = arena_new(arena, const char *, count + TENANT_LIMIT_COUNT + 1);
    for (size_t i = 0; i < count; i++)
        names[i] = more[i];
    for (enum tenant_limit limit = 0; limit < TENANT_LIMIT_COUNT; limit++)
        names[count + limit] = kinds[limit].name;
    return names;
}
