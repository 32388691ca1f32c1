#include "api/query/query_range.h"

#include "api/core/server.h"
#include "api/query/query.h"
#include "api/query/query_fields.h"
#include "api/query/store_json.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/input/time_parse.h"
#include "lib/profile/report/filter.h"

#include <inttypes.h>

enum { POINTS_DEFAULT = 250, GROUP_LABELS_MAX = 8, SERIES_DEFAULT = 100 };

/* A smaller part of a rate that is missing is not worth a note. */
#define LEAST_LACKING_PART 0.02

enum rate { RATE_NO, RATE_YES, RATE_AUTO /* if the type has one */ };

struct range_request {
    struct store_range_query range;
    enum rate rate;
    bool wants_other;
    bool has_step;         /* otherwise the server chooses it */
    int64_t short_step_ns; /* the requested step, which was too short and was raised; 0: none was */
    struct span group_by[GROUP_LABELS_MAX];
};

/* ---- parameters ---- */

/* Steps of a round length begin at round clock times, so that hours whose data is one sum are in
 * one step. */
static void set_round_step(struct store_range_query *range, int64_t step_ns)
{
    const int64_t start_ns = range->query.start_ns, past_ns = start_ns % step_ns;
    range->step_ns = step_ns;
    range->lead_ns = past_ns < 0 ? past_ns + step_ns : past_ns;
    if (start_ns < INT64_MIN + step_ns)
        range->lead_ns = 0;
}

static const int32_t round_steps_s[] = {1,     2,     5,     10,    15,     30,    60,
                                        120,   300,   600,   900,   1800,   3600,  7200,
                                        10800, 21600, 43200, 86400, 172800, 604800};
enum { ROUND_STEPS = sizeof(round_steps_s) / sizeof(round_steps_s[0]) };

/* The shortest round step that gives no more than the wanted number of points. */
static void choose_step(struct store_range_query *range)
{
    const int64_t window_ns = range->query.end_ns - range->query.start_ns;
    for (size_t i = 0; i < ROUND_STEPS; i++) {
        const int64_t step_ns = round_steps_s[i] * CLOCK_NS_PER_S;
        if (window_ns / step_ns < POINTS_DEFAULT - 1) {
            set_round_step(range, step_ns);
            return;
        }
    }
    range->step_ns = window_ns / POINTS_DEFAULT + 1;
}

/* The shortest round step that is not below a step. */
static int64_t round_up_step(int64_t step_ns)
{
    for (size_t i = 0; i < ROUND_STEPS; i++) {
        if (round_steps_s[i] * CLOCK_NS_PER_S >= step_ns)
            return round_steps_s[i] * CLOCK_NS_PER_S;
    }
    return step_ns;
}

static enum err_code read_step(const struct request *request, struct range_request *range_request,
                               struct err *err)
{
    struct store_range_query *range = &range_request->range;
    struct span text;
    range_request->has_step = request_query(request, "step", &text) && text.size;
    if (!range_request->has_step) {
        choose_step(range);
        return ERR_NONE;
    }
    enum err_code code = time_parse_duration(text, &range->step_ns, err);
    if (code)
        return err_add(err, "step");
    if (range->step_ns < CLOCK_NS_PER_MS)
        return err_set(err, ERR_INVALID, "step must be at least a millisecond");
    return ERR_NONE;
}

static enum err_code read_groups(const struct request *request, struct range_request *range_request,
                                 struct err *err)
{
    struct span name;
    size_t count = 0;
    for (; request_query_nth(request, "group_by", count, &name); count++) {
        if (count == GROUP_LABELS_MAX)
            return err_set(err, ERR_INVALID, "group_by: there are more than %d labels",
                           GROUP_LABELS_MAX);
        if (!name.size)
            return err_set(err, ERR_INVALID, "group_by must be a label's name");
        for (size_t i = 0; i < count; i++) {
            if (span_equal(range_request->group_by[i], name))
                return err_set(err, ERR_INVALID, "group_by: '%.*s' is given twice",
                               SPAN_PRINT(name));
        }
        range_request->group_by[count] = name;
    }
    range_request->range.group_by = range_request->group_by;
    range_request->range.group_by_count = count;
    return ERR_NONE;
}

