#include "api/ingest/sources.h"

#include "api/core/server.h"
#include "api/http/problem.h"
#include "api/http/request.h"
#include "api/http/route.h"
#include "api/ingest/ingest_parts.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/mem.h"
#include "lib/base/span_utf8.h"
#include "lib/base/vec.h"
#include "lib/io/pg.h"
#include "lib/profile/batch/batch_labels.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

enum {
    BUCKET_COUNT = 1024,
    KEY_BYTES = 16,
    AGENT_BYTES = 300,
    SERVICE_BYTES = 200,
    ERROR_BYTES = 500,
    WRITE_AT_ONCE = 500,
    WRITE_MAX_BYTES = 16 << 20,
    WRITE_ROUNDS_MAX = SOURCES_MAX / WRITE_AT_ONCE, /* statements that suffice for all sources */
    PRUNE_S = 600
};

/* The maximum of one count. A sum that exceeds the column would prevent the sources of all tenants
 * from being written; the column can hold the sum of many counts of this size. */
#define COUNT_MAX (UINT64_C(1) << 48)

struct counts {
    uint64_t batches;
    uint64_t profiles;
    uint64_t samples;
    uint64_t cut_strings;
    uint64_t errors;
};

/* Identifies a source; key is a hash of it. */
struct identity {
    int64_t token_id;
    int64_t user_id;
    const char *service;
    const char *agent;
    const char *protocol; /* literal */
    const char *address;
};

struct source {
    uint8_t key[KEY_BYTES];
    struct identity identity; /* its texts belong to the source */
    struct counts counts;     /* not written yet */
    int64_t first_seen_ns;    /* since 1970 */
    int64_t last_seen_ns;
    int64_t last_error_ns; /* 0: none that is not written */
    char *last_error;
    bool is_dirty;
};

struct team {
    struct team *next;
    int64_t tenant_id;
    struct source *sources;
    uint32_t count;
    uint32_t capacity;
};

struct sources {
    pthread_mutex_t mutex; /* guards the members below, held shortly */
    struct team *buckets[BUCKET_COUNT];
    uint32_t count;
    pthread_mutex_t write_mutex; /* one thread writes at a time */
    int64_t pruned_ns;           /* monotonic; used by the thread of background work */
};

struct sources *sources_create(void)
{
    struct sources *sources = mem_new(struct sources, 1);
    pthread_mutex_init(&sources->mutex, NULL);
    pthread_mutex_init(&sources->write_mutex, NULL);
    return sources;
}

static void free_source(struct source *source)
{
    const struct identity *identity = &source->identity;
    const char *const texts[] = {identity->service, identity->agent, identity->address,
                                 source->last_error};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        mem_free((char *)(uintptr_t)texts[i]);
}

static void free_team(struct team *team)
{
    for (uint32_t i = 0; i < team->count; i++)
        free_source(&team->sources[i]);
    mem_free(team->sources);
    mem_free(team);
}

void sources_destroy(struct sources *sources)
{
    if (!sources)
        return;
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        while (sources->buckets[i]) {
            struct team *team = sources->buckets[i];
            sources->buckets[i] = team->next;
            free_team(team);
        }
    }
    pthread_mutex_destroy(&sources->mutex);
    pthread_mutex_destroy(&sources->write_mutex);
    mem_free(sources);
}

/* ---- finding; called with the lock held ---- */

static struct team *find_team(struct sources *sources, int64_t tenant_id, bool is_added)
{
    struct team **bucket = &sources->buckets[(uint64_t)tenant_id % BUCKET_COUNT];
    struct team *team = *bucket;
    while (team && team->tenant_id != tenant_id)
        team = team->next;
    if (team || !is_added)
        return team;
    team = mem_new(struct team, 1);
    *team = (struct team){.next = *bucket, .tenant_id = tenant_id};
    return *bucket = team;
}

