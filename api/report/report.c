#include "api/report/report.h"

#include "api/core/memory_gate.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/concurrency_limit.h"
#include "api/http/rate_limiter.h"
#include "api/query/query.h"
#include "api/report/report_diff.h"
#include "api/report/symbol_resolver.h"
#include "api/report/viewer_url_state.h"
#include "api/share/profile_cache.h"
#include "api/share/share_access.h"
#include "api/share/share_summary.h"
#include "api/share/share_symbolization.h"
#include "api/share/view_counter.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/digest.h"
#include "lib/base/flight_cache.h"
#include "lib/base/low_priority.h"
#include "lib/base/mem.h"
#include "lib/base/parallel.h"
#include "lib/profile/profile.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/labels.h"

#include <assert.h>
#include <inttypes.h>

/* To be raised when the same question gets another answer, so that kept copies are asked anew. */
static const int report_version = 4;

/*
 * Memory of a report, measured with random profiles of 20 to 250 MB: an entry of 4 bytes per frame;
 * a sample's place in the view and in two sorts; a node of the flame graph, in three forms and as
 * it is sent; and tables of frames, at most half as large as the profile. A label's value has its
 * place and that in three maps; there are at most as many as labels of DECODED_LABEL bytes fit.
 */
enum { FRAME_COST = 4, SAMPLE_COST = 64, NODE_COST = 200, LABEL_COST = 176, DECODED_LABEL = 24 };
static_assert(sizeof(struct profile_label) == (size_t)DECODED_LABEL, "what a label takes");

static enum err_code check_names(struct request *request, unsigned parameters, struct err *err)
{
    enum { NAMES_MAX = 32 };
    const char *known[NAMES_MAX] = {0}, *repeatable[NAMES_MAX] = {0};
    size_t count = 0, repeatable_count = 0;
    struct span version;
    if (parameters & REPORT_TAKES_PAGE) {
        if (request_query(request, "sv", &version))
            return ERR_NONE; /* written by a page, perhaps a later one */
        for (const char *const *name = viewer_url_state_names; *name; name++)
            repeatable[repeatable_count++] = *name; /* what is odd in a page's counts as absent */
    }
    if (parameters & REPORT_TAKES_FILTER) {
        known[count++] = "sample_type";
        for (int action = 0; action < FILTER_ACTION_COUNT; action++)
            repeatable[repeatable_count++] = filter_action_name((enum filter_action)action);
    }
    if (parameters & REPORT_TAKES_GROUP)
        known[count++] = "group_by";
    if (parameters & REPORT_TAKES_KEY)
        known[count++] = "key";
    if (parameters & REPORT_TAKES_LIMIT)
        known[count++] = "limit";
    known[count++] = "names";
    if (parameters & REPORT_TAKES_DEPTH)
        known[count++] = "depth";
    if (parameters & REPORT_TAKES_ROOT) {
        known[count++] = "root";
        known[count++] = "above";
        known[count++] = "below";
    }
    if (parameters & REPORT_TAKES_FUNCTION)
        known[count++] = "fn";
    if (parameters & REPORT_TAKES_MODE)
        known[count++] = "mode";
    if (parameters & REPORT_TAKES_QUERY) {
        known[count++] = "query";
        known[count++] = "start";
        known[count++] = "end";
    }
    if (parameters & (REPORT_TAKES_QUERY | REPORT_TAKES_STORED)) {
        known[count++] = "report";
        repeatable[repeatable_count++] = filter_action_name(FILTER_LABEL);
        for (const char *const *name = query_id_selectors; *name; name++)
            repeatable[repeatable_count++] = *name;
    }
    if (parameters & REPORT_TAKES_DIFF) {
        for (const char *const *name = report_diff_names; *name; name++)
            known[count++] = *name;
    }
    return request_check_parameters(request, known, repeatable, err);
}

static enum err_code read_rules(struct request *request, struct report *report, struct err *err)
{
    for (int i = 0; i < FILTER_ACTION_COUNT; i++) {
        enum filter_action action = (enum filter_action)i;
        struct span pattern;
        for (size_t n = 0; request_query_nth(request, filter_action_name(action), n, &pattern);
             n++) {
            if (pattern.size == 0)
                continue;
            if (report->rule_count == FILTER_RULES_MAX)
                return err_set(
                    err, ERR_INVALID,
                    "there are more than %d of focus, ignore, hide, show and label: join "
                    "expressions with |",
                    FILTER_RULES_MAX);
            report->rules[report->rule_count++] =
                (struct filter_rule){.action = action, .pattern = pattern};
        }
    }
    return ERR_NONE;
}