static enum err_code read_filter(const struct request *request, struct store_range_query *range,
                                 struct err *err)
{
    static const enum filter_action actions[] = {FILTER_FOCUS, FILTER_IGNORE};
    struct filter_rule rules[FILTER_RULES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        const char *name = filter_action_name(actions[i]);
        struct span pattern;
        for (size_t n = 0; request_query_nth(request, name, n, &pattern); n++) {
            if (count == FILTER_RULES_MAX)
                return err_set(err, ERR_INVALID, "there are more than %d of focus and ignore",
                               FILTER_RULES_MAX);
            rules[count++] = (struct filter_rule){.action = actions[i], .pattern = pattern};
        }
    }
    return filter_create(request->arena, rules, count, &range->filter, err);
}

static enum err_code read_bool(const struct request *request, const char *name, bool is_default,
                               bool *ret_value, struct err *err)
{
    struct span text = span_text(is_default ? "true" : "false");
    request_query(request, name, &text);
    *ret_value = span_equal_text(text, "true");
    if (!*ret_value && !span_equal_text(text, "false"))
        return err_set(err, ERR_INVALID, "%s must be true or false", name);
    return ERR_NONE;
}

static enum err_code read_rate(const struct request *request, struct range_request *range_request,
                               struct err *err)
{
    struct span text;
    range_request->rate = RATE_AUTO;
    if (request_query(request, "rate", &text) && span_equal_text(text, "auto"))
        return ERR_NONE;
    enum err_code code = read_bool(request, "rate", false, &range_request->range.is_rate, err);
    if (code)
        return err_set(err, ERR_INVALID, "rate must be true, false or auto");
    range_request->rate = range_request->range.is_rate ? RATE_YES : RATE_NO;
    return ERR_NONE;
}

static enum err_code read_request(struct request *request, struct range_request *range_request,
                                  struct err *err)
{
    static const char *const single[] = {"query", "start",         "end",     "step",  "limit",
                                         "rate",  "by_timestamps", "moments", "other", NULL};
    static const char *const repeatable[] = {
        "group_by", "focus", "ignore", "label", "span_selector", "trace_id_selector", NULL};
    struct store_range_query *range = &range_request->range;
    int64_t limit = SERIES_DEFAULT;
    enum err_code code = request_check_parameters(request, single, repeatable, err);
    if (code)
        return code;
    code = query_read(request, &query_parameters, NULL, &range->query, err);
    if (code)
        return code;
    code = query_read_labels(request, &range->query, err);
    if (code)
        return code;
    code = read_step(request, range_request, err);
    if (code)
        return code;
    code = read_groups(request, range_request, err);
    if (code)
        return code;
    code = read_filter(request, range, err);
    if (code)
        return code;
    code = read_rate(request, range_request, err);
    if (code)
        return code;
    code = read_bool(request, "moments", false, &range->is_by_timestamps, err); /* the old name */
    if (code)
        return code;
    code =
        read_bool(request, "by_timestamps", range->is_by_timestamps, &range->is_by_timestamps, err);
    if (code)
        return code;
    code = read_bool(request, "other", true, &range_request->wants_other, err);
    if (code)
        return code;
    code =
        request_query_i64(request, "limit", 1, STORE_RANGE_SERIES_MAX, SERIES_DEFAULT, &limit, err);
    if (code)
        return code;
    range->max_series = (uint32_t)limit;
    return ERR_NONE;
}

/* ---- the response ---- */

static bool is_in_nanoseconds(const struct store_type *type)
{
    return span_equal_text(type->parts[STORE_TYPE_SAMPLE_UNIT], "nanoseconds");
}

static bool is_rate(const struct range_request *range_request, const struct store_type *type)
{
    return range_request->rate == RATE_YES ||
           (range_request->rate == RATE_AUTO && type && type->aggregation != STORE_MEAN);
}

static void append_unit(const struct range_request *range_request, const struct store_type *type,
                        struct buf *json)
{
    buf_auto unit;
    buf_init(&unit, 1 << 16);
    if (!type)
        buf_append_text(&unit, "");
    else if (!is_rate(range_request, type))
        buf_append_span(&unit, type->parts[STORE_TYPE_SAMPLE_UNIT]);
    else if (!is_in_nanoseconds(type))
        buf_printf(&unit, "%.*s/s", SPAN_PRINT(type->parts[STORE_TYPE_SAMPLE_UNIT]));
    else
        buf_append_text(&unit, span_equal_text(type->parts[STORE_TYPE_SAMPLE_TYPE], "cpu")
                                   ? "cores"
                                   : "seconds/s");
    buf_append_json(json, buf_span(&unit));
}

