#include "api/query/report_cache.h"

#include "api/core/server.h"
#include "api/query/query.h"
#include "api/report/symbolization_status.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mem.h"

enum { KEY_MAX_BYTES = 1 << 20 };

/* The reason why addresses have no names may change without a change of a table; for this long the
 * cached one is used. */
static const int64_t status_age_ns = 10 * CLOCK_NS_PER_S;

struct report_cache {
    struct flight_cache *cache;
};

/* A complete report, and the description of the result that it was computed from. */
struct finished {
    struct buf body;
    bool is_zstd;
    struct store_result answer; /* without a profile */
    char *type;                 /* answer.type */
    int64_t made_ns;
    _Atomic uint32_t reader_count;
};

struct report_request {
    struct request *request;
    const struct report *report;
    bool is_zstd;
    const struct store_result *answer; /* that the report is computed from */
    bool has_begun;             /* the report is being computed; other requests may do the same */
    struct flight_entry *entry; /* of the cached report */
};

static void destroy_finished(void *value)
{
    struct finished *finished = value;
    buf_fini(&finished->body);
    mem_free(finished->type);
    mem_free(finished);
}

struct report_cache *report_cache_create(size_t max_bytes)
{
    struct report_cache *answers = mem_new(struct report_cache, 1);
    answers->cache = flight_cache_create(max_bytes, destroy_finished);
    return answers;
}

void report_cache_destroy(struct report_cache *answers)
{
    if (!answers)
        return;
    flight_cache_destroy(answers->cache);
    mem_free(answers);
}

size_t report_cache_bytes(struct report_cache *answers)
{
    return flight_cache_bytes(answers->cache);
}

static struct flight_cache *cache_of(const struct report_request *ask)
{
    return ask->request->server->report_cache->cache;
}

static void unref(void *entry)
{
    flight_cache_unref(entry);
}

struct report_request *report_request_create(struct request *request, const struct report *report)
{
    struct report_request *ask = arena_new(request->arena, struct report_request, 1);
    ask->request = request;
    ask->report = report;
    ask->is_zstd = report->kind->compresses && request_accepts_encoding(request, "zstd");
    return ask;
}

static const char *key_of(const struct report_request *ask, const char *identity)
{
    buf_auto key;
    buf_init(&key, KEY_MAX_BYTES);
    buf_printf(&key, "%s%s", identity, ask->is_zstd ? " zstd" : " plain");
    report_append_question(ask->report, &key);
    return buf_failed(&key) ? NULL : arena_strndup(ask->request->arena, key.data, key.size);
}

static bool is_outdated(const struct finished *finished)
{
    return finished->answer.statistics.names.unknown_count &&
           clock_monotonic_ns() - finished->made_ns > status_age_ns;
}

static bool has_finished(void *context, const char *identity)
{
    struct report_request *ask = context;
    const char *key = key_of(ask, identity);
    ask->entry = key ? flight_cache_try(cache_of(ask), key) : NULL;
    if (ask->entry && is_outdated(flight_cache_get(ask->entry))) {
        flight_cache_unref(ask->entry);
        flight_cache_forget(cache_of(ask), key);
        ask->entry = NULL;
    }
    if (ask->entry)
        arena_on_destroy(ask->request->arena, unref, ask->entry);
    return ask->entry != NULL;
}

void report_request_watch(struct report_request *ask, struct store_query *query)
{
    query->has_result = has_finished;
    query->has_result_context = ask;
}

/* ---- computing ---- */

/* The names that the result still lacks; NULL if that cannot be determined now. */
static const char *describe_names(const struct report_request *ask)
{
    struct request *request = ask->request;
    struct symbolization_status status = {0};
    struct err ignored;
    if (symbolization_status_add_profile(request, request->principal.tenant_id,
                                         ask->answer->profile, &status, &ignored))
        return NULL;
    return symbolization_status_write(request, &status);
}