static enum err_code read_path(const struct request *request, const char *name, uint64_t *ret_hash,
                               struct err *err)
{
    enum { DIGITS = 16 };
    struct span text;
    if (request_query(request, name, &text) &&
        (text.size != DIGITS || !span_parse_hex(text, ret_hash)))
        return err_set(err, ERR_INVALID, "%s must be a path's hash of 16 hexadecimal digits", name);
    return ERR_NONE;
}

static enum err_code read_paths(const struct request *request, struct report *report,
                                struct err *err)
{
    report->has_root = request_query(request, "root", &(struct span){0});
    enum err_code code = read_path(request, "root", &report->root, err);
    if (!code)
        code = read_path(request, "above", &report->above, err);
    return code ? code : read_path(request, "below", &report->below, err);
}

static enum err_code read_names(const struct request *request, bool is_page, struct report *report,
                                struct err *err)
{
    struct span word, version;
    report->names = symbol_resolver_mode_default;
    if (!request_query(request, "names", &word) || !word.size ||
        symbol_name_mode_parse(word, &report->names))
        return ERR_NONE;
    if (is_page && request_query(request, "sv", &version))
        return ERR_NONE; /* what is malformed in a page's counts as absent */
    return err_set(err, ERR_INVALID, "names must be full, simple or none");
}

static void read_page(struct request *request, struct report *report)
{
    struct viewer_url_state *state = arena_new(request->arena, struct viewer_url_state, 1);
    viewer_url_state_read(request, state);
    report->sample_type = state->sample_type;
    report->group_by = state->group_by;
    memcpy(report->rules, state->rules, sizeof(report->rules));
    report->rule_count = state->rule_count;
    report->chain = state->chain;
    report->chain_count = state->chain_count;
    report->zoom = state->zoom;
    report->search = state->search;
    report->marked = state->marked;
    report->colouring = state->colouring;
    report->is_upright = state->is_upright;
    report->window = state->window;
    report->mode = state->is_normalised ? DIFF_NORMALISED : DIFF_ABSOLUTE;
    report->left_out_count = state->left_out_count;
}

static enum err_code find_pair(struct request *request, struct report *report, struct err *err)
{
    report->share_count = 2;
    enum err_code code = ERR_NONE;
    for (size_t i = 0; i < report->share_count && !code; i++)
        code = share_access_find(request, request->path_params[i], &report->shares[i], err);
    return code;
}

enum err_code report_read(struct request *request, const struct report_kind *kind,
                          unsigned parameters, int64_t default_limit, struct report *ret_report,
                          struct err *err)
{
    struct report *report = ret_report;
    const struct settings *settings = request->server->settings;
    const bool is_anonymous = request->principal.kind == PRINCIPAL_ANONYMOUS;
    *report =
        (struct report){.server = request->server,
                        .kind = kind,
                        .share_count = 1,
                        .max_bytes = (size_t)(is_anonymous ? settings->anonymous_max_generated_bytes
                                                           : settings->max_generated_bytes),
                        .is_anonymous = is_anonymous,
                        .is_file = parameters & REPORT_IS_FILE};
    request_query(request, "sample_type", &report->sample_type);
    request_query(request, "group_by", &report->group_by);
    request_query(request, "key", &report->label_key);
    if (parameters & REPORT_TAKES_PAGE)
        read_page(request, report);
    enum err_code code = check_names(request, parameters, err);
    if (!code)
        code = read_rules(request, report, err);
    if (!code)
        code =
            request_query_i64(request, "limit", 0, INT32_MAX, default_limit, &report->limit, err);
    if (!code)
        code = request_query_i64(request, "depth", 0, INT32_MAX, 0, &report->depth, err);
    if (!code)
        code = read_paths(request, report, err);
    if (!code)
        code = read_names(request, parameters & REPORT_TAKES_PAGE, report, err);
    if (!code && (parameters & REPORT_TAKES_MODE) &&
        request_query(request, "mode", &(struct span){0}))
        code = report_diff_read_mode(request, report, err);
    if (!code && (parameters & REPORT_TAKES_FUNCTION) &&
        (!request_query(request, "fn", &report->function) || report->function.size == 0))
        return err_set(err, ERR_INVALID, "fn is missing: the name of a function");
    if (code)
        return code;
    report->is_stored = parameters & (REPORT_TAKES_QUERY | REPORT_TAKES_STORED);
    if (report->is_stored)
        report->shares[0].title = report->shares[0].filename = "";
    else if (parameters & REPORT_TAKES_DIFF)
        code = report_diff_read(request, report, err);
    else if (parameters & REPORT_TAKES_PAIR)
        code = find_pair(request, report, err);
    else
        code = share_access_find(request, request->path_params[0], &report->shares[0], err);
    request->has_found = code == ERR_NONE;
    return code;
}

