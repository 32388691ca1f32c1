/* Derives series: labels of resource, scope and samples, and types. */
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/batch/batch_type.h"
#include "lib/profile/otlp/otlp_decoder.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- attributes of resource and scope ---- */

static bool read_key_value(struct otlp_decoder *decoder, struct span bytes,
                           struct otlp_attribute *attribute)
{
    const uint8_t *at = bytes.data, *end = otlp_end(bytes);
    struct span key = {0};
    while (at < end) {
        struct protobuf_field field;
        at = protobuf_read_field(at, end, &field);
        if (!at)
            return false;
        if (field.id == 0 || field.id > KEY_VALUE_KEY_STRINDEX)
            continue;
        if (field.type != (field.id == KEY_VALUE_KEY_STRINDEX ? PROTOBUF_VARINT : PROTOBUF_BYTES))
            return false;
        if (field.id == KEY_VALUE_KEY)
            key = field.bytes;
        else if (field.id == KEY_VALUE_VALUE && !otlp_read_value(decoder, field.bytes, attribute))
            return false;
        else if (field.id == KEY_VALUE_KEY_STRINDEX &&
                 !otlp_find_string(decoder, field.number, &attribute->key))
            return false;
    }
    if (key.size)
        attribute->key = otlp_intern(decoder, key);
    return true;
}

static const struct otlp_pair *find_key(const struct otlp_pair *pairs, uint32_t count, uint32_t key)
{
    for (uint32_t i = 0; i < count; i++)
        if (pairs[i].key == key)
            return &pairs[i];
    return NULL;
}

/* Returns the label's name for an attribute's key: the normalized form of
 * lib/profile/batch/batch_labels.h, truncated to the limit. */
static uint32_t label_name(struct otlp_decoder *decoder, uint32_t key)
{
    const struct span text = decoder->strings[key];
    if (batch_labels_is_name(text) && text.size <= decoder->series_limits.name_bytes)
        return key;
    if (!otlp_charge(decoder, text.size))
        return key;
    char *name = arena_alloc_raw(decoder->scratch, text.size + 1, 1);
    size_t size = batch_labels_clean_name(text, name);
    if (size > decoder->series_limits.name_bytes)
        size = decoder->series_limits.name_bytes;
    return otlp_intern(decoder, span_of(name, size));
}

/* Returns the value of a label. One that is too long, such as a command line, is truncated and ends
 * in a hash, so that it differs from others with the same prefix. */
static uint32_t label_value(struct otlp_decoder *decoder, uint32_t value)
{
    enum { HASH_BYTES = 8, MARK_BYTES = 1 + 2 * HASH_BYTES };
    const struct span text = decoder->strings[value];
    const size_t limit = decoder->series_limits.value_bytes;
    if (text.size <= limit)
        return value;
    size_t size = limit > MARK_BYTES ? limit - MARK_BYTES : limit;
    while (size > 0 && (text.data[size] & 0xc0) == 0x80)
        size--;
    if (limit <= MARK_BYTES)
        return otlp_intern(decoder, span_of(text.data, size));
    /* All of the text, because it is hashed. */
    if (!otlp_charge(decoder, text.size))
        return value;
    uint8_t hash[DIGEST_BYTES];
    char *cut = arena_alloc_raw(decoder->scratch, size + MARK_BYTES + 1, 1);
    digest_sha256(text, hash);
    memcpy(cut, text.data, size);
    cut[size] = '#';
    digest_hex(span_of(hash, HASH_BYTES), cut + size + 1);
    return otlp_intern(decoder, span_of(cut, size + MARK_BYTES));
}

/* Collects the attributes of a resource or scope for its context. */
struct attribute_list {
    struct otlp_context *context;
    struct otlp_pair *pairs; /* the context's: those of the resource precede those of the scope */
    uint32_t first;          /* first attribute of this list */
    bool has_service;        /* this list contains one */
};

