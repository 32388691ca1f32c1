/* The query of POST /ingest: the parameters in the address, and the name with its labels. */
#include "lib/profile/pyroscope/pyroscope_ingest.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/input/time_parse.h"
#include "lib/profile/formats/format_list.h"

enum { SAMPLE_RATE_DEFAULT = 100, SAMPLE_RATE_MAX = 1000000000, LABELS_MAX = 256 };

/* ---- the address ---- */

/* Decodes "%41+b" to "A b"; false if a "%" is not followed by two hexadecimal digits. */
static bool decode_text(struct arena *arena, struct span text, struct span *ret_text)
{
    uint8_t *bytes = arena_alloc_raw(arena, text.size, 1);
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint64_t number;
        if (text.data[i] == '%') {
            if (text.size - i < 3 || text.data[i + 2] == 'x' || text.data[i + 2] == 'X' ||
                !span_parse_hex(span_of(text.data + i + 1, 2), &number))
                return false;
            bytes[size++] = (uint8_t)number;
            i += 2;
        } else {
            bytes[size++] = text.data[i] == '+' ? ' ' : text.data[i];
        }
    }
    *ret_text = span_of(bytes, size);
    return true;
}

/* Finds the first value of a parameter; empty if it is absent. */
static enum err_code find_parameter(struct arena *arena, struct span query, const char *wanted,
                                    struct span *ret_value, struct err *err)
{
    struct span pair, name, value;
    *ret_value = span_of(NULL, 0);
    while (query.size) {
        span_split(query, '&', &pair, &query);
        if (!span_split(pair, '=', &name, &value) || !span_equal_text(name, wanted))
            continue;
        if (!decode_text(arena, value, ret_value))
            return err_set(err, ERR_INVALID, "%s: a %% is not followed by two hexadecimal digits",
                           wanted);
        return ERR_NONE;
    }
    return ERR_NONE;
}

/* ---- the name ---- */

struct name_reader {
    struct batch_text_label *labels;
    size_t label_count;
    struct span session;
};

static enum err_code add_label(struct name_reader *reader, struct span name, struct span value,
                               struct err *err)
{
    if (span_equal_text(name, "__session_id__"))
        reader->session = value;
    if (span_starts_with(name, "__"))
        return ERR_NONE;
    if (reader->label_count == LABELS_MAX)
        return err_set(err, ERR_TOO_LARGE, "name: more than %d labels", LABELS_MAX);
    reader->labels[reader->label_count++] = (struct batch_text_label){.name = name, .value = value};
    return ERR_NONE;
}

/* "k=v,k2=v2" */
static enum err_code read_labels(struct name_reader *reader, struct span text, struct err *err)
{
    text = span_trim(text);
    while (text.size) {
        struct span pair, name, value;
        span_split(text, ',', &pair, &text);
        if (!span_split(pair, '=', &name, &value))
            return err_set(err, ERR_INVALID, "name: label '%.*s' has no '='",
                           pair.size > 100 ? 100 : (int)pair.size, (const char *)pair.data);
        enum err_code code = add_label(reader, span_trim(name), span_trim(value), err);
        if (code)
            return code;
    }
    return ERR_NONE;
}

static enum err_code read_name(struct arena *arena, struct span text,
                               struct pyroscope_ingest_query *query, struct err *err)
{
    struct span app, labels;
    struct name_reader reader = {.labels = arena_new(arena, struct batch_text_label, LABELS_MAX)};
    bool has_labels = span_split(text, '{', &app, &labels);
    query->app = span_trim(has_labels ? app : text);
    if (query->app.size == 0)
        return err_set(err, ERR_INVALID, "name: it is required, such as name=app.cpu{region=eu}");
    if (has_labels) {
        labels = span_trim(labels);
        if (!span_ends_with(labels, "}"))
            return err_set(err, ERR_INVALID, "name: its labels do not end with '}'");
        labels.size--;
        enum err_code code = read_labels(&reader, labels, err);
        if (code)
            return code;
    }
    query->labels = reader.labels;
    query->label_count = reader.label_count;
    query->session = reader.session;
    return ERR_NONE;
}

/* ---- labels ---- */

/* Validates the labels of the query. batch_from_profile does it again, together with the labels of
 * the profile, but only here can the message name the query's parameter. */