void report_drop_label_rules(struct report *report)
{
    size_t kept = 0;
    for (size_t i = 0; i < report->rule_count; i++) {
        if (report->rules[i].action != FILTER_LABEL)
            report->rules[kept++] = report->rules[i];
    }
    report->rule_count = kept;
}

void report_append_question(const struct report *report, struct buf *key)
{
    buf_printf(key, " %d %s limit=%" PRId64 " depth=%" PRId64 " mode=%d st=", report_version,
               report->kind->name, report->limit, report->depth, (int)report->mode);
    buf_append_url(key, report->sample_type);
    buf_append_text(key, " g=");
    buf_append_url(key, report->group_by);
    if (report->zoom || report->left_out_count)
        buf_printf(key, " z=%" PRIx64 " out=%" PRIu32, report->zoom, report->left_out_count);
    buf_append_text(key, " fn=");
    buf_append_url(key, report->function);
    buf_append_text(key, " key=");
    buf_append_url(key, report->label_key);
    if (report->colouring)
        buf_printf(key, " c=%d", (int)report->colouring);
    if (report->is_upright)
        buf_append_text(key, " v=flame");
    if (picture_window_is_part(&report->window))
        buf_printf(key, " w=%.9f-%.9f", report->window.from, report->window.to);
    if (report->search.size || report->marked.size) {
        buf_append_text(key, " q=");
        buf_append_url(key, report->search);
        buf_append_text(key, " m=");
        buf_append_url(key, report->marked);
    }
    if (report->names != symbol_resolver_mode_default)
        buf_printf(key, " names=%d", (int)report->names);
    if (report->generation || report->symbolization)
        buf_printf(key, " symbols=%" PRIu64 " %s", report->generation,
                   report->symbolization ? report->symbolization : "");
    if (report->has_root)
        buf_printf(key, " root=%" PRIx64, report->root);
    if (report->above || report->below)
        buf_printf(key, " above=%" PRIx64 " below=%" PRIx64, report->above, report->below);
    for (size_t i = 0; i < report->rule_count; i++) {
        buf_printf(key, " %s=", filter_action_name(report->rules[i].action));
        buf_append_url(key, report->rules[i].pattern);
    }
    for (size_t i = 0; i < report->chain_count; i++) {
        buf_printf(key, " then %s=", chain_action_name(report->chain[i].action));
        buf_append_url(key, report->chain[i].text);
    }
    for (size_t i = 0; report->kind->shows_title && i < report->share_count; i++) {
        buf_append_text(key, " title=");
        buf_append_url(key, span_text(report->shares[i].title));
        buf_append_text(key, " file=");
        buf_append_url(key, span_text(report->shares[i].filename));
    }
}

enum err_code report_too_large(const struct report *report, struct err *err)
{
    return err_set(err, ERR_TOO_LARGE,
                   report->is_anonymous
                       ? "this would be larger than %zu bytes, the limit without credentials "
                         "(anonymous-max-generated-bytes): sign in, send a token, or narrow it "
                         "with limit, depth or focus"
                       : "this would be larger than %zu bytes, the limit for generated files "
                         "(max-generated-bytes): narrow it with limit, depth or focus",
                   report->max_bytes);
}

static const char *report_key(struct arena *arena, const struct report *report, bool is_zstd)
{
    buf_auto key;
    buf_init(&key, 1 << 20);
    for (size_t i = 0; i < report->share_count; i++)
        buf_printf(&key, "%s%s", i ? ".." : "", report->shares[i].id);
    buf_append_text(&key, is_zstd ? " zstd" : " plain");
    report_append_question(report, &key);
    return arena_strndup(arena, key.data, key.size);
}

/* Weak: the same answer may be sent with several content codings. */
static const char *report_etag(struct arena *arena, const struct report *report)
{
    buf_auto text;
    buf_init(&text, 1 << 20);
    for (size_t i = 0; i < report->share_count; i++)
        buf_append_span(&text, report->shares[i].raw_sha256);
    report_append_question(report, &text);
    uint8_t hash[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];
    digest_sha256(buf_span(&text), hash);
    digest_hex(span_of(hash, DIGEST_BYTES), hex);
    return arena_printf(arena, "W/\"%.32s\"", hex);
}