static void refuse_twice(struct otlp_decoder *decoder, struct otlp_context *context, uint32_t key)
{
    enum { SHOWN_BYTES = 100 };
    struct span name = decoder->strings[key];
    if (name.size > SHOWN_BYTES)
        name.size = SHOWN_BYTES;
    context->problem =
        arena_printf(decoder->scratch, "attribute '%.*s' of its resource or scope is given twice",
                     SPAN_PRINT(name));
}

static void add_service(struct otlp_decoder *decoder, struct attribute_list *list,
                        const struct otlp_attribute *attribute)
{
    struct otlp_context *context = list->context;
    if (list->has_service)
        return refuse_twice(decoder, context, attribute->key);
    list->has_service = true;
    if (!context->service)
        context->service = label_value(decoder, attribute->text);
}

static void add_pair(struct otlp_decoder *decoder, struct attribute_list *list,
                     const struct otlp_attribute *attribute)
{
    struct otlp_context *context = list->context;
    if (attribute->key == 0 || attribute->text == 0 || attribute->kind == OTLP_LIST)
        return;
    const struct span key = decoder->strings[attribute->key];
    if (!span_is_utf8(key) || !span_is_utf8(decoder->strings[attribute->text])) {
        context->problem = "the name or the value of an attribute of its resource or scope is no "
                           "UTF-8";
        return;
    }
    const enum otlp_role role = otlp_role_of(decoder, key);
    if (role == ROLE_SERVICE)
        return add_service(decoder, list, attribute);
    if (role == ROLE_EXECUTABLE && !context->executable)
        context->executable = attribute->text;
    const struct otlp_pair *same = find_key(list->pairs, context->pair_count, attribute->key);
    if (same && same >= list->pairs + list->first)
        refuse_twice(decoder, context, attribute->key);
    if (same)
        return;
    if (context->pair_count == OTLP_ATTRIBUTES_MAX)
        context->problem = "its resource and scope have too many attributes";
    else
        list->pairs[context->pair_count++] =
            (struct otlp_pair){.key = attribute->key,
                               .value = label_value(decoder, attribute->text),
                               .name = label_name(decoder, attribute->key)};
}

static void read_attributes(struct otlp_decoder *decoder, struct otlp_context *context,
                            struct span message, uint32_t id, struct otlp_pair *pairs)
{
    struct attribute_list list = {.context = context, .pairs = pairs, .first = context->pair_count};
    const uint8_t *at = message.data, *end = otlp_end(message);
    while (at < end && !context->problem) {
        struct protobuf_field field;
        struct otlp_attribute attribute = {0};
        at = protobuf_read_field(at, end, &field);
        if (at && field.id != id)
            continue;
        if (at && field.type == PROTOBUF_BYTES &&
            read_key_value(decoder, field.bytes, &attribute)) {
            add_pair(decoder, &list, &attribute);
        } else {
            context->problem = "its resource or scope is malformed, or an attribute there refers "
                               "to a string that is not there";
            return;
        }
    }
}

/* Reads the attributes of a resource once, because it may have a million scopes of 4 bytes each. */
static const struct otlp_context *prepare_resource(struct otlp_decoder *decoder,
                                                   struct span resource)
{
    struct otlp_context *last = &decoder->resource;
    if (last->is_ready && last->resource.data == resource.data &&
        last->resource.size == resource.size)
        return last;
    struct otlp_pair pairs[OTLP_ATTRIBUTES_MAX];
    *last = (struct otlp_context){.resource = resource, .is_ready = true};
    read_attributes(decoder, last, resource, RESOURCE_ATTRIBUTES, pairs);
    last->pairs = arena_new(decoder->scratch, struct otlp_pair, last->pair_count);
    memcpy(last->pairs, pairs, last->pair_count * sizeof(pairs[0]));
    return last;
}

