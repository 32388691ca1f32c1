#include "api/query/report_cache.h"

#include "api/core/server.h"
#include "api/query/query_fields.h"
#include "api/query/query_parts.h"
#include "api/report/report_body.h"
#include "api/report/symbolization_status.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mem.h"

/* A cached report that states reasons for missing names is used for this long only, because the
 * reasons may change without a change of a table. */
static const int64_t status_age_ns = 10 * CLOCK_NS_PER_S;

struct report_cache {
    struct flight_cache *cache;
};

/* A complete report, and the description of the result that it was computed from. */
struct finished {
    struct report_body body;
    struct store_result result; /* without a profile */
    char *type;                 /* result.type */
    int64_t made_ns;
};

struct report_cache_request {
    struct request *request;
    const struct report *report;
    bool is_zstd;
    const struct store_result *result; /* the result that the report is computed from */
    bool has_begun;             /* the report is being computed; other requests may do the same */
    struct flight_entry *entry; /* of the cached report */
};

static void destroy_finished(void *value)
{
    struct finished *finished = value;
    report_body_fini(&finished->body);
    mem_free(finished->type);
    mem_free(finished);
}

struct report_cache *report_cache_create(size_t max_bytes)
{
    struct report_cache *report_cache = mem_new(struct report_cache, 1);
    report_cache->cache = flight_cache_create(max_bytes, destroy_finished);
    return report_cache;
}

void report_cache_destroy(struct report_cache *report_cache)
{
    if (!report_cache)
        return;
    flight_cache_destroy(report_cache->cache);
    mem_free(report_cache);
}

size_t report_cache_bytes(struct report_cache *report_cache)
{
    return flight_cache_bytes(report_cache->cache);
}

static struct flight_cache *cache_of(const struct report_cache_request *wanted)
{
    return wanted->request->server->query->report_cache->cache;
}

static void unref_entry(void *entry)
{
    flight_cache_unref(entry);
}

struct report_cache_request *report_cache_create_request(struct request *request,
                                                         const struct report *report)
{
    struct report_cache_request *wanted = arena_new(request->arena, struct report_cache_request, 1);
    wanted->request = request;
    wanted->report = report;
    wanted->is_zstd = report->kind->compresses && request_accepts_encoding(request, "zstd");
    return wanted;
}

static const char *key_of(const struct report_cache_request *wanted, const char *identity)
{
    char hex[DIGEST_HEX_BYTES];
    report_hash_parameters(wanted->report, hex);
    return arena_printf(wanted->request->arena, "%s%s %s", identity,
                        wanted->is_zstd ? " zstd" : " plain", hex);
}

static bool is_outdated(const struct finished *finished)
{
    return finished->result.statistics.names.unknown_count &&
           clock_monotonic_ns() - finished->made_ns > status_age_ns;
}

static bool has_finished(void *context, const char *identity)
{
    struct report_cache_request *wanted = context;
    const char *key = key_of(wanted, identity);
    wanted->entry = flight_cache_try(cache_of(wanted), key);
    if (wanted->entry && is_outdated(flight_cache_get(wanted->entry))) {
        flight_cache_unref(wanted->entry);
        flight_cache_forget(cache_of(wanted), key);
        wanted->entry = NULL;
    }
    if (wanted->entry)
        arena_on_destroy(wanted->request->arena, unref_entry, wanted->entry);
    return wanted->entry != NULL;
}

void report_cache_watch(struct report_cache_request *wanted, struct store_query *query)
{
    query->has_result = has_finished;
    query->has_result_context = wanted;
}

/* ---- computing ---- */

/* The names that the result still lacks; NULL if that cannot be determined now. */
static const char *describe_names(const struct report_cache_request *wanted)
{
    struct request *request = wanted->request;
    struct symbolization_status status = {0};
    struct err ignored;
    if (symbolization_status_add_profile(request, request->principal.tenant_id,
                                         wanted->result->profile, &status, &ignored))
        return NULL;
    if (wanted->result->statistics.names.is_incomplete)
        symbolization_status_note_incomplete(&status);
    return symbolization_status_write(request, &status);
}

static enum err_code write_body(const struct report_cache_request *wanted, struct report_body *body,
                                struct err *err)
{
    const struct profile *const profiles[2] = {wanted->result->profile, NULL};
    struct report report = *wanted->report;
    report.symbolization = describe_names(wanted);
    enum err_code code = report_body_write(body, &report, profiles, err);
    if (code || !wanted->is_zstd)
        return code;
    return report_body_compress(body, COMPRESS_ZSTD_FAST, report.max_bytes, err);
}

static enum err_code make_finished(void *context, void **ret_value, size_t *ret_bytes,
                                   struct err *err)
{
    struct report_cache_request *wanted = context;
    wanted->has_begun = true;
    struct finished *finished = mem_new(struct finished, 1);
    report_body_init(&finished->body, wanted->report);
    enum err_code code = write_body(wanted, &finished->body, err);
    if (code) {
        destroy_finished(finished);
        return code;
    }
    report_body_shrink(&finished->body);
    finished->made_ns = clock_monotonic_ns();
    finished->type = mem_strdup(wanted->result->type);
    finished->result = (struct store_result){.aggregation = wanted->result->aggregation,
                                             .type = finished->type,
                                             .statistics = wanted->result->statistics};
    *ret_value = finished;
    *ret_bytes = sizeof(*finished) + finished->body.bytes.capacity;
    return ERR_NONE;
}

static void send_body(struct report_cache_request *wanted, struct response *response,
                      const struct store_result *result, const struct report_body *body)
{
    response_add(wanted->request, response, "cache-control",
                 result->statistics.names.is_incomplete ? "no-store" : "private, no-cache");
    report_body_send(body, wanted->report->kind, wanted->request, response);
}

static enum err_code respond_once(struct report_cache_request *wanted, struct response *response,
                                  const struct store_result *result, int64_t begin_ns,
                                  struct err *err)
{
    struct report_body *body = report_body_create(wanted->request->arena, wanted->report);
    query_fields_add(wanted->request, response, result, begin_ns);
    enum err_code code = write_body(wanted, body, err);
    if (code)
        return code;
    send_body(wanted, response, result, body);
    return ERR_NONE;
}

const struct store_statistics *report_cache_statistics(const struct report_cache_request *wanted)
{
    const struct finished *finished = wanted->entry ? flight_cache_get(wanted->entry) : NULL;
    return finished ? &finished->result.statistics : &wanted->result->statistics;
}

enum err_code report_cache_respond(struct report_cache_request *wanted, struct response *response,
                                   const struct store_result *result, int64_t begin_ns,
                                   struct err *err)
{
    wanted->result = result;
    const char *key = *result->identity ? key_of(wanted, result->identity) : NULL;
    if (!wanted->entry && key) {
        enum err_code code =
            flight_cache_ref_within(cache_of(wanted), key, &wanted->report->wait_limit,
                                    make_finished, wanted, &wanted->entry, err);
        if (code && wanted->has_begun)
            return code;
        if (!code)
            arena_on_destroy(wanted->request->arena, unref_entry, wanted->entry);
    }
    /* The result has no key, or the request that computed the same report has stopped for a reason
     * of its own, such as its deadline. */
    if (!wanted->entry)
        return respond_once(wanted, response, result, begin_ns, err);
    struct finished *finished = flight_cache_get(wanted->entry);
    query_fields_add(wanted->request, response, &finished->result, begin_ns);
    send_body(wanted, response, &finished->result, &finished->body);
    response->reader_count = &finished->body.reader_count;
    return ERR_NONE;
}