/* Values in nanoseconds per nanosecond are seconds per second. */
static void append_rate(const struct store_type *type, double per_ns, struct buf *json)
{
    buf_printf(json, "%.9g", is_in_nanoseconds(type) ? per_ns : per_ns * (double)CLOCK_NS_PER_S);
}

/* Accepts any number: a step may be years. */
static void append_ms(int64_t ns, struct buf *json)
{
    buf_printf(json, "%" PRId64, ns / CLOCK_NS_PER_MS);
    if (ns % CLOCK_NS_PER_MS)
        buf_printf(json, ".%06" PRId64, ns % CLOCK_NS_PER_MS);
}

static int64_t begin_of_step(const struct store_range_query *range, uint32_t step)
{
    return range->query.start_ns - range->lead_ns + step * range->step_ns;
}

/* A double has at least 15 exact decimal digits. */
static void append_gauge(double average, struct buf *json)
{
    buf_printf(json, "%.15g", average);
}

static void append_point(const struct range_request *range_request, const struct store_type *type,
                         const struct store_point *point, struct buf *json)
{
    const int64_t begin_ns = begin_of_step(&range_request->range, point->step);
    buf_printf(json, "[%" PRId64 ",", begin_ns / CLOCK_NS_PER_MS);
    if (is_rate(range_request, type))
        append_rate(type, point->average, json);
    else if (type->aggregation == STORE_MEAN)
        append_gauge(point->average, json);
    else
        buf_printf(json, "%" PRId64, point->value);
    buf_append_byte(json, ']');
}

/* The part of a step that is in the window. */
static double length_of_step(const struct store_range_query *range, uint32_t step)
{
    const int64_t left_ns = range->query.end_ns - begin_of_step(range, step);
    const int64_t length_ns = left_ns < range->step_ns ? left_ns : range->step_ns;
    return (double)(length_ns - (step == 0 ? range->lead_ns : 0));
}

/* Averages of a part of the window weigh points by the time that has data: nearly always the step.
 */
static void append_partial(const struct store_range_query *range,
                           const struct store_range_series *series, struct buf *json)
{
    bool has_any = false;
    for (uint32_t i = 0; i < series->point_count; i++) {
        const struct store_point *point = &series->points[i];
        if ((double)point->covered_ns >= 0.99 * length_of_step(range, point->step))
            continue;
        const int64_t begin_ns = begin_of_step(range, point->step);
        buf_printf(json, "%s[%" PRId64 ",", has_any ? "," : ",\"partial\":[",
                   begin_ns / CLOCK_NS_PER_MS);
        append_ms((int64_t)point->covered_ns, json);
        buf_append_byte(json, ']');
        has_any = true;
    }
    if (has_any)
        buf_append_byte(json, ']');
}

/* The summary beside a graph: the average of its points. */
static void append_summary(const struct range_request *range_request, const struct store_type *type,
                           const struct store_range_series *series, struct buf *json)
{
    const bool is_gauge = type->aggregation == STORE_MEAN;
    if (series->covered_ns && (is_gauge || is_rate(range_request, type))) {
        buf_append_text(json, ",\"average\":");
        if (is_gauge)
            append_gauge(series->average, json);
        else
            append_rate(type, series->average, json);
    }
    if (!is_gauge)
        buf_printf(json, ",\"total\":%" PRId64, series->total);
    buf_append_text(json, ",\"covered_ms\":");
    append_ms((int64_t)series->covered_ns, json);
    append_partial(&range_request->range, series, json);
}

static void append_series(const struct range_request *range_request,
                          const struct store_range *result, const struct store_range_series *series,
                          struct buf *json)
{
    const bool is_other = series == result->other;
    buf_append_text(json, "{\"labels\":{");
    if (!is_other)
        store_json_append_labels(json, series->labels,
                                 (uint32_t)range_request->range.group_by_count);
    buf_append_text(json, "},");
    if (is_other)
        buf_printf(json, "\"other_count\":%" PRIu32 ",", result->other_count);
    buf_append_text(json, "\"points\":[");
    for (uint32_t i = 0; i < series->point_count; i++) {
        buf_append_text(json, i ? "," : "");
        append_point(range_request, result->type, &series->points[i], json);
    }
    buf_append_byte(json, ']');
    append_summary(range_request, result->type, series, json);
    buf_append_byte(json, '}');
}