/* A scope without attributes of its own has the pairs of its resource. */
static void prepare_context(struct otlp_decoder *decoder, struct otlp_context *context)
{
    if (context->is_ready)
        return;
    const struct span scope = context->scope;
    struct otlp_pair pairs[OTLP_ATTRIBUTES_MAX];
    *context = *prepare_resource(decoder, context->resource);
    context->scope = scope;
    const uint32_t own = context->pair_count;
    memcpy(pairs, context->pairs, own * sizeof(pairs[0]));
    if (!context->problem)
        read_attributes(decoder, context, scope, SCOPE_ATTRIBUTES, pairs);
    const size_t bytes = context->pair_count * sizeof(pairs[0]);
    if (context->pair_count == own)
        return;
    if (!otlp_charge(decoder, bytes)) {
        context->problem = "the scopes of the request have too many attributes";
        return;
    }
    context->pairs = arena_new(decoder->scratch, struct otlp_pair, context->pair_count);
    memcpy(context->pairs, pairs, bytes);
}

/* ---- labels ---- */

struct labels {
    struct otlp_pair pairs[OTLP_LABELS_MAX];
    uint32_t count;
};

/* By name, then by the rule of lib/profile/batch/batch_labels.h. */
static int compare_pairs(const void *a, const void *b, void *context)
{
    const struct otlp_decoder *decoder = context;
    const struct otlp_pair *x = a, *y = b;
    if (x->name != y->name)
        return span_compare(decoder->strings[x->name], decoder->strings[y->name]);
    return batch_labels_compare(decoder->strings[x->key], decoder->strings[y->key]);
}

/* Keeps the first of the labels with equal names, and reports a dropped one once. */
static void sort_labels(struct otlp_decoder *decoder, struct labels *labels)
{
    struct otlp_pair *pairs = labels->pairs;
    uint32_t kept = 1; /* the service's is always present */
    qsort_r(pairs, labels->count, sizeof(pairs[0]), compare_pairs, decoder);
    for (uint32_t i = 1; i < labels->count; i++) {
        const struct otlp_pair *last = &pairs[kept - 1];
        if (pairs[i].name != last->name)
            pairs[kept++] = pairs[i];
        else if (pairs[i].value != last->value && !decoder->batch->notice)
            decoder->batch->notice = batch_labels_lost_notice(
                decoder->arena, decoder->strings[pairs[i].key], decoder->strings[last->key]);
    }
    labels->count = kept;
}

static bool has_name(const struct labels *labels, uint32_t count, uint32_t name)
{
    for (uint32_t i = 0; i < count; i++)
        if (labels->pairs[i].name == name)
            return true;
    return false;
}

static uint32_t service_of(struct otlp_decoder *decoder, const struct otlp_context *context)
{
    if (context->service)
        return context->service;
    if (!context->executable)
        return otlp_intern(decoder, SPAN_LITERAL("unknown_service"));
    const struct span name = decoder->strings[context->executable];
    if (!otlp_charge(decoder, name.size))
        return context->executable;
    const char *text = arena_printf(decoder->scratch, "unknown_service:%.*s", SPAN_PRINT(name));
    return label_value(decoder, otlp_intern(decoder, span_text(text)));
}

