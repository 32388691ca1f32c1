/*
 * The sources of a response, from the cheapest: the client's own copy (304, by the ETag); a
 * complete response in the cache; the computation of the same response by another request, which
 * this one joins (flight_cache); its own computation. The latter takes a slot (concurrency_limit),
 * then memory (memory_gate), then the decoded profile (profile_cache), and writes, compresses and
 * caches the report. The order prevents deadlocks: a request waits for a slot without a worker, and
 * for memory without holding any.
 */
#include "api/share/share_report.h"

#include "api/core/memory_gate.h"
#include "api/core/server.h"
#include "api/debuginfo/symbol_tables.h"
#include "api/http/concurrency_limit.h"
#include "api/http/rate_limiter.h"
#include "api/share/profile_cache.h"
#include "api/share/share_access.h"
#include "api/share/share_runtime.h"
#include "api/share/share_summary.h"
#include "api/share/share_symbolization.h"
#include "api/share/view_counter.h"
#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/digest.h"
#include "lib/base/flight_cache.h"
#include "lib/base/low_priority.h"
#include "lib/base/mem.h"
#include "lib/profile/profile.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/labels.h"

#include <assert.h>
#include <inttypes.h>

/*
 * Memory of a report, measured with random profiles of 20 to 250 MB: an entry of 4 bytes per frame;
 * the entries of a sample in the view and in two sorts; a node of the flame graph, in three forms
 * and as it is sent; and tables of frames, at most half as large as the profile. A label value has
 * its entry and those in three maps; there are at most as many as labels of DECODED_LABEL bytes
 * fit.
 */
enum { FRAME_COST = 4, SAMPLE_COST = 64, NODE_COST = 200, LABEL_COST = 176, DECODED_LABEL = 24 };
static_assert(sizeof(struct profile_label) == (size_t)DECODED_LABEL, "what a label takes");

enum err_code share_report_read_side(struct request *request, struct span id, size_t side,
                                     struct share_report *share_report, struct err *err)
{
    struct share *share = &share_report->shares[side];
    enum err_code code = share_access_find(request, id, share, err);
    if (code)
        return code;
    share_report->report.sides[side] =
        (struct report_side){.title = share->title, .filename = share->filename};
    return ERR_NONE;
}

enum err_code share_report_read(struct request *request, const struct report_kind *kind,
                                unsigned parameters, int64_t default_limit, size_t share_count,
                                struct share_report *ret_share_report, struct err *err)
{
    enum err_code code =
        report_read(request, kind, parameters, default_limit, NULL, &ret_share_report->report, err);
    if (code)
        return code;
    ret_share_report->report.side_count = share_count;
    for (size_t i = 0; i < share_count && !code; i++)
        code = share_report_read_side(request, request->path_params[i], i, ret_share_report, err);
    request->has_found = code == ERR_NONE;
    return code;
}

static const char *report_key(struct arena *arena, const struct share_report *share_report,
                              bool is_zstd)
{
    const struct report *report = &share_report->report;
    buf_auto key;
    buf_init(&key, 1 << 20);
    for (size_t i = 0; i < report->side_count; i++)
        buf_printf(&key, "%s%s", i ? ".." : "", share_report->shares[i].id);
    for (size_t i = 0; report->generation && i < report->side_count; i++)
        buf_printf(&key, " %" PRIu64,
                   symbol_tables_version(report->server, share_report->shares[i].tenant_id));
    buf_append_text(&key, is_zstd ? " zstd " : " plain ");
    char hex[DIGEST_HEX_BYTES];
    report_hash_parameters(report, hex);
    buf_append_text(&key, hex);
    return arena_strndup(arena, key.data, key.size);
}

/* Weak: the same response may be sent with several content codings. */
static const char *report_etag(struct arena *arena, const struct share_report *share_report)
{
    buf_auto text;
    buf_init(&text, 1 << 20);
    for (size_t i = 0; i < share_report->report.side_count; i++)
        buf_append_span(&text, share_report->shares[i].raw_sha256);
    uint8_t hash[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];
    report_hash_parameters(&share_report->report, hex);
    buf_append_text(&text, hex);
    digest_sha256(buf_span(&text), hash);
    digest_hex(span_of(hash, DIGEST_BYTES), hex);
    return arena_printf(arena, "W/\"%.32s\"", hex);
}

static uint64_t estimate_view(const struct share_cost *share, const struct report *report)
{
    uint64_t nodes =
        share->stack_frames < FLAME_NODES_DEFAULT ? share->stack_frames : FLAME_NODES_DEFAULT;
    uint64_t view = share->decoded_bytes / 2 + share->stack_frames * FRAME_COST +
                    share->sample_count * SAMPLE_COST + nodes * NODE_COST;
    uint64_t labels = share->decoded_bytes / DECODED_LABEL;
    if (report->chain_count) /* a second view */
        view += share->stack_frames * FRAME_COST + share->sample_count * SAMPLE_COST;
    if (report->kind->counts_labels)
        view += (labels < LABELS_VALUES_MAX ? labels : LABELS_VALUES_MAX) * LABEL_COST;
    return view;
}