static void print_s(int64_t ns, struct buf *text)
{
    buf_printf(text, "%.9g s", (double)ns / (double)CLOCK_NS_PER_S);
}

static void print_unknown(const struct store_range *result, struct buf *note)
{
    const bool is_one = result->unknown_count == 1;
    buf_printf(note,
               "%" PRIu64 " profile%s no duration and count%s for the time until the next one of "
               "the same series",
               result->unknown_count, is_one ? " has" : "s have", is_one ? "s" : "");
    if (result->longest_interval_ns) {
        buf_append_text(note, ", at most for the usual interval of ");
        if (result->interval_ns != result->longest_interval_ns)
            buf_append_text(note, "the series, up to ");
        print_s(result->longest_interval_ns, note);
    }
    buf_append_text(note, ", or for a step if there is no other one.");
}

static void print_raised(const struct range_request *range_request, struct buf *note)
{
    buf_append_text(note, note->size ? " The step was raised from " : "The step was raised from ");
    print_s(range_request->short_step_ns, note);
    buf_append_text(note, " to ");
    print_s(range_request->range.step_ns, note);
}

/* Names the series whose interval is longer than the step that fits most of them. */
static void print_longer(const struct store_range *result, struct buf *note)
{
    const bool is_one = result->longer_count == 1;
    buf_printf(note, "%s%" PRIu32 " series %s a longer interval than the step, up to ",
               note->size ? " " : "", result->longer_count, is_one ? "has" : "have");
    print_s(result->longest_interval_ns, note);
    buf_printf(note, ": %s values are even within it.", is_one ? "its" : "their");
}

/* Appends notes about the values, as sentences for the reader of the graph. */
static void append_notes(const struct range_request *range_request,
                         const struct store_range *result, struct buf *json)
{
    buf_auto note;
    buf_init(&note, 1024);
    if (result->unknown_count)
        print_unknown(result, &note);
    if (range_request->short_step_ns) {
        print_raised(range_request, &note);
        buf_append_text(
            &note, ": a step shorter than the interval would show details that are not known.");
    }
    if (result->longer_count)
        print_longer(result, &note);
    if (result->crowded_count)
        buf_printf(&note,
                   "%sOnly totals of some hours are stored, and profiles that extend beyond their "
                   "hour count in it: the rates of %" PRIu32 " hour%s may be too high.",
                   note.size ? " " : "", result->crowded_count,
                   result->crowded_count == 1 ? "" : "s");
    if (result->lacking_part >= LEAST_LACKING_PART)
        buf_printf(&note,
                   "%sSeries are profiled only part of the time, not all at the same time: the sum "
                   "of their rates is about %.0f %% too low. Group by a label that differs between "
                   "them, such as pod or instance.",
                   note.size ? " " : "", result->lacking_part * 100);
    else if (result->single_count)
        buf_printf(
            &note,
            "%s%" PRIu32 " series have a single profile here, not all at the same time: if "
            "their processes ran all the time, the sum of their rates is too low. Group by a "
            "label that differs between them, such as pod or instance.",
            note.size ? " " : "", result->single_count);
    if (!note.size)
        return;
    buf_append_text(json, ",\"notes\":[");
    buf_append_json(json, buf_span(&note));
    buf_append_byte(json, ']');
}

static void append_result(const struct range_request *range_request,
                          const struct store_range *result, int64_t begin_ns, struct buf *json)
{
    const struct store_type *type = result->type;
    buf_append_text(json, "{\"type\":");
    buf_append_json(json, span_text(type ? type->name : ""));
    buf_append_text(json, ",\"unit\":");
    append_unit(range_request, type, json);
    buf_printf(json, ",\"rule\":\"%s\",\"step_ms\":",
               store_aggregation_name(type ? type->aggregation : STORE_SUM));
    append_ms(range_request->range.step_ns, json);
    buf_append_text(json, ",\"series\":[");
    for (uint32_t i = 0; i < result->series_count; i++) {
        buf_append_text(json, i ? "," : "");
        append_series(range_request, result, &result->series[i], json);
    }
    if (result->other && range_request->wants_other) {
        buf_append_text(json, ",");
        append_series(range_request, result, result->other, json);
    }
    buf_printf(json, "],\"group_count\":%" PRIu32, result->series_count + result->other_count);
    append_notes(range_request, result, json);
    buf_append_text(json, ",\"statistics\":");
    store_json_append_statistics(json, &result->statistics, begin_ns);
    buf_append_text(json, "}\n");
}