static enum err_code collect_labels(struct otlp_decoder *decoder,
                                    const struct otlp_context *context, uint32_t variant,
                                    struct labels *labels)
{
    const struct otlp_variant *own = (struct otlp_variant *)decoder->variants.items + variant;
    const uint32_t *items = decoder->variant_items.items;
    struct otlp_pair *pairs = labels->pairs;
    uint32_t service = 0;
    for (uint32_t i = 0; i < own->count; i++) {
        const struct otlp_attribute *attribute = &decoder->attributes[items[own->first + i]];
        if (!span_is_utf8(decoder->strings[attribute->text]))
            return err_set(decoder->problem, ERR_INVALID,
                           "the value of an attribute of a sample is no UTF-8");
        if (attribute->role == ROLE_SERVICE)
            service = label_value(decoder, attribute->text);
        else
            pairs[labels->count++] =
                (struct otlp_pair){.key = attribute->key,
                                   .value = label_value(decoder, attribute->text),
                                   .name = label_name(decoder, attribute->key)};
    }
    const uint32_t own_count = labels->count;
    for (uint32_t i = 0; i < context->pair_count; i++)
        if (!has_name(labels, own_count, context->pairs[i].name))
            pairs[labels->count++] = context->pairs[i];
    pairs[labels->count++] =
        (struct otlp_pair){.key = otlp_intern(decoder, SPAN_LITERAL("service.name")),
                           .value = service ? service : service_of(decoder, context),
                           .name = otlp_intern(decoder, SPAN_LITERAL("service_name"))};
    sort_labels(decoder, labels);
    return ERR_NONE;
}

/* ---- series ---- */

static enum err_code add_series(struct otlp_decoder *decoder, const struct batch_type *type,
                                const struct otlp_sorted_labels *labels, uint32_t *ret_series)
{
    const struct batch_limits *limits = &decoder->series_limits;
    if (labels->count > limits->series_labels)
        return err_set(decoder->problem, ERR_INVALID, "its series has %u labels, the limit is %u",
                       labels->count, limits->series_labels);
    const uint32_t head[] = {type->name,
                             type->sample_type.type,
                             type->sample_type.unit,
                             type->period_type.type,
                             type->period_type.unit,
                             (uint32_t)type->kind};
    uint32_t key[sizeof(head) / sizeof(head[0]) + 2 * OTLP_LABELS_MAX];
    uint32_t size = sizeof(head) / sizeof(head[0]);
    memcpy(key, head, sizeof(head));
    for (uint32_t i = 0; i < labels->count; i++) {
        key[size++] = labels->pairs[i].name;
        key[size++] = labels->pairs[i].value;
    }
    const struct span bytes = span_of(key, size * sizeof(key[0]));
    *ret_series = map_bytes_find(&decoder->series_map, bytes);
    if (*ret_series != MAP_ABSENT)
        return ERR_NONE;
    *ret_series = decoder->series.count;
    if (decoder->series.count >= limits->series)
        return err_set(decoder->problem, ERR_INVALID, "the request has more than %u series",
                       limits->series);
    const char *kept = arena_strndup(decoder->scratch, key, bytes.size);
    (void)map_bytes_add(&decoder->series_map, span_of(kept, bytes.size), *ret_series);
    struct batch_series *series =
        otlp_array_add(decoder->scratch, &decoder->series, 1, sizeof(*series));
    *series = (struct batch_series){
        .type = *type, .first_label = decoder->series_labels.count, .label_count = labels->count};
    struct batch_label *label =
        otlp_array_add(decoder->scratch, &decoder->series_labels, labels->count, sizeof(*label));
    for (uint32_t i = 0; i < labels->count; i++)
        label[i] = (struct batch_label){labels->pairs[i].name, labels->pairs[i].value};
    return ERR_NONE;
}

/* Collects and sorts the labels once per context and variant, because a profile may take only 14
 * bytes, so a request may have millions. */
static enum err_code sorted_labels(struct otlp_decoder *decoder, const struct otlp_profile *profile,
                                   uint32_t variant, struct otlp_sorted_labels *ret_labels)
{
    const struct otlp_context *context = &decoder->contexts[profile->context];
    const uint64_t key = (uint64_t)profile->context << 32 | variant;
    const uint32_t known = map_u64_find(&decoder->sorted_labels, key);
    if (known != MAP_ABSENT) {
        *ret_labels = ((const struct otlp_sorted_labels *)decoder->sorted.items)[known];
        return ERR_NONE;
    }
    struct labels labels;
    labels.count = 0;
    enum err_code code = collect_labels(decoder, context, variant, &labels);
    if (code)
        return code;
    const size_t bytes = labels.count * sizeof(labels.pairs[0]);
    if (!otlp_charge(decoder, bytes))
        return err_set(decoder->problem, ERR_INVALID, "has too many labels");
    struct otlp_pair *pairs = arena_new_raw(decoder->scratch, struct otlp_pair, labels.count);
    memcpy(pairs, labels.pairs, bytes);
    *ret_labels = (struct otlp_sorted_labels){.pairs = pairs, .count = labels.count};
    (void)map_u64_add(&decoder->sorted_labels, key, decoder->sorted.count);
    *(struct otlp_sorted_labels *)otlp_array_add(decoder->scratch, &decoder->sorted, 1,
                                                 sizeof(*ret_labels)) = *ret_labels;
    return ERR_NONE;
}

