#include "api/share/share_report.h"

#include "api/core/memory_gate.h"
#include "api/core/server.h"
#include "api/http/concurrency_limit.h"
#include "api/http/rate_limiter.h"
#include "api/share/profile_cache.h"
#include "api/share/share_access.h"
#include "api/share/share_runtime.h"
#include "api/share/share_summary.h"
#include "api/share/share_symbolization.h"
#include "api/share/view_counter.h"
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
                                     struct share_report *asked, struct err *err)
{
    struct share *share = &asked->shares[side];
    enum err_code code = share_access_find(request, id, share, err);
    if (code)
        return code;
    asked->report.sides[side] =
        (struct report_side){.title = share->title, .filename = share->filename};
    return ERR_NONE;
}

enum err_code share_report_read(struct request *request, const struct report_kind *kind,
                                unsigned parameters, int64_t default_limit, size_t share_count,
                                struct share_report *ret_asked, struct err *err)
{
    enum err_code code =
        report_read(request, kind, parameters, default_limit, NULL, &ret_asked->report, err);
    if (code)
        return code;
    ret_asked->report.side_count = share_count;
    for (size_t i = 0; i < share_count && !code; i++)
        code = share_report_read_side(request, request->path_params[i], i, ret_asked, err);
    request->has_found = code == ERR_NONE;
    return code;
}

static const char *report_key(struct arena *arena, const struct share_report *asked, bool is_zstd)
{
    buf_auto key;
    buf_init(&key, 1 << 20);
    for (size_t i = 0; i < asked->report.side_count; i++)
        buf_printf(&key, "%s%s", i ? ".." : "", asked->shares[i].id);
    buf_append_text(&key, is_zstd ? " zstd" : " plain");
    report_append_question(&asked->report, &key);
    return arena_strndup(arena, key.data, key.size);
}

/* Weak: the same response may be sent with several content codings. */
static const char *report_etag(struct arena *arena, const struct share_report *asked)
{
    buf_auto text;
    buf_init(&text, 1 << 20);
    for (size_t i = 0; i < asked->report.side_count; i++)
        buf_append_span(&text, asked->shares[i].raw_sha256);
    report_append_question(&asked->report, &text);
    uint8_t hash[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];
    digest_sha256(buf_span(&text), hash);
    digest_hex(span_of(hash, DIGEST_BYTES), hex);
    return arena_printf(arena, "W/\"%.32s\"", hex);
}

static uint64_t estimate_cost(const struct share_cost *share, const struct report *report)
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
    uint64_t needed = share->decoded_bytes + view;
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

static enum err_code write_from_cache(const struct share_report *asked, struct buf *body,
                                      struct err *err)
{
    const struct report *report = &asked->report;
    profile_cache_auto first = NULL;
    profile_cache_auto second = NULL;
    enum err_code code =
        profile_cache_ref_named(report->server, &asked->shares[0], report->names, &first, err);
    if (code)
        return code;
    if (report->side_count == 2)
        code =
            profile_cache_ref_named(report->server, &asked->shares[1], report->names, &second, err);
    if (code)
        return code;
    const struct profile *profiles[2] = {profile_cache_get(first),
                                         second ? profile_cache_get(second) : NULL};
    return report_write_profiles(report, profiles, body, err);
}

/* Takes the memory before the profile is decoded: no request waits while it holds memory. */
static enum err_code write_gated(const struct share_report *asked, struct buf *body,
                                 struct err *err)
{
    struct memory_gate *gate = asked->report.server->memory_gate;
    const struct share *const shares[] = {&asked->shares[0], &asked->shares[1]};
    uint64_t place = share_report_memory(&asked->report, shares, asked->report.side_count);
    enum err_code code = memory_gate_enter(gate, place, "this report", err);
    if (code)
        return code;
    code = write_from_cache(asked, body, err);
    memory_gate_leave(gate, place);
    return code;
}

struct making {
    const struct share_report *asked;
    bool is_zstd;
    struct share_answer *answer; /* being written */
    enum err_code code;
    struct err *err;
};

/* Compressors reserve for the worst case; a cached body must take only its size. */
static void shrink(struct buf *body)
{
    if (body->capacity <= body->size + body->size / 4 + 4096)
        return;
    struct buf exact;
    buf_init(&exact, body->size);
    buf_append_span(&exact, buf_span(body));
    buf_fini(body);
    *body = exact;
}