static struct source *find_source(struct team *team, const uint8_t key[KEY_BYTES])
{
    for (uint32_t i = 0; i < team->count; i++) {
        if (memcmp(team->sources[i].key, key, KEY_BYTES) == 0)
            return &team->sources[i];
    }
    return NULL;
}

/* Finds the source of a request that failed before its service was known: the only one with the
 * request's token, user, program, protocol and address. NULL if there are several, or none. */
static struct source *find_only(struct team *team, const struct identity *identity)
{
    struct source *only = NULL;
    for (uint32_t i = 0; i < team->count; i++) {
        struct source *source = &team->sources[i];
        const struct identity *known = &source->identity;
        const bool is_same =
            known->token_id == identity->token_id && known->user_id == identity->user_id &&
            known->protocol == identity->protocol && strcmp(known->agent, identity->agent) == 0 &&
            strcmp(known->address, identity->address) == 0;
        if (is_same && only)
            return NULL;
        only = is_same ? source : only;
    }
    return only;
}

/* The source that was not seen for longest; with is_written, among those whose changes are written.
 * NULL: there is none. */
static struct source *find_oldest(struct team *team, bool is_written)
{
    struct source *oldest = NULL;
    for (uint32_t i = 0; i < team->count; i++) {
        struct source *source = &team->sources[i];
        if (!(is_written && source->is_dirty) &&
            (!oldest || source->last_seen_ns < oldest->last_seen_ns))
            oldest = source;
    }
    return oldest;
}

/* Returns an entry for a new source, or replaces the oldest one at the limit; NULL if there are too
 * many in total. Sources that are not written yet are replaced only when there are far too many. */
static struct source *take_source(struct sources *sources, struct team *team)
{
    struct source *oldest = NULL;
    if (team->count >= SOURCES_TENANT_MAX)
        oldest = find_oldest(team, true);
    if (!oldest && team->count >= SOURCES_TENANT_UNWRITTEN_MAX)
        oldest = find_oldest(team, false);
    if (oldest) {
        free_source(oldest);
        return oldest;
    }
    if (sources->count >= SOURCES_MAX)
        return NULL;
    vec_reserve(team->sources, team->capacity, team->count + 1);
    sources->count++;
    return &team->sources[team->count++];
}

static struct source *add_source(struct sources *sources, struct team *team,
                                 const struct identity *identity, const uint8_t key[KEY_BYTES],
                                 int64_t now_ns)
{
    struct source *source = take_source(sources, team);
    if (!source)
        return NULL;
    *source = (struct source){.identity = *identity, .first_seen_ns = now_ns};
    source->identity.service = mem_strdup(identity->service);
    source->identity.agent = mem_strdup(identity->agent);
    source->identity.address = mem_strdup(identity->address);
    memcpy(source->key, key, KEY_BYTES);
    return source;
}

/* ---- recording ---- */

static const char *protocol_of(const struct request *request)
{
    const unsigned flags = request->route->flags;
    return flags & ROUTE_OTLP        ? "otlp"
           : flags & ROUTE_CONNECT   ? "pyroscope-push"
           : flags & ROUTE_PYROSCOPE ? "pyroscope-ingest"
                                     : "perfolio";
}

/* In a form that can be stored: UTF-8 without control characters, at most `most` bytes. */
static const char *clean_text(struct arena *arena, struct span text, size_t most)
{
    if (text.size > most) {
        text.size = most;
        while (text.size && (text.data[text.size] & 0xc0) == 0x80)
            text.size--;
    }
    char *copy = arena_strndup(arena, text.data, text.size);
    const bool is_utf8 = span_is_utf8(text);
    for (size_t i = 0; i < text.size; i++) {
        const uint8_t byte = (uint8_t)copy[i];
        if (byte < ' ' || byte == 0x7f || (!is_utf8 && byte > 0x7f))
            copy[i] = '?';
    }
    return copy;
}