enum err_code otlp_take_series(struct otlp_decoder *decoder, const struct otlp_profile *profile,
                               const struct batch_type *type, uint32_t variant,
                               uint32_t *ret_series)
{
    struct otlp_context *context = &decoder->contexts[profile->context];
    struct otlp_sorted_labels labels;
    prepare_context(decoder, context);
    if (context->problem)
        return err_set(decoder->problem, ERR_INVALID, "%s", context->problem);
    enum err_code code = sorted_labels(decoder, profile, variant, &labels);
    return code ? code : add_series(decoder, type, &labels, ret_series);
}

struct span otlp_service_of(struct otlp_decoder *decoder, const struct otlp_profile *profile)
{
    struct otlp_context *context = &decoder->contexts[profile->context];
    prepare_context(decoder, context);
    const uint32_t service = service_of(decoder, context);
    return decoder->strings[service];
}

/* ---- types ---- */

/* The name by batch_type.h, which also depends on whether the period type is "wall"; an OTLP
 * profile has one type. Cached, because the search reads all of the type's text. */
static uint32_t find_type_name(struct otlp_decoder *decoder, const struct profile *typed)
{
    const uint32_t sample_type = typed->value_types[0].type;
    const bool is_wall = span_equal_text(profile_string(typed, typed->period_type.type), "wall");
    const uint64_t key = (uint64_t)sample_type << 1 | is_wall;
    const uint32_t known = map_u64_find(&decoder->type_names, key);
    if (known != MAP_ABSENT)
        return known;
    struct span name = SPAN_LITERAL("off_cpu");
    if (!span_equal(profile_string(typed, sample_type), name))
        name = batch_type_name(typed, batch_type_derive_name(typed, NULL), 0);
    return map_u64_add(&decoder->type_names, key, otlp_intern(decoder, name));
}

static void name_type(struct otlp_decoder *decoder, const struct otlp_profile *profile,
                      struct batch_type *type)
{
    const struct profile typed = {.strings = decoder->strings,
                                  .string_count = decoder->string_count,
                                  .value_types = &type->sample_type,
                                  .value_type_count = 1,
                                  .period_type = type->period_type,
                                  .duration_ns = (int64_t)profile->duration_ns};
    type->name = find_type_name(decoder, &typed);
    type->kind = BATCH_KIND_BY_RULE;
    if (!profile->sample_type.is_cumulative)
        type->kind = batch_type_kind(&typed, decoder->strings[type->name], 0, BATCH_KIND_BY_RULE,
                                     profile->sample_type.is_delta);
}

/* Finds the form of a string in a type's name (batch_type_part), computed once per string. */
static bool find_part(struct otlp_decoder *decoder, uint64_t index, uint32_t *ret_string)
{
    uint32_t string;
    if (!otlp_find_string(decoder, index, &string))
        return false;
    *ret_string = map_u64_find(&decoder->parts, string);
    if (*ret_string != MAP_ABSENT)
        return true;
    const struct span text = decoder->strings[string];
    const struct span part = batch_type_part(decoder->scratch, text);
    *ret_string = map_u64_add(&decoder->parts, string,
                              part.data == text.data ? string : otlp_intern(decoder, part));
    return true;
}

