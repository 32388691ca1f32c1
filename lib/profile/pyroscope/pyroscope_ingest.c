#include "lib/profile/pyroscope/pyroscope_ingest.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/formats/json_tree.h"
#include "lib/profile/formats/stack_lines.h"
#include "lib/profile/profile_builder.h"
#include "lib/profile/pyroscope/multipart.h"
#include "lib/profile/unit.h"

enum { CONFIG_MAX_BYTES = 1 << 20 };

/* The parts of the body. */
struct form {
    bool has_profile;
    struct span profile;
    struct span config;
};

/* The type of folded stacks, by the last part of the app's name. */
static const struct counted {
    const char *end;
    const char *name;
    const char *type;
    const char *unit;
    bool is_sampled; /* values count samples: multiply by the sampling interval */
} counted[] = {
    {"cpu", "process_cpu", "cpu", "nanoseconds", true},
    {"itimer", "process_cpu", "cpu", "nanoseconds", true},
    {"wall", "wall", "wall", "nanoseconds", true},
    {"seconds", "wall", "wall", "nanoseconds", true},
    {"milliseconds", "wall", "wall", "nanoseconds", true},
    {"microseconds", "wall", "wall", "nanoseconds", true},
    {"nanoseconds", "wall", "wall", "nanoseconds", true},
    {"inuse_objects", "memory", "inuse_objects", "count", false},
    {"inuse_space", "memory", "inuse_space", "bytes", false},
    {"alloc_objects", "memory", "alloc_objects", "count", false},
    {"alloc_space", "memory", "alloc_space", "bytes", false},
    {"alloc_in_new_tlab_objects", "memory", "alloc_in_new_tlab_objects", "count", false},
    {"alloc_in_new_tlab_bytes", "memory", "alloc_in_new_tlab_bytes", "bytes", false},
    {"alloc_outside_tlab_objects", "memory", "alloc_outside_tlab_objects", "count", false},
    {"alloc_outside_tlab_bytes", "memory", "alloc_outside_tlab_bytes", "bytes", false},
    {"live", "memory", "live", "count", false},
    {"bytes", "memory", "samples", "bytes", false},
    {"goroutines", "goroutine", "goroutines", "count", false},
    {"mutex_count", "mutex", "contentions", "count", false},
    {"mutex_duration", "mutex", "delay", "nanoseconds", false},
    {"block_count", "block", "contentions", "count", false},
    {"block_duration", "block", "delay", "nanoseconds", false},
    {"lock_count", "block", "contentions", "count", false},
    {"lock_duration", "block", "delay", "nanoseconds", false},
    {"exceptions", "exceptions", "samples", "count", false},
};

/* ---- the body ---- */

static enum err_code read_part(const struct multipart_part *part, struct form *form,
                               struct err *err)
{
    struct span name = span_of(part->name, part->name_size);
    if (span_equal_text(name, "profile")) {
        if (form->has_profile)
            return err_set(err, ERR_INVALID,
                           "the form has the part profile twice: send one request for each");
        form->has_profile = true;
        form->profile = part->body;
    } else if (span_equal_text(name, "sample_type_config") && form->config.size == 0)
        form->config = part->body;
    else if (span_equal_text(name, "prev_profile") && part->body.size)
        return err_set(err, ERR_UNSUPPORTED,
                       "prev_profile: the agent is too old and sends counters; update it");
    return ERR_NONE;
}

static enum err_code read_form(struct span content_type, struct span body, struct form *ret_form,
                               struct err *err)
{
    struct multipart multipart;
    struct form form = {0};
    bool is_end = false;
    enum err_code code = multipart_init(&multipart, content_type, body, err);
    while (!code) {
        struct multipart_part part;
        code = multipart_next(&multipart, &part, &is_end, err);
        if (code || is_end)
            break;
        code = read_part(&part, &form, err);
    }
    if (code)
        return code;
    if (!form.has_profile)
        return err_set(err, ERR_INVALID, "the form has no part profile: send the profile in it");
    *ret_form = form;
    return ERR_NONE;
}