static void hash_identity(const struct identity *identity, uint8_t ret_key[KEY_BYTES])
{
    const char *const texts[] = {identity->service, identity->agent, identity->protocol,
                                 identity->address};
    uint8_t hash[DIGEST_BYTES];
    buf_auto text;
    buf_init(&text, 1 << 12);
    buf_printf(&text, "%" PRId64 " %" PRId64, identity->token_id, identity->user_id);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        buf_append_byte(&text, 0);
        buf_append_text(&text, texts[i]);
    }
    digest_sha256(buf_span(&text), hash);
    memcpy(ret_key, hash, KEY_BYTES);
}

struct note {
    struct identity identity;
    struct counts counts;
    const char *error; /* NULL: none */
    int64_t now_ns;
};

static void note_one(struct sources *sources, struct team *team, const struct note *note)
{
    uint8_t key[KEY_BYTES];
    hash_identity(&note->identity, key);
    struct source *source = find_source(team, key);
    if (!source && note->error && !note->identity.service[0])
        source = find_only(team, &note->identity);
    if (!source)
        source = add_source(sources, team, &note->identity, key, note->now_ns);
    if (!source)
        return;
    source->counts.batches += note->counts.batches;
    source->counts.profiles += note->counts.profiles;
    source->counts.samples += note->counts.samples;
    source->counts.cut_strings += note->counts.cut_strings;
    source->counts.errors += note->counts.errors;
    source->last_seen_ns = note->now_ns;
    source->is_dirty = true;
    if (!note->error)
        return;
    mem_free(source->last_error);
    source->last_error = mem_strdup(note->error);
    source->last_error_ns = note->now_ns;
}

void sources_name_service(struct request *request, const struct batch_text_label *labels,
                          size_t count, struct span other)
{
    request->named_service = other;
    for (size_t i = 0; i < count; i++) {
        if (labels[i].value.size && batch_labels_is_service(labels[i].name))
            request->named_service = labels[i].value;
    }
}

uint32_t sources_find_service(struct request *request, struct span name)
{
    if (!request->services)
        request->services = arena_new(request->arena, struct sources_service, SOURCES_SERVICES_MAX);
    for (uint32_t i = 0; i < request->service_count; i++) {
        if (span_equal(request->services[i].name, name))
            return i;
    }
    if (request->service_count == SOURCES_SERVICES_MAX)
        return SOURCES_SERVICES_MAX - 1;
    const bool is_last = request->service_count == SOURCES_SERVICES_MAX - 1;
    if (is_last)
        name = SPAN_LITERAL("(others)");
    request->services[request->service_count] = (struct sources_service){
        .name = span_of(arena_strndup(request->arena, name.data, name.size), name.size)};
    return (uint32_t)request->service_count++;
}

void sources_note_problem(struct request *request, struct span service, const char *problem)
{
    const uint32_t index = sources_find_service(request, service);
    if (!request->services[index].problem)
        request->services[index].problem = arena_strdup(request->arena, problem);
}

/* The error of one service; NULL: none. A problem of single services is not recorded for the
 * others. */
static const char *error_of(const struct request *request, const struct sources_service *service,
                            const char *error)
{
    bool is_of_some = false;
    for (size_t i = 0; i < request->service_count; i++)
        is_of_some |= request->services[i].problem != NULL;
    return is_of_some ? service->problem : error;
}