/* Of the filter alone. */
static enum err_code create_filtered(const struct report *report, struct arena *arena,
                                     const struct profile *const profiles[2],
                                     const struct view **ret_view, struct err *err)
{
    const struct filter *filter;
    enum err_code code = filter_create(arena, report->rules, report->rule_count, &filter, err);
    if (code)
        return code;
    struct view_options options = {
        .sample_type = report->sample_type,
        .group_by = report->group_by,
        .is_label_known = report->is_label_known,
        .filter = filter,
        .cpu_deadline_ns =
            report->cpu_deadline_ns
                ? report->cpu_deadline_ns
                : parallel_cpu_ns() + report->server->settings->report_cpu_time_s * CLOCK_NS_PER_S,
        .wait_limit = report->wait_limit,
    };
    memcpy(options.left_out, report->left_out, sizeof(options.left_out));
    if (report->share_count == 2)
        return diff_view_create(arena, profiles[0], profiles[1], report->mode, &options, ret_view,
                                err);
    return view_create(arena, profiles[0], &options, ret_view, err);
}

/*
 * By file and binary a view has no functions: a rule that names nothing in it is of these, and the
 * filter's as far as viewer_url_state_take_rules can make it so.
 */
static enum err_code take_rules_of_functions(struct report *report, struct arena *arena,
                                             const struct profile *const profiles[2],
                                             struct err *err)
{
    if (!report->chain_count || !viewer_url_state_has_no_functions(report->group_by))
        return ERR_NONE;
    arena_auto looked_at = arena_create();
    const struct view *view;
    enum err_code code = create_filtered(report, looked_at, profiles, &view, err);
    bool *nameless = arena_new(looked_at, bool, report->chain_count);
    if (!code)
        code = rule_chain_find_nameless(view, report->chain, report->chain_count, nameless, err);
    if (code)
        return code;
    struct chain_rule *chain = arena_new(arena, struct chain_rule, report->chain_count);
    memcpy(chain, report->chain, report->chain_count * sizeof(*chain));
    report->chain_count = viewer_url_state_take_rules(chain, report->chain_count, nameless,
                                                      report->rules, &report->rule_count);
    report->chain = chain;
    return ERR_NONE;
}

static enum err_code create_view(const struct report *asked, struct arena *arena,
                                 const struct profile *const profiles[2],
                                 const struct view **ret_view, struct err *err)
{
    struct report report = *asked;
    const struct view *view;
    enum err_code code = take_rules_of_functions(&report, arena, profiles, err);
    if (!code)
        code = create_filtered(&report, arena, profiles, &view, err);
    if (!code && report.chain_count)
        code = rule_chain_apply(arena, view, report.chain, report.chain_count, &view, err);
    if (code)
        return code;
    *ret_view = view;
    return ERR_NONE;
}