static enum err_code refuse_format(const struct pyroscope_ingest_query *query,
                                   struct span content_type, struct err *err)
{
    if (span_equal_text(query->format, "jfr"))
        return err_set(err, ERR_UNSUPPORTED,
                       "format: jfr is not read here; let the agent send OTLP, or pprof");
    if (span_equal_text(query->format, "trie") || span_equal_text(query->format, "tree") ||
        span_equal_text(content_type, "binary/octet-stream+trie") ||
        span_equal_text(content_type, "binary/octet-stream+tree"))
        return err_set(err, ERR_UNSUPPORTED,
                       "format: trie and tree are not read here; send pprof or folded stacks");
    return ERR_NONE;
}

static enum err_code decode_lines(struct span bytes, const struct profile_limits *limits,
                                  struct profile **ret_profile, struct err *err)
{
    const struct profile_limits most = profile_limits_resolve(limits);
    buf_auto text;
    buf_init(&text, most.raw_bytes);
    enum compress_method method = compress_sniff(bytes);
    if (method == COMPRESS_NONE) {
        if (bytes.size > text.max_size)
            return err_set(err, ERR_TOO_LARGE, "the profile has %zu bytes; the limit is %zu",
                           bytes.size, text.max_size);
        return stack_lines_decode(bytes, limits, ret_profile, err);
    }
    enum err_code code = compress_expand_ratio(method, bytes, most.expansion_ratio,
                                               most.expansion_setting, &text, err);
    return code ? code : stack_lines_decode(buf_span(&text), limits, ret_profile, err);
}

/* ---- labels ---- */

static bool has_label(const struct pyroscope_ingest_query *query, const char *name)
{
    for (size_t i = 0; i < query->label_count; i++) {
        const struct batch_text_label *label = &query->labels[i];
        bool is_wanted = span_equal_text(label->name, name) ||
                         (span_equal_text(span_text(name), "service_name") &&
                          batch_labels_is_service(label->name));
        if (is_wanted && label->value.size)
            return true;
    }
    return false;
}

/* Sets the labels of the series. The app becomes app_label, unless the sender set that label. */
static void set_labels(struct arena *arena, const struct pyroscope_ingest_query *query,
                       struct span app, const char *app_label, struct batch_source *source)
{
    struct batch_text_label *labels =
        arena_new(arena, struct batch_text_label, query->label_count + 2);
    size_t count = 0;
    for (size_t i = 0; i < query->label_count; i++) {
        bool is_replaced =
            span_equal_text(query->labels[i].name, "pyroscope_spy") ||
            (query->labels[i].value.size == 0 && span_equal_text(query->labels[i].name, app_label));
        if (!is_replaced)
            labels[count++] = query->labels[i];
    }
    labels[count++] =
        (struct batch_text_label){.name = SPAN_LITERAL("pyroscope_spy"), .value = query->spy_name};
    if (!has_label(query, app_label))
        labels[count++] = (struct batch_text_label){.name = span_text(app_label), .value = app};
    source->labels = labels;
    source->label_count = count;
}

/* ---- stacks with counts only ---- */

/* Finds the type in the last part of the app's name; NULL: it is not a known one. *ret_service is
 * the name without that part, or the whole name. */
static const struct counted *find_counted(struct span app, struct span *ret_service)
{
    size_t at = app.size;
    while (at && app.data[at - 1] != '.')
        at--;
    struct span end = span_of(app.data + at, app.size - at);
    for (size_t i = 0; at > 1 && i < sizeof(counted) / sizeof(counted[0]); i++) {
        if (!span_equal_text(end, counted[i].end))
            continue;
        *ret_service = span_of(app.data, at - 1);
        return &counted[i];
    }
    *ret_service = app;
    return NULL;
}

struct span pyroscope_ingest_service(const struct pyroscope_ingest_query *query)
{
    struct span service;
    find_counted(query->app, &service);
    return span_equal_text(query->format, "pprof") ? query->app : service;
}