static uint64_t estimate_cost(const struct share_cost *share, const struct report *report)
{
    const uint64_t needed = share->decoded_bytes + estimate_view(share, report);
    return needed > share->decode_bytes ? needed : share->decode_bytes;
}

uint64_t share_report_memory(const struct report *report, const struct share *const *shares,
                             size_t count)
{
    uint64_t bytes = 0;
    bool decodes_lightly = true;
    for (size_t i = 0; i < count; i++) {
        struct share_cost cost = profile_cache_cost(shares[i]);
        decodes_lightly &= cost.decode_bytes <= MEMORY_GATE_LIGHT_PEAK;
        if (cost.decode_bytes <= MEMORY_GATE_LIGHT_PEAK)
            cost.decode_bytes = 0;
        bytes += estimate_cost(&cost, report);
    }
    return decodes_lightly && bytes <= MEMORY_GATE_LIGHT_WORK ? 0 : bytes;
}

uint64_t share_report_view_memory(const struct report *report, const struct share *const *shares,
                                  size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct share_cost cost = profile_cache_cost(shares[i]);
        bytes += estimate_view(&cost, report);
    }
    return bytes;
}

/* A response that this request makes: for flight_cache and low_priority. */
struct response_job {
    struct request *request;
    const struct share_report *share_report;
    bool is_zstd;
    struct cached_response *cached; /* being written */
    enum err_code code;
    struct err *err;
};

/* Writes the report with a new description of the names, because the profiles lack some that were
 * expected when the request began. */
static enum err_code write_incomplete(const struct response_job *job,
                                      const struct profile *const profiles[2], struct err *err)
{
    struct report report = job->share_report->report;
    uint64_t generation;
    const enum err_code code =
        share_symbolization_describe(job->request, job->share_report->shares, report.side_count,
                                     true, &generation, &report.symbolization, err);
    return code ? code : report_body_write(&job->cached->body, &report, profiles, err);
}

static enum err_code write_from_cache(void *context, struct profile_cache_memory *memory,
                                      struct err *err)
{
    const struct response_job *job = context;
    const struct share_report *share_report = job->share_report;
    const struct report *report = &share_report->report;
    profile_cache_auto first = NULL;
    profile_cache_auto second = NULL;
    struct flight_entry **const entries[2] = {&first, &second};
    const struct profile *profiles[2] = {NULL, NULL};
    uint64_t table_bytes = 0;
    for (size_t i = 0; i < report->side_count; i++) {
        enum err_code code =
            profile_cache_ref_named(report->server, &share_report->shares[i], report->names,
                                    memory->names_bytes, entries[i], err);
        if (code)
            return code;
        memory->needs_names = !*entries[i];
        if (memory->needs_names)
            return ERR_NONE;
        profiles[i] = profile_cache_get(*entries[i]);
        job->cached->is_incomplete |= profile_cache_is_incomplete(*entries[i]);
        table_bytes += report_memory(report, profiles[i]);
    }
    if (!profile_cache_take(memory, table_bytes))
        return ERR_NONE;
    return job->cached->is_incomplete
               ? write_incomplete(job, profiles, err)
               : report_body_write(&job->cached->body, report, profiles, err);
}

/* Takes the memory before the profile is decoded: no request waits while it holds memory. */
static enum err_code write_gated(struct response_job *job, struct err *err)
{
    const struct share_report *share_report = job->share_report;
    const struct report *report = &share_report->report;
    const struct share *const shares[] = {&share_report->shares[0], &share_report->shares[1]};
    return profile_cache_with_names(report->server, report->client,
                                    share_report_memory(report, shares, report->side_count),
                                    share_report_view_memory(report, shares, report->side_count),
                                    report->side_count, write_from_cache, job, err);
}

static void write_response(void *context)
{
    struct response_job *job = context;
    job->code = write_gated(job, job->err);
    if (!job->code && job->is_zstd)
        job->code = report_body_compress(&job->cached->body, COMPRESS_ZSTD_DEFAULT,
                                         REPORT_MAX_BYTES, job->err);
}