enum err_code report_write_profiles(const struct report *report,
                                    const struct profile *const profiles[2], struct buf *body,
                                    struct err *err)
{
    arena_auto arena = arena_create();
    const struct view *view = NULL;
    enum err_code code = ERR_NONE;
    if (report->kind->needs_view)
        code = create_view(report, arena, profiles, &view, err);
    if (!code)
        code = report->kind->write(report, arena, profiles[0], view, body, err);
    return code == ERR_TOO_LARGE && buf_failed(body) ? report_too_large(report, err) : code;
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

uint64_t report_place_needed(const struct report *report)
{
    uint64_t bytes = 0;
    bool decodes_lightly = true;
    for (size_t i = 0; i < report->share_count; i++) {
        if (report->queries[i])
            continue;
        struct share_cost cost = profile_cache_cost(&report->shares[i]);
        decodes_lightly &= cost.decode_bytes <= MEMORY_GATE_LIGHT_PEAK;
        if (cost.decode_bytes <= MEMORY_GATE_LIGHT_PEAK)
            cost.decode_bytes = 0;
        bytes += estimate_cost(&cost, report);
    }
    return decodes_lightly && bytes <= MEMORY_GATE_LIGHT_WORK ? 0 : bytes;
}

static enum err_code write_from_cache(const struct report *report, struct buf *body,
                                      struct err *err)
{
    profile_cache_auto first = NULL;
    profile_cache_auto second = NULL;
    enum err_code code =
        profile_cache_ref_named(report->server, &report->shares[0], report->names, &first, err);
    if (!code && report->share_count == 2)
        code = profile_cache_ref_named(report->server, &report->shares[1], report->names, &second,
                                       err);
    if (code)
        return code;
    const struct profile *profiles[2] = {profile_cache_get(first),
                                         second ? profile_cache_get(second) : NULL};
    return report_write_profiles(report, profiles, body, err);
}

/* The place is taken before the profile is decoded: nobody waits who holds memory. */
static enum err_code write_gated(const struct report *report, struct buf *body, struct err *err)
{
    struct memory_gate *gate = report->server->memory_gate;
    uint64_t place = report_place_needed(report);
    enum err_code code = memory_gate_enter(gate, place, "this report", err);
    if (code)
        return code;
    code = write_from_cache(report, body, err);
    memory_gate_leave(gate, place);
    return code;
}

struct making {
    const struct report *report;
    bool is_zstd;
    struct share_answer *answer; /* being written */
    enum err_code code;
    struct err *err;
};

/* Compressors reserve for the worst case; what is kept shall be as large as it is. */
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
    making->code = write_gated(making->report, &answer->body, making->err);
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
    buf_init(&answer->body, making->report->max_bytes);
    making->answer = answer;
    making->err = err;
    if (making->report->is_anonymous)
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

/* Does Accept-Encoding name zstd, and not to refuse it? */
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

enum err_code report_take_turn(struct request *request, const char *share_id, struct err *err)
{
    if (!request->concurrency_slot
             .key) /* others read it as soon as the turn is held or waited for */
        request->concurrency_slot.key = share_id;
    if (concurrency_limit_take(request->server->concurrency, &request->concurrency_slot))
        return ERR_NONE;
    if (request->concurrency_slot.source)
        err_set(err, ERR_BUSY,
                "without credentials an address generates one file at a time, and %d of its "
                "requests may wait: sign in, or try again in a few seconds",
                CONCURRENCY_LIMIT_WAITING_OF_SOURCE);
    else
        err_set(err, ERR_BUSY,
                "too many ask for reports that take long; try again in a few seconds");
    err->retry_after_s = 5;
    return ERR_BUSY;
}

/* A request that is handled again has the source already. */
static enum err_code take_turn(struct request *request, const struct report *report,
                               struct err *err)
{
    if (report->is_file && report->is_anonymous && !request->concurrency_slot.key) {
        char *source = arena_new(request->arena, char, RATE_LIMITER_SUBSCRIBER_BYTES);
        rate_limiter_subscriber(span_text(request->address), source);
        request->concurrency_slot.source = source;
    }
    return report_take_turn(request, report->shares[0].id, err);
}

/* Of a page's address, what the answer does not show; pictures say it themselves, too. */
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

enum err_code report_respond(struct request *request, struct response *response,
                             struct report *report, struct err *err)
{
    if (report_diff_has_query(report))
        return report_diff_respond(request, response, report, err);
    enum err_code code =
        share_symbolization_describe(request, report->shares, report->share_count,
                                     &report->generation, &report->symbolization, err);
    if (code)
        return code;
    const struct share *shares = report->shares;
    const bool is_pair = report->share_count == 2;
    const struct share *most_closed = &shares[is_pair && share_access_is_open(&shares[0])];
    const struct share *least_public = &shares[is_pair && shares[0].visibility == SHARE_PUBLIC];
    const char *cache_control = share_access_cache_control(most_closed);
    for (size_t i = 0; i < report->share_count; i++)
        view_counter_count(request->server->shares->views, span_text(report->shares[i].id),
                           request->address, request->start_ns);
    share_access_add_robots(request, response, least_public);
    warn_of_page(request, response, report);
    response->is_open_to_sites = share_access_is_open(most_closed);
    if (response_is_cached(request, response, report_etag(request->arena, report), cache_control))
        return ERR_NONE;
    struct making making = {.report = report,
                            .is_zstd = report->kind->compresses && accepts_zstd(request)};
    struct flight_cache *answers = request->server->shares->answers;
    const char *key = report_key(request->arena, report, making.is_zstd);
    /* Requests that wait for the same response share its limit, so responses for anonymous requests
     * have a key of their own. Everybody may read one that is kept. */
    const char *anonymous_key = arena_printf(request->arena, "%s anonymous", key);
    struct flight_entry *entry = flight_cache_try(answers, key);
    if (!entry)
        entry = flight_cache_try(answers, anonymous_key);
    if (!entry) {
        code = take_turn(request, report, err);
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