void sources_note(const struct request *request, enum err_code code, const struct err *err)
{
    struct sources *sources = request->server->ingest->sources;
    struct arena *arena = request->arena;
    const char *error = code ? problem_text(err) : request->partial_error;
    struct note note = {
        .identity = {.token_id = request->principal.token_id,
                     .user_id = request->principal.user_id,
                     .service = "",
                     .agent = clean_text(arena, request_field(request, "user-agent"), AGENT_BYTES),
                     .protocol = protocol_of(request),
                     .address = request->address},
        .counts = {.batches = !code, .errors = error != NULL},
        .error = error ? clean_text(arena, span_text(error), ERROR_BYTES) : NULL,
        .now_ns = clock_wall_ns(),
    };
    pthread_mutex_lock(&sources->mutex);
    struct team *team = find_team(sources, request->principal.tenant_id, true);
    for (size_t i = 0; i < request->service_count; i++) {
        const struct sources_service *service = &request->services[i];
        note.identity.service = clean_text(arena, service->name, SERVICE_BYTES);
        note.counts.profiles = code ? 0 : service->profile_count;
        note.counts.samples = code ? 0 : service->sample_count;
        note.counts.cut_strings = code ? 0 : service->cut_string_count;
        if (!code) {
            const char *own = error_of(request, service, error);
            note.counts.errors = own != NULL;
            note.error = own ? clean_text(arena, span_text(own), ERROR_BYTES) : NULL;
        }
        note_one(sources, team, &note);
    }
    /* An empty request that succeeds is recorded for no source. */
    if (request->service_count == 0 && error) {
        note.identity.service = clean_text(arena, request->named_service, SERVICE_BYTES);
        note_one(sources, team, &note);
    }
    pthread_mutex_unlock(&sources->mutex);
}

/* ---- writing ---- */

/* A source as it was when it was put into a statement. */
struct written {
    int64_t tenant_id;
    uint8_t key[KEY_BYTES];
    struct counts counts;
    int64_t first_seen_ns;
    int64_t last_seen_ns;
    int64_t last_error_ns;
};

struct writing {
    struct buf json; /* an array of objects */
    struct written rows[WRITE_AT_ONCE];
    uint32_t count;
};

static void append_text(struct buf *json, const char *name, const char *text)
{
    buf_printf(json, ",\"%s\":", name);
    if (text)
        buf_append_json(json, span_text(text));
    else
        buf_append_text(json, "null");
}

static uint64_t clamp_count(uint64_t count)
{
    return count < COUNT_MAX ? count : COUNT_MAX;
}

static void append_row(struct writing *writing, int64_t tenant_id, const struct source *source)
{
    struct buf *json = &writing->json;
    const struct identity *identity = &source->identity;
    const struct counts *counts = &source->counts;
    struct written *row = &writing->rows[writing->count++];
    char hex[2 * KEY_BYTES + 1];
    digest_hex(span_of(source->key, KEY_BYTES), hex);
    buf_printf(json, "%c{\"tenant\":%" PRId64 ",\"key\":\"%s\"", json->size ? ',' : '[', tenant_id,
               hex);
    buf_printf(json, ",\"token\":%" PRId64 ",\"person\":%" PRId64, identity->token_id,
               identity->user_id);
    append_text(json, "service", identity->service);
    append_text(json, "agent", identity->agent);
    append_text(json, "protocol", identity->protocol);
    append_text(json, "address", identity->address);
    buf_printf(json, ",\"first_us\":%" PRId64 ",\"last_us\":%" PRId64, source->first_seen_ns / 1000,
               source->last_seen_ns / 1000);
    buf_printf(json,
               ",\"batches\":%" PRIu64 ",\"profiles\":%" PRIu64 ",\"samples\":%" PRIu64
               ",\"cut_strings\":%" PRIu64 ",\"errors\":%" PRIu64,
               clamp_count(counts->batches), clamp_count(counts->profiles),
               clamp_count(counts->samples), clamp_count(counts->cut_strings),
               clamp_count(counts->errors));
    append_text(json, "error", source->last_error);
    buf_printf(json, ",\"error_us\":%" PRId64 "}", source->last_error_ns / 1000);
    *row = (struct written){.tenant_id = tenant_id,
                            .counts = *counts,
                            .first_seen_ns = source->first_seen_ns,
                            .last_seen_ns = source->last_seen_ns,
                            .last_error_ns = source->last_error_ns};
    memcpy(row->key, source->key, KEY_BYTES);
}