/* Returns the index of text, which is appended to strings if it is new. strings has space for it.
 */
static uint32_t add_string(struct profile *profile, struct span *strings, const char *text)
{
    for (uint32_t i = 0; i < profile->string_count; i++) {
        if (span_equal_text(strings[i], text))
            return i;
    }
    strings[profile->string_count] = span_text(text);
    return profile->string_count++;
}

static void set_types(struct profile *profile, const struct counted *what, int64_t period_ns)
{
    enum { NEW_STRINGS = 4 };
    struct span *strings =
        arena_new_raw(profile->arena, struct span, (size_t)profile->string_count + NEW_STRINGS);
    struct profile_value_type *type = arena_new(profile->arena, struct profile_value_type, 1);
    memcpy(strings, profile->strings, profile->string_count * sizeof(*strings));
    bool is_unscaled = what->is_sampled && period_ns == 0;
    type->type = add_string(profile, strings, is_unscaled ? "samples" : what->type);
    type->unit = add_string(profile, strings, is_unscaled ? "count" : what->unit);
    if (period_ns) {
        profile->period_type.type = add_string(profile, strings, "cpu");
        profile->period_type.unit = add_string(profile, strings, "nanoseconds");
        profile->period = period_ns;
    }
    profile->strings = strings;
    profile->value_types = type;
}

/* Multiplies the values by factor, and divides out the decimals of their unit ("count/10"). */
static enum err_code scale_values(struct profile *profile, int64_t factor, struct err *err)
{
    struct span unit = profile_string(profile, profile->value_types[0].unit);
    int64_t divisor = 1;
    for (unsigned i = unit_decimals(unit); i > 0; i--)
        divisor *= 10;
    if (factor == 1 && divisor == 1)
        return ERR_NONE;
    int64_t *values = arena_new_raw(profile->arena, int64_t, profile->sample_count);
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        __int128 value = (__int128)profile->values[i] * factor / divisor;
        if (value > INT64_MAX || value < INT64_MIN)
            return err_set(err, ERR_INVALID, "a stack counts too much for a sampleRate that low");
        values[i] = (int64_t)value;
    }
    profile->values = values;
    return ERR_NONE;
}

static enum err_code finish_counts(struct arena *arena, const struct pyroscope_ingest_query *query,
                                   struct batch_source *source, struct err *err)
{
    static const enum batch_kind gauge[] = {BATCH_KIND_GAUGE};
    struct span service;
    const struct counted *what = find_counted(query->app, &service);
    if (!what && !span_equal_text(query->units, "samples"))
        return err_set(err, ERR_INVALID,
                       "name: '%.*s' has to end in what is counted, such as .alloc_space, as units "
                       "is not samples",
                       query->app.size > 100 ? 100 : (int)query->app.size,
                       (const char *)query->app.data);
    what = what ? what : &counted[0];
    int64_t period_ns = 0;
    if (what->is_sampled && query->sample_rate)
        period_ns = CLOCK_NS_PER_S / query->sample_rate;
    enum err_code code = scale_values(source->profile, period_ns ? period_ns : 1, err);
    if (code)
        return code;
    set_types(source->profile, what, period_ns);
    set_labels(arena, query, service,
               has_label(query, "service_name") ? "app_name" : "service_name", source);
    source->name = span_text(what->name);
    if (span_equal_text(query->aggregation, "average"))
        source->kinds = gauge;
    return ERR_NONE;
}

/* ---- profiles with types ---- */

static void read_type_config(const json_t *config, enum batch_kind *kind, struct span *display_name)
{
    *display_name = json_tree_text(config, "display-name");
    if (json_is_true(json_object_get(config, "cumulative")))
        *kind = BATCH_KIND_CUMULATIVE;
    if (span_equal_text(json_tree_text(config, "aggregation"), "average"))
        *kind = BATCH_KIND_GAUGE;
}