static void write_answer(void *context)
{
    struct making *making = context;
    struct share_answer *answer = making->answer;
    making->code = write_gated(making->asked, &answer->body, making->err);
    answer->plain_bytes = answer->body.size;
    if (making->code || !making->is_zstd)
        return;
    struct buf plain = answer->body;
    buf_init(&answer->body, REPORT_MAX_BYTES);
    making->code =
        compress_zstd(buf_span(&plain), COMPRESS_ZSTD_DEFAULT, &answer->body, making->err);
    buf_fini(&plain);
}

static enum err_code make_answer(void *context, void **ret_value, size_t *ret_bytes,
                                 struct err *err)
{
    struct making *making = context;
    struct share_answer *answer = mem_new(struct share_answer, 1);
    buf_init(&answer->body, making->asked->report.max_bytes);
    making->answer = answer;
    making->err = err;
    if (making->asked->report.is_anonymous)
        low_priority_call(LOW_PRIORITY_NICE, write_answer, making);
    else
        write_answer(making);
    const enum err_code code = making->code;
    if (code) {
        buf_fini(&answer->body);
        mem_free(answer);
        return code;
    }
    shrink(&answer->body);
    answer->is_zstd = making->is_zstd;
    *ret_value = answer;
    *ret_bytes = sizeof(*answer) + answer->body.capacity;
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

static void unref_answer(void *entry)
{
    flight_cache_unref(entry);
}

/* A request that is handled again has the source already. */
static enum err_code take_turn(struct request *request, const struct share_report *asked,
                               struct err *err)
{
    const struct report *report = &asked->report;
    if (report->is_file && report->is_anonymous && !request->concurrency_slot.key) {
        char *source = arena_new(request->arena, char, RATE_LIMITER_SUBSCRIBER_BYTES);
        rate_limiter_subscriber(span_text(request->address), source);
        request->concurrency_slot.source = source;
    }
    return report_take_turn(request, asked->shares[0].id, err);
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
        rules = arena_printf(request->arena, "%" PRIu32 " %s of x not obeyed%s", count,
                             count == 1 ? "rule" : "rules", lacks_zoom ? "; " : "");
    response_add(
        request, response, "perfolio-warning",
        arena_printf(request->arena, "%s%s", rules, lacks_zoom ? "z changes nothing here" : ""));
}

enum err_code share_report_respond(struct request *request, struct response *response,
                                   struct share_report *asked, struct err *err)
{
    struct report *report = &asked->report;
    enum err_code code =
        share_symbolization_describe(request, asked->shares, report->side_count,
                                     &report->generation, &report->symbolization, err);
    if (code)
        return code;
    const struct share *shares = asked->shares;
    const bool is_pair = report->side_count == 2;
    const struct share *most_closed = &shares[is_pair && share_access_is_open(&shares[0])];
    const struct share *least_public = &shares[is_pair && shares[0].visibility == SHARE_PUBLIC];
    const char *cache_control = share_access_cache_control(most_closed);
    for (size_t i = 0; i < report->side_count; i++)
        view_counter_count(request->server->shares->views, span_text(asked->shares[i].id),
                           request->address, request->start_ns);
    share_access_add_robots(request, response, least_public);
    warn_of_page(request, response, report);
    response->is_open_to_sites = share_access_is_open(most_closed);
    if (response_is_cached(request, response, report_etag(request->arena, asked), cache_control))
        return ERR_NONE;
    struct making making = {.asked = asked,
                            .is_zstd = report->kind->compresses && accepts_zstd(request)};
    struct flight_cache *answers = request->server->shares->answers;
    const char *key = report_key(request->arena, asked, making.is_zstd);
    /* Requests that wait for the same response share its limit, so responses for anonymous requests
     * have a key of their own. A cached one may be sent to all. */
    const char *anonymous_key = arena_printf(request->arena, "%s anonymous", key);
    struct flight_entry *entry = flight_cache_try(answers, key);
    if (!entry)
        entry = flight_cache_try(answers, anonymous_key);
    if (!entry) {
        code = take_turn(request, asked, err);
        if (!code)
            code = flight_cache_ref(answers, report->is_anonymous ? anonymous_key : key,
                                    make_answer, &making, &entry, err);
        if (code)
            return code;
    }
    arena_on_destroy(request->arena, unref_answer, entry);
    struct share_answer *answer = flight_cache_get(entry);
    if (answer->plain_bytes > report->max_bytes)
        return report_too_large(report, err);
    if (answer->is_zstd) {
        response_add(request, response, "content-encoding", "zstd");
        response_add(request, response, "vary", "accept-encoding");
    }
    response->may_compress = report->kind->compresses && !answer->is_zstd;
    response_bytes(response, 200, report->kind->content_type, buf_span(&answer->body));
    response->reader_count = &answer->reader_count;
    return ERR_NONE;
}