static enum err_code make_response(void *context, void **ret_value, size_t *ret_bytes,
                                   struct err *err)
{
    struct response_job *job = context;
    struct cached_response *cached = mem_new(struct cached_response, 1);
    report_body_init(&cached->body, &job->share_report->report);
    job->cached = cached;
    job->err = err;
    if (job->share_report->report.is_anonymous)
        low_priority_call(LOW_PRIORITY_NICE, write_response, job);
    else
        write_response(job);
    const enum err_code code = job->code;
    if (code) {
        report_body_fini(&cached->body);
        mem_free(cached);
        return code;
    }
    report_body_shrink(&cached->body);
    *ret_value = cached;
    *ret_bytes = sizeof(*cached) + cached->body.bytes.capacity;
    return ERR_NONE;
}

/* Whether Accept-Encoding names zstd without refusing it. */
static bool accepts_zstd(const struct request *request)
{
    struct span rest = request_field(request, "accept-encoding"), item, name, weight;
    while (rest.size) {
        span_split(rest, ',', &item, &rest);
        span_split(item, ';', &name, &weight);
        if (span_equal_text(span_trim(name), "zstd"))
            return !span_equal_text(span_trim(weight), "q=0");
    }
    return false;
}

static void unref_response(void *entry)
{
    flight_cache_unref(entry);
}

/* A request that is handled again has the source already. */
static enum err_code take_slot(struct request *request, const struct share_report *share_report,
                               struct err *err)
{
    const struct report *report = &share_report->report;
    if (report->is_file && report->is_anonymous && !request->concurrency_slot.key) {
        char *source = arena_new(request->arena, char, RATE_LIMITER_SUBSCRIBER_BYTES);
        rate_limiter_site(span_text(request->address), source);
        request->concurrency_slot.source = source;
    }
    return report_take_slot(request, share_report->shares[0].id, err);
}

/* Reports the parts of a page's address that the result does not show; pictures show them, too. */
static void warn_of_page(struct request *request, struct response *response,
                         const struct report *report)
{
    const bool lacks_zoom = report->zoom && !report->kind->shows_zoom;
    const uint32_t count = report->left_out_count;
    if (!count && !lacks_zoom)
        return;
    const char *rules = "";
    if (count)
        rules = arena_printf(request->arena, "%" PRIu32 " %s of x not applied%s", count,
                             count == 1 ? "rule" : "rules", lacks_zoom ? "; " : "");
    response_add(request, response, "perfolio-warning",
                 arena_printf(request->arena, "%s%s", rules,
                              lacks_zoom ? "z does not apply to this format" : ""));
}

enum err_code share_report_respond(struct request *request, struct response *response,
                                   struct share_report *share_report, struct err *err)
{
    struct report *report = &share_report->report;
    enum err_code code =
        share_symbolization_describe(request, share_report->shares, report->side_count, false,
                                     &report->generation, &report->symbolization, err);
    if (code)
        return code;
    const struct share *shares = share_report->shares;
    const bool is_pair = report->side_count == 2;
    const struct share *most_closed = &shares[is_pair && share_access_is_open(&shares[0])];
    const struct share *least_public = &shares[is_pair && shares[0].visibility == SHARE_PUBLIC];
    const char *cache_control = share_access_cache_control(most_closed);
    for (size_t i = 0; i < report->side_count; i++)
        view_counter_count(request->server->shares->views, span_text(share_report->shares[i].id),
                           request->address, request->start_ns);
    share_access_add_robots(request, response, least_public);
    warn_of_page(request, response, report);
    response->is_open_to_sites = share_access_is_open(most_closed);
    if (response_is_cached(request, response, report_etag(request->arena, share_report),
                           cache_control))
        return ERR_NONE;
    struct response_job job = {.request = request,
                               .share_report = share_report,
                               .is_zstd = report->kind->compresses && accepts_zstd(request)};
    struct flight_cache *responses = request->server->shares->responses;
    const char *key = report_key(request->arena, share_report, job.is_zstd);
    /* Requests that wait for the same response share its limit, so responses for anonymous requests
     * have a key of their own. A cached one may be sent to all. */
    const char *anonymous_key = arena_printf(request->arena, "%s anonymous", key);
    struct flight_entry *entry = flight_cache_try(responses, key);
    if (!entry)
        entry = flight_cache_try(responses, anonymous_key);
    if (!entry) {
        code = take_slot(request, share_report, err);
        if (!code)
            code = flight_cache_ref(responses, report->is_anonymous ? anonymous_key : key,
                                    make_response, &job, &entry, err);
        if (code)
            return code;
    }
    arena_on_destroy(request->arena, unref_response, entry);
    struct cached_response *cached = flight_cache_get(entry);
    if (cached->body.plain_bytes > report->max_bytes)
        return report_too_large(report, err);
    if (cached->is_incomplete)
        response_forbid_storing(response);
    report_body_send(&cached->body, report->kind, request, response);
    response->reader_count = &cached->body.reader_count;
    return ERR_NONE;
}
