#include "api/report/report.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/concurrency_limit.h"
#include "api/http/request_limits.h"
#include "api/report/symbol_resolver.h"
#include "api/report/viewer_url_state.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/parallel.h"
#include "lib/profile/profile.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/labels.h"
#include "lib/profile/report/view_memory.h"

#include <inttypes.h>

/* Increment it when the same parameters give another result, so that cached copies are refreshed.
 */
static const int report_version = 4;

static enum err_code check_names(struct request *request, unsigned parameters,
                                 const struct report_source_names *source, struct err *err)
{
    enum { NAMES_MAX = 32 };
    const char *known[NAMES_MAX] = {0}, *repeatable[NAMES_MAX] = {0};
    size_t count = 0, repeatable_count = 0;
    struct span version;
    if (parameters & REPORT_TAKES_PAGE) {
        if (request_query(request, "sv", &version))
            return ERR_NONE; /* written by a page, possibly of a later version */
        for (const char *const *name = viewer_url_state_names; *name; name++)
            repeatable[repeatable_count++] =
                *name; /* an unknown parameter of a page counts as absent */
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
    for (const char *const *name = source ? source->single : NULL; name && *name; name++)
        known[count++] = *name;
    for (const char *const *name = source ? source->repeatable : NULL; name && *name; name++)
        repeatable[repeatable_count++] = *name;
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
    if (code)
        return code;
    code = read_path(request, "above", &report->above, err);
    if (code)
        return code;
    return read_path(request, "below", &report->below, err);
}

static enum err_code read_names(const struct request *request, bool is_page, struct report *report,
                                struct err *err)
{
    struct span word, version;
    report->names = symbol_resolver_mode_default;
    if (!request_query(request, "names", &word) || !word.size ||
        symbol_name_format_parse(word, &report->names))
        return ERR_NONE;
    if (is_page && request_query(request, "sv", &version))
        return ERR_NONE; /* a malformed parameter of a page counts as absent */
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

enum err_code report_read_mode(const struct request *request, struct report *report,
                               struct err *err)
{
    struct span mode = SPAN_LITERAL("");
    request_query(request, "mode", &mode);
    if (!diff_find_mode(mode, &report->mode))
        return err_set(err, ERR_INVALID, "mode must be absolute or normalised (or normalized)");
    return ERR_NONE;
}

enum err_code report_read(struct request *request, const struct report_kind *kind,
                          unsigned parameters, int64_t default_limit,
                          const struct report_source_names *source, struct report *ret_report,
                          struct err *err)
{
    struct report *report = ret_report;
    const struct settings *settings = request->server->settings;
    const bool is_anonymous = request->principal.kind == PRINCIPAL_ANONYMOUS;
    *report =
        (struct report){.server = request->server,
                        .kind = kind,
                        .sides = {{"", ""}, {"", ""}},
                        .side_count = 1,
                        .max_bytes = (size_t)(is_anonymous ? settings->anonymous_max_generated_bytes
                                                           : settings->max_generated_bytes),
                        .client = request->principal.tenant_id,
                        .is_anonymous = is_anonymous,
                        .is_file = parameters & REPORT_IS_FILE};
    request_query(request, "sample_type", &report->sample_type);
    request_query(request, "group_by", &report->group_by);
    request_query(request, "key", &report->label_key);
    if (parameters & REPORT_TAKES_PAGE)
        read_page(request, report);
    enum err_code code = check_names(request, parameters, source, err);
    if (code)
        return code;
    code = read_rules(request, report, err);
    if (code)
        return code;
    code = request_query_i64(request, "limit", 0, INT32_MAX, default_limit, &report->limit, err);
    if (code)
        return code;
    code = request_query_i64(request, "depth", 0, INT32_MAX, 0, &report->depth, err);
    if (code)
        return code;
    code = read_paths(request, report, err);
    if (code)
        return code;
    code = read_names(request, parameters & REPORT_TAKES_PAGE, report, err);
    if (code)
        return code;
    if ((parameters & REPORT_TAKES_MODE) && request_query(request, "mode", &(struct span){0}))
        code = report_read_mode(request, report, err);
    if (code)
        return code;
    if ((parameters & REPORT_TAKES_FUNCTION) &&
        (!request_query(request, "fn", &report->function) || report->function.size == 0))
        return err_set(err, ERR_INVALID, "fn is missing: the name of a function");
    return ERR_NONE;
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

static void append_parameters(const struct report *report, struct buf *key)
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
    for (size_t i = 0; report->kind->shows_title && i < report->side_count; i++) {
        buf_append_text(key, " title=");
        buf_append_url(key, span_text(report->sides[i].title));
        buf_append_text(key, " file=");
        buf_append_url(key, span_text(report->sides[i].filename));
    }
}

void report_hash_parameters(const struct report *report, char ret_hex[DIGEST_HEX_BYTES])
{
    uint8_t hash[DIGEST_BYTES];
    buf_auto text;
    buf_init(&text,
             SIZE_MAX / 2); /* the parts are limited: a query and the summary of two shares */
    append_parameters(report, &text);
    digest_sha256(buf_span(&text), hash);
    digest_hex(span_of(hash, DIGEST_BYTES), ret_hex);
}

enum err_code report_too_large(const struct report *report, struct err *err)
{
    return err_set(err, ERR_TOO_LARGE,
                   report->is_anonymous
                       ? "the result would be larger than %zu bytes, the limit without credentials "
                         "(anonymous-max-generated-bytes): sign in, send a token, or narrow it "
                         "with limit, depth or focus"
                       : "the result would be larger than %zu bytes, the limit for generated files "
                         "(max-generated-bytes): narrow it with limit, depth or focus",
                   report->max_bytes);
}

/* The CPU time that the report may take. Clients without credentials share few slots, and wait for
 * each other; the cost of expressions is up to the client. */
static int64_t cpu_time_ns(const struct report *report)
{
    const int64_t whole_ns = report->server->settings->report_cpu_time_s * CLOCK_NS_PER_S;
    if (!report->is_anonymous)
        return whole_ns;
    return report->rule_count + report->chain_count ? whole_ns / 4 : whole_ns / 2;
}

/* Creates the view with the filter's rules only. */
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
        .cpu_deadline_ns = report->cpu_deadline_ns ? report->cpu_deadline_ns
                                                   : parallel_cpu_ns() + cpu_time_ns(report),
        .wait_limit = report->wait_limit,
    };
    memcpy(options.left_out, report->left_out, sizeof(options.left_out));
    if (report->side_count == 2)
        return diff_view_create(arena, profiles[0], profiles[1], report->mode, &options, ret_view,
                                err);
    return view_create(arena, profiles[0], &options, ret_view, err);
}