/* ---- steps that fit the stored data ---- */

/* Computes the values over time in place of earlier ones, whose memory is freed first. */
static enum err_code run_again(const struct request *request,
                               const struct range_request *range_request, struct arena **run,
                               struct store_range *ret_result, struct err *err)
{
    arena_destroy(*run);
    *run = arena_create();
    return store_range(request->server->store, *run, &range_request->range, ret_result, err);
}

/* Hours with totals only have no parts: if the server chose shorter steps, they become full hours.
 */
static enum err_code use_full_hours(const struct request *request,
                                    struct range_request *range_request, struct arena **run,
                                    struct store_range *result, struct err *err)
{
    const int64_t hour_ns = 3600 * CLOCK_NS_PER_S;
    struct store_range_query *range = &range_request->range;
    const uint32_t cut_count = result->statistics.cut_count;
    if (range_request->has_step || range->step_ns >= hour_ns || !cut_count)
        return ERR_NONE;
    const struct store_range_query fine = *range;
    set_round_step(range, hour_ns);
    struct err ignored;
    if (!run_again(request, range_request, run, result, &ignored) &&
        result->statistics.cut_count < cut_count)
        return ERR_NONE;
    *range = fine;
    return run_again(request, range_request, run, result, err);
}

static void set_raised_step(struct range_request *range_request, int64_t shortest_ns)
{
    struct store_range_query *range = &range_request->range;
    const int64_t step_ns = range->step_ns;
    if (range_request->has_step &&
        __builtin_mul_overflow((shortest_ns - 1) / step_ns + 1, step_ns, &range->step_ns))
        range->step_ns = shortest_ns; /* centuries: longer than any window */
    else if (!range_request->has_step)
        set_round_step(range, round_up_step(shortest_ns));
    range_request->short_step_ns = step_ns;
}

/* If profiles have no duration, parts of their interval have no values of their own. A requested
 * step becomes a multiple of itself, one that the server chose the next round one. */
static enum err_code raise_step(const struct request *request, struct range_request *range_request,
                                struct arena **run, struct store_range *result, struct err *err)
{
    if (result->interval_ns <= range_request->range.step_ns)
        return ERR_NONE;
    set_raised_step(range_request, result->interval_ns);
    return run_again(request, range_request, run, result, err);
}

static enum err_code run_range_query(struct request *request, struct range_request *range_request,
                                     struct store_range *ret_result, struct err *err)
{
    struct arena *run = NULL;
    enum err_code code = run_again(request, range_request, &run, ret_result, err);
    if (!code)
        code = use_full_hours(request, range_request, &run, ret_result, err);
    if (!code)
        code = raise_step(request, range_request, &run, ret_result, err);
    arena_adopt(request->arena, run);
    return code;
}

static enum err_code get_query_range(struct request *request, struct response *response,
                                     struct err *err)
{
    const int64_t begin_ns = clock_monotonic_ns();
    struct range_request *range_request = arena_new(request->arena, struct range_request, 1);
    struct store_range result;
    enum err_code code = read_request(request, range_request, err);
    if (code)
        return code;
    code = run_range_query(request, range_request, &result, err);
    if (code)
        return code;
    buf_auto json;
    buf_init(&json, STORE_JSON_MAX_BYTES);
    append_result(range_request, &result, begin_ns, &json);
    query_fields_add_statistics(request, response, &result.statistics, begin_ns);
    if (!result.type)
        query_fields_explain_labels(request, response, &range_request->range.query,
                                    &result.statistics);
    return store_json_respond(request, response, &json, err);
}

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/query_range", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_query_range},
};

const struct route_table query_range_routes = {routes, sizeof(routes) / sizeof(*routes)};