static enum err_code write_body(const struct report_request *ask, struct buf *body, struct err *err)
{
    const struct profile *const profiles[2] = {ask->answer->profile, NULL};
    struct report report = *ask->report;
    report.symbolization = describe_names(ask);
    if (!ask->is_zstd)
        return report_write_profiles(&report, profiles, body, err);
    buf_auto plain;
    buf_init(&plain, report.max_bytes);
    enum err_code code = report_write_profiles(&report, profiles, &plain, err);
    return code ? code : compress_zstd(buf_span(&plain), COMPRESS_ZSTD_FAST, body, err);
}

/* A copy of the exact size: the buffer that it was written or compressed into is larger. */
static struct buf copy_exactly(const struct buf *body)
{
    struct buf exact;
    buf_init(&exact, body->size + 1);
    buf_append_span(&exact, buf_span(body));
    return exact;
}

static enum err_code make_finished(void *context, void **ret_value, size_t *ret_bytes,
                                   struct err *err)
{
    struct report_request *ask = context;
    ask->has_begun = true;
    buf_auto body;
    buf_init(&body, ask->report->max_bytes);
    enum err_code code = write_body(ask, &body, err);
    if (code)
        return code;
    struct finished *finished = mem_new(struct finished, 1);
    finished->body = copy_exactly(&body);
    finished->is_zstd = ask->is_zstd;
    finished->made_ns = clock_monotonic_ns();
    finished->type = mem_strdup(ask->answer->type);
    finished->answer = (struct store_result){.aggregation = ask->answer->aggregation,
                                             .type = finished->type,
                                             .statistics = ask->answer->statistics};
    *ret_value = finished;
    *ret_bytes = sizeof(*finished) + finished->body.capacity;
    return ERR_NONE;
}

static void send_bytes(struct report_request *ask, struct response *response, struct span body)
{
    if (ask->is_zstd) {
        response_add(ask->request, response, "content-encoding", "zstd");
        response_add(ask->request, response, "vary", "accept-encoding");
    }
    response_add(ask->request, response, "cache-control", "private, no-cache");
    response->may_compress = ask->report->kind->compresses && !ask->is_zstd;
    response_bytes(response, 200, ask->report->kind->content_type, body);
}

static enum err_code respond_once(struct report_request *ask, struct response *response,
                                  const struct store_result *answer, int64_t begin_ns,
                                  struct err *err)
{
    buf_auto body;
    buf_init(&body, ask->report->max_bytes);
    query_add_fields(ask->request, response, answer, begin_ns);
    enum err_code code = write_body(ask, &body, err);
    if (code)
        return code;
    send_bytes(ask, response, (struct span){0});
    return response_buf(ask->request, response, 200, ask->report->kind->content_type, &body, err);
}

const struct store_statistics *report_request_statistics(const struct report_request *ask)
{
    const struct finished *finished = ask->entry ? flight_cache_get(ask->entry) : NULL;
    return finished ? &finished->answer.statistics : &ask->answer->statistics;
}

enum err_code report_request_respond(struct report_request *ask, struct response *response,
                                     const struct store_result *answer, int64_t begin_ns,
                                     struct err *err)
{
    ask->answer = answer;
    const char *key = *answer->identity ? key_of(ask, answer->identity) : NULL;
    if (!ask->entry && key) {
        enum err_code code = flight_cache_ref_within(cache_of(ask), key, &ask->report->wait_limit,
                                                     make_finished, ask, &ask->entry, err);
        if (code && ask->has_begun)
            return code;
        if (!code)
            arena_on_destroy(ask->request->arena, unref, ask->entry);
    }
    if (!ask->entry) /* its result has no key, or the other request stopped for a reason of its own
                      */
        return respond_once(ask, response, answer, begin_ns, err);
    struct finished *finished = flight_cache_get(ask->entry);
    query_add_fields(ask->request, response, &finished->answer, begin_ns);
    send_bytes(ask, response, buf_span(&finished->body));
    response->reader_count = &finished->reader_count;
    return ERR_NONE;
}