static enum err_code read_config(struct arena *arena, struct span text, struct batch_source *source,
                                 struct err *err)
{
    static const struct profile_limits limits = {.json_bytes = CONFIG_MAX_BYTES};
    const struct profile *profile = source->profile;
    json_t *root;
    enum err_code code = json_tree_load(text, &limits, "sample_type_config", &root, err);
    if (code)
        return code;
    enum batch_kind *kinds = arena_new(arena, enum batch_kind, profile->value_type_count);
    struct span *names = arena_new(arena, struct span, profile->value_type_count);
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        struct span type = profile_string(profile, profile->value_types[i].type);
        read_type_config(json_object_getn(root, (const char *)type.data, type.size), &kinds[i],
                         &names[i]);
    }
    source->kinds = kinds;
    source->name = batch_type_part(profile->arena, batch_type_derive_name(profile, names));
    if (!json_is_object(root) && !json_is_null(root))
        code = err_set(err, ERR_INVALID, "sample_type_config is not a JSON object");
    json_tree_free(root, text);
    return code;
}

static enum err_code finish_typed(struct arena *arena, const struct pyroscope_ingest_query *query,
                                  struct span config, struct batch_source *source, struct err *err)
{
    set_labels(arena, query, query->app, "service_name", source);
    source->is_ready = true;
    return config.size ? read_config(arena, config, source, err) : ERR_NONE;
}

/* ---- the request ---- */

/* Makes the profile of a time span in which no stack was counted. */
static enum err_code make_idle(struct arena *arena, const struct pyroscope_ingest_query *query,
                               const struct profile_limits *limits, struct batch_source *source,
                               struct err *err)
{
    profile_builder_auto builder = profile_builder_create(limits);
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    enum err_code code = profile_builder_take(builder, &source->profile, err);
    if (code)
        return code;
    code = finish_counts(arena, query, source, err);
    if (code)
        profile_destroy(source->profile);
    return code;
}

/* Whether an empty body means that no stack was counted. It does not for pprof and with a
 * sample_type_config, because an empty body does not contain the value types. */
static bool is_idle(const struct pyroscope_ingest_query *query, const struct form *form)
{
    return span_trim(form->profile).size == 0 && query->until_ns > query->from_ns &&
           !span_equal_text(query->format, "pprof") && form->config.size == 0;
}

static enum err_code decode_profile(struct arena *arena, const struct pyroscope_ingest_query *query,
                                    const struct form *form, const struct profile_limits *limits,
                                    struct batch_source *source, struct err *err)
{
    bool is_lines = span_equal_text(query->format, "lines");
    enum format format = FORMAT_FOLDED;
    enum err_code code = is_lines
                             ? decode_lines(form->profile, limits, &source->profile, err)
                             : format_decode(form->profile, limits, &format, &source->profile, err);
    if (code)
        return code;
    code = format == FORMAT_FOLDED ? finish_counts(arena, query, source, err)
                                   : finish_typed(arena, query, form->config, source, err);
    if (code)
        profile_destroy(source->profile);
    return code;
}

enum err_code pyroscope_ingest_decode(struct arena *arena,
                                      const struct pyroscope_ingest_query *query,
                                      struct span content_type, struct span body,
                                      const struct profile_limits *limits,
                                      struct batch_source *ret_source, struct err *err)
{
    struct form form = {.profile = body};
    enum err_code code = refuse_format(query, span_trim(content_type), err);
    if (code)
        return code;
    if (multipart_is_form(content_type))
        code = read_form(content_type, body, &form, err);
    if (code)
        return code;
    struct batch_source source = {.time_ns = query->from_ns, .is_ready = true};
    if (query->until_ns > query->from_ns &&
        __builtin_sub_overflow(query->until_ns, query->from_ns, &source.duration_ns))
        source.duration_ns = 0;
    if (is_idle(query, &form))
        code = make_idle(arena, query, limits, &source, err);
    else if (form.profile.size)
        code = decode_profile(arena, query, &form, limits, &source, err);
    if (code)
        return code;
    *ret_source = source;
    return ERR_NONE;
}