static void collect_team(struct writing *writing, const struct team *team)
{
    for (uint32_t i = 0; i < team->count && writing->count < WRITE_AT_ONCE; i++) {
        if (team->sources[i].is_dirty)
            append_row(writing, team->tenant_id, &team->sources[i]);
    }
}

static void collect_changes(struct sources *sources, int64_t tenant_id, struct writing *writing)
{
    writing->count = 0;
    buf_clear(&writing->json);
    pthread_mutex_lock(&sources->mutex);
    if (tenant_id != PG_NO_TENANT) {
        const struct team *team = find_team(sources, tenant_id, false);
        if (team)
            collect_team(writing, team);
    }
    for (size_t i = 0; tenant_id == PG_NO_TENANT && i < BUCKET_COUNT; i++) {
        for (const struct team *team = sources->buckets[i]; team; team = team->next)
            collect_team(writing, team);
    }
    pthread_mutex_unlock(&sources->mutex);
    buf_append_text(&writing->json, "]");
}

static void subtract_counts(uint64_t *count, uint64_t written)
{
    *count -= *count < written ? *count : written;
}

/* Subtracts the counts that were written; those added meanwhile are written later. A source that
 * was replaced meanwhile and added again keeps all its counts. */
static void settle_row(struct sources *sources, const struct written *row)
{
    struct team *team = find_team(sources, row->tenant_id, false);
    struct source *source = team ? find_source(team, row->key) : NULL;
    if (!source || source->first_seen_ns != row->first_seen_ns)
        return;
    subtract_counts(&source->counts.batches, row->counts.batches);
    subtract_counts(&source->counts.profiles, row->counts.profiles);
    subtract_counts(&source->counts.samples, row->counts.samples);
    subtract_counts(&source->counts.cut_strings, row->counts.cut_strings);
    subtract_counts(&source->counts.errors, row->counts.errors);
    source->is_dirty = source->last_seen_ns != row->last_seen_ns;
    if (source->last_error_ns != row->last_error_ns)
        return;
    mem_free(source->last_error);
    source->last_error = NULL;
    source->last_error_ns = 0;
}

static void settle_written(struct sources *sources, const struct writing *writing)
{
    pthread_mutex_lock(&sources->mutex);
    for (uint32_t i = 0; i < writing->count; i++)
        settle_row(sources, &writing->rows[i]);
    pthread_mutex_unlock(&sources->mutex);
}

/* Skips tenants that are being deleted (api/identity/tenant.h). */
static const char write_sql[] =
    "WITH new AS (SELECT * FROM jsonb_to_recordset($1::text::jsonb) AS t (tenant bigint, key text,"
    "  token bigint, person bigint, service text, agent text, protocol text, address text,"
    "  first_us bigint, last_us bigint, batches bigint, profiles bigint, samples bigint,"
    "  cut_strings bigint, errors bigint, error text, error_us bigint)),"
    " team AS (SELECT id FROM tenant WHERE id IN (SELECT tenant FROM new) ORDER BY id"
    "  FOR KEY SHARE SKIP LOCKED)"
    " INSERT INTO source AS s (tenant_id, key, token_id, user_id, service, agent, protocol,"
    "  address, first_seen_at, last_seen_at, batches, profiles, samples, cut_strings, errors,"
    "  last_error,"
    "  last_error_at)"
    " SELECT tenant, decode(key, 'hex'), nullif(token, 0), nullif(person, 0), service, agent,"
    "  protocol, address, timestamptz 'epoch' + first_us * interval '1 microsecond',"
    "  timestamptz 'epoch' + last_us * interval '1 microsecond', batches, profiles, samples,"
    "  cut_strings, errors, error, CASE WHEN error_us > 0 THEN"
    "  timestamptz 'epoch' + error_us * interval '1 microsecond' END"
    " FROM new JOIN team ON team.id = tenant ORDER BY tenant, key"
    " ON CONFLICT (tenant_id, key) DO UPDATE SET"
    "  last_seen_at = greatest(s.last_seen_at, excluded.last_seen_at),"
    "  batches = s.batches + excluded.batches, profiles = s.profiles + excluded.profiles,"
    "  samples = s.samples + excluded.samples,"
    "  cut_strings = s.cut_strings + excluded.cut_strings, errors = s.errors + excluded.errors,"
    "  last_error = coalesce(excluded.last_error, s.last_error),"
    "  last_error_at = coalesce(excluded.last_error_at, s.last_error_at)";