static bool find_type(struct otlp_decoder *decoder, const struct otlp_value_type *type,
                      struct profile_value_type *ret_type)
{
    return find_part(decoder, type->type, &ret_type->type) &&
           find_part(decoder, type->unit, &ret_type->unit);
}

static bool is_type(const struct otlp_decoder *decoder, struct profile_value_type type,
                    const char *name, const char *unit)
{
    return span_equal_text(decoder->strings[type.type], name) &&
           span_equal_text(decoder->strings[type.unit], unit);
}

/* Identifies profiles of the same resource, time and duration. */
static uint64_t time_hash(const struct otlp_decoder *decoder, const struct otlp_profile *profile)
{
    const uint64_t words[] = {decoder->resource_hashes[profile->resource], profile->time_ns,
                              profile->duration_ns};
    return XXH3_64bits_withSeed(words, sizeof(words), decoder->seed);
}

/* Each resource is hashed once, however many scopes it has. */
static void hash_resources(struct otlp_decoder *decoder)
{
    uint64_t hashed = 0;
    decoder->resource_hashes = arena_new(decoder->scratch, uint64_t, decoder->resource_count + 1);
    for (uint64_t i = 0; i < decoder->profile_count; i++) {
        const struct otlp_profile *profile = &decoder->profiles[i];
        const struct span resource = decoder->contexts[profile->context].resource;
        if (profile->resource < hashed)
            continue;
        decoder->resource_hashes[profile->resource] = XXH3_64bits_withSeed(
            resource.size ? resource.data : (const uint8_t *)"", resource.size, decoder->seed);
        hashed = profile->resource + UINT64_C(1);
    }
}

void otlp_find_cpu_times(struct otlp_decoder *decoder)
{
    hash_resources(decoder);
    for (uint64_t i = 0; i < decoder->profile_count; i++) {
        const struct otlp_profile *profile = &decoder->profiles[i];
        struct profile_value_type type;
        if (find_type(decoder, &profile->sample_type, &type) &&
            is_type(decoder, type, "cpu", "nanoseconds"))
            map_u64_add(&decoder->cpu_times, time_hash(decoder, profile), 0);
    }
}

/*
 * The OpenTelemetry eBPF profiler sends samples:count with a period of cpu:nanoseconds, which
 * becomes CPU time. The Collector's translator of pprof makes two profiles of a Go CPU profile,
 * which has both counts and CPU time: then the counts stay counts, or the time would count twice.
 * An exporter that splits requests may send the two in different ones; then the time does count
 * twice, because each request is decoded alone.
 */
static bool is_only_count_of_cpu(const struct otlp_decoder *decoder,
                                 const struct otlp_profile *profile, const struct batch_type *type)
{
    return profile->period > 0 && is_type(decoder, type->sample_type, "samples", "count") &&
           is_type(decoder, type->period_type, "cpu", "nanoseconds") &&
           map_u64_find(&decoder->cpu_times, time_hash(decoder, profile)) == MAP_ABSENT;
}

enum err_code otlp_take_type(struct otlp_decoder *decoder, const struct otlp_profile *profile,
                             struct batch_type *ret_type, int64_t *ret_factor)
{
    struct batch_type type = {0};
    if (!find_type(decoder, &profile->sample_type, &type.sample_type) ||
        !find_type(decoder, &profile->period_type, &type.period_type))
        return err_set(decoder->problem, ERR_INVALID,
                       "its type refers to a string that is not there");
    if (type.sample_type.type == 0)
        return err_set(decoder->problem, ERR_INVALID, "it has no sample type");
    *ret_factor = 1;
    if (is_only_count_of_cpu(decoder, profile, &type)) {
        type.sample_type = type.period_type;
        *ret_factor = profile->period;
    }
    name_type(decoder, profile, &type);
    *ret_type = type;
    return ERR_NONE;
}