static enum err_code check_labels(struct arena *arena, const struct pyroscope_ingest_query *query,
                                  struct err *err)
{
    const struct batch_limits limits = batch_limits_resolve(NULL);
    size_t count = query->label_count;
    struct batch_text_label *labels = arena_new_raw(arena, struct batch_text_label, count);
    if (count)
        memcpy(labels, query->labels, count * sizeof(*labels));
    const char *notice = NULL;
    enum err_code code = batch_labels_check(arena, labels, &count, &limits, &notice, err);
    if (code)
        return err_add(err, "name");
    struct batch_text_label app = {.name = SPAN_LITERAL("service_name"), .value = query->app};
    struct batch_text_label spy = {.name = SPAN_LITERAL("pyroscope_spy"), .value = query->spy_name};
    count = 1;
    code = batch_labels_check(arena, &app, &count, &limits, &notice, err);
    if (code)
        return err_add(err, "name");
    count = 1;
    code = batch_labels_check(arena, &spy, &count, &limits, &notice, err);
    return code ? err_add(err, "spyName") : ERR_NONE;
}

/* ---- all parameters ---- */

static enum err_code read_time(struct arena *arena, struct span text, const char *name,
                               int64_t now_ns, int64_t *ret_ns, bool *ret_is_there, struct err *err)
{
    struct span value;
    enum err_code code = find_parameter(arena, text, name, &value, err);
    if (code)
        return code;
    *ret_ns = now_ns;
    *ret_is_there = span_trim(value).size > 0;
    if (*ret_is_there && time_parse(value, now_ns, ret_ns, err))
        return err_add(err, "%s", name);
    return ERR_NONE;
}

static enum err_code read_times(struct arena *arena, struct span text, int64_t now_ns,
                                struct pyroscope_ingest_query *query, struct err *err)
{
    bool has_from, has_until;
    enum err_code code = read_time(arena, text, "from", now_ns, &query->from_ns, &has_from, err);
    if (code)
        return code;
    code = read_time(arena, text, "until", now_ns, &query->until_ns, &has_until, err);
    if (code)
        return code;
    if (has_from && has_until && query->until_ns < query->from_ns)
        return err_set(err, ERR_INVALID, "until: it is before from");
    return ERR_NONE;
}

/* Pyroscope takes an unknown format for folded stacks, and an unknown aggregation for a sum. Such a
 * spelling mistake would add wrong values, so it is refused. */
static const char *const formats[] = {
#define FORMAT_NAME(id, name, ...) name,
    FORMAT_LIST(FORMAT_NAME)
#undef FORMAT_NAME
        "groups",
    "collapsed",
    "lines",
    "trie",
    "tree",
    "jfr",
    NULL};
static const char *const aggregations[] = {"sum", "average", NULL};

/* An empty value is as if it were absent. */
static enum err_code check_word(const char *name, struct span value, const char *const *known,
                                struct err *err)
{
    enum { SHOWN_BYTES = 100 };
    buf_auto list;
    buf_init(&list, ERR_MESSAGE_BYTES);
    if (value.size == 0)
        return ERR_NONE;
    for (size_t i = 0; known[i]; i++) {
        if (span_equal_text(value, known[i]))
            return ERR_NONE;
        buf_printf(&list, "%s%s", i ? ", " : "", known[i]);
    }
    return err_set(err, ERR_INVALID, "%s: '%.*s' is unknown: send one of %.*s, or leave it out",
                   name, value.size > SHOWN_BYTES ? SHOWN_BYTES : (int)value.size,
                   (const char *)value.data, SPAN_PRINT(buf_span(&list)));
}

enum err_code pyroscope_ingest_parse_query(struct arena *arena, struct span text, int64_t now_ns,
                                           struct pyroscope_ingest_query *ret_query,
                                           struct err *err)
{
    struct pyroscope_ingest_query query = {.sample_rate = SAMPLE_RATE_DEFAULT};
    struct span name, rate;
    struct {
        const char *name;
        struct span *value;
    } const parameters[] = {{"name", &name},
                            {"sampleRate", &rate},
                            {"spyName", &query.spy_name},
                            {"units", &query.units},
                            {"aggregationType", &query.aggregation},
                            {"format", &query.format}};
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
        enum err_code code =
            find_parameter(arena, text, parameters[i].name, parameters[i].value, err);
        if (code)
            return code;
    }
    enum err_code code = read_name(arena, name, &query, err);
    if (code)
        return code;
    code = check_word("format", query.format, formats, err);
    if (code)
        return code;
    code = check_word("aggregationType", query.aggregation, aggregations, err);
    if (code)
        return code;
    code = read_times(arena, text, now_ns, &query, err);
    if (code)
        return code;
    uint64_t number;
    if (span_parse_u64(rate, &number) && number <= SAMPLE_RATE_MAX)
        query.sample_rate = (uint32_t)number;
    if (query.spy_name.size == 0)
        query.spy_name = SPAN_LITERAL("unknown");
    if (query.units.size == 0)
        query.units = SPAN_LITERAL("samples");
    if (query.aggregation.size == 0)
        query.aggregation = SPAN_LITERAL("sum");
    code = check_labels(arena, &query, err);
    if (code)
        return code;
    *ret_query = query;
    return ERR_NONE;
}