static enum err_code write_some(struct server *server, const struct writing *writing,
                                struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    enum err_code code = pg_take(server->jobs_database, &connection, err);
    return code ? code
                : pg_query_values(connection, PG_NO_TENANT, write_sql, arena, NULL, err,
                                  PG_SPAN(buf_span(&writing->json)));
}

enum err_code sources_write(struct server *server, int64_t tenant_id, struct err *err)
{
    struct sources *sources = server->ingest->sources;
    struct writing *writing = mem_new(struct writing, 1);
    enum err_code code = ERR_NONE;
    int rounds = 0;
    buf_init(&writing->json, WRITE_MAX_BYTES);
    pthread_mutex_lock(&sources->write_mutex);
    do {
        collect_changes(sources, tenant_id, writing);
        if (writing->count)
            code = write_some(server, writing, err);
        if (!code)
            settle_written(sources, writing);
    } while (!code && writing->count == WRITE_AT_ONCE && ++rounds < WRITE_ROUNDS_MAX);
    pthread_mutex_unlock(&sources->write_mutex);
    buf_fini(&writing->json);
    mem_free(writing);
    return code;
}

/* ---- dropping idle sources ---- */

static void drop_idle_of(struct sources *sources, struct team *team, int64_t since_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < team->count; i++) {
        struct source *source = &team->sources[i];
        if (source->is_dirty || source->last_seen_ns >= since_ns)
            team->sources[kept++] = *source;
        else
            free_source(source);
    }
    sources->count -= team->count - kept;
    team->count = kept;
}

static void drop_idle(struct sources *sources)
{
    const int64_t since_ns = clock_wall_ns() - SOURCES_IDLE_S * CLOCK_NS_PER_S;
    pthread_mutex_lock(&sources->mutex);
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        struct team **link = &sources->buckets[i];
        while (*link) {
            struct team *team = *link;
            drop_idle_of(sources, team, since_ns);
            if (team->count) {
                link = &team->next;
                continue;
            }
            *link = team->next;
            free_team(team);
        }
    }
    pthread_mutex_unlock(&sources->mutex);
}

static enum err_code prune_table(struct server *server, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    enum err_code code = pg_take(server->jobs_database, &connection, err);
    return code ? code
                : pg_query_values(
                      connection, PG_NO_TENANT,
                      "DELETE FROM source s USING (SELECT tenant_id, key, last_seen_at,"
                      " row_number() OVER (PARTITION BY tenant_id ORDER BY last_seen_at DESC) AS n"
                      " FROM source) AS o WHERE s.tenant_id = o.tenant_id AND s.key = o.key"
                      " AND (o.n > $1 OR o.last_seen_at < now() - interval '30 days')",
                      arena, NULL, err, PG_I64(SOURCES_TENANT_MAX));
}

enum err_code sources_jobs_run(struct server *server, struct err *err)
{
    struct sources *sources = server->ingest->sources;
    const int64_t now_ns = clock_monotonic_ns();
    enum err_code code = sources_write(server, PG_NO_TENANT, err);
    if (code || (sources->pruned_ns && now_ns - sources->pruned_ns < PRUNE_S * CLOCK_NS_PER_S))
        return code;
    sources->pruned_ns = now_ns;
    drop_idle(sources);
    return prune_table(server, err);
}