/* A view that is grouped by file or binary has no functions. So a rule that matches nothing in such
 * a view is about functions, and viewer_url_state_take_rules moves it to the filter if it can. */
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
    if (code)
        return code;
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

static enum err_code create_view(const struct report *requested, struct arena *arena,
                                 const struct profile *const profiles[2],
                                 const struct view **ret_view, struct err *err)
{
    struct report report = *requested;
    const struct view *view;
    enum err_code code = take_rules_of_functions(&report, arena, profiles, err);
    if (code)
        return code;
    code = create_filtered(&report, arena, profiles, &view, err);
    if (code)
        return code;
    if (report.chain_count)
        code = rule_chain_apply(arena, view, report.chain, report.chain_count, &view, err);
    if (code)
        return code;
    *ret_view = view;
    return ERR_NONE;
}

uint64_t report_memory(const struct report *report, const struct profile *profile)
{
    enum { NODE_BYTES = 200, LABEL_BYTES = 176 };
    if (!report->kind->needs_view)
        return 0;
    const uint64_t frames = profile_count_frames(profile);
    const uint64_t nodes = frames < FLAME_NODES_DEFAULT ? frames : FLAME_NODES_DEFAULT;
    uint64_t bytes = view_memory_bytes(profile, report->group_by) + nodes * NODE_BYTES;
    if (report->chain_count)
        bytes += view_memory_stack_bytes(profile);
    if (!report->kind->counts_labels || !profile->sample_count)
        return bytes;
    const uint32_t labels = profile->label_start[profile->sample_count];
    return bytes +
           (uint64_t)(labels < LABELS_VALUES_MAX ? labels : LABELS_VALUES_MAX) * LABEL_BYTES;
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

enum err_code report_take_slot(struct request *request, const char *key, struct err *err)
{
    const char *message =
        request->concurrency_slot.source
            ? arena_printf(request->arena,
                           "without credentials an address can generate one file at a time, and %d "
                           "of its requests can wait: sign in, or try again in a few seconds",
                           CONCURRENCY_LIMIT_WAITING_OF_SOURCE)
            : "too many slow reports are being computed; try again in a few seconds";
    return request_take_slot(request, request->server->limits->reports, key, message, err);
}
