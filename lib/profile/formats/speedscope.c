#include "lib/profile/formats/speedscope.h"

#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/formats/folded.h"
#include "lib/profile/formats/json_scan.h"
#include "lib/profile/formats/json_tree.h"
#include "lib/profile/profile_builder.h"
#include "lib/profile/unit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

/* Sample types, in the order in which they appear in the result. */
enum kind { KIND_SAMPLES, KIND_TIME, KIND_SPACE, KIND_COUNT };

struct unit {
    const char *name; /* in the file */
    enum kind kind;
    double factor; /* to the unit of the result */
};

static const struct unit units[] = {
    {"none", KIND_SAMPLES, 1},        {"bytes", KIND_SPACE, 1},
    {"nanoseconds", KIND_TIME, 1},    {"microseconds", KIND_TIME, 1e3},
    {"milliseconds", KIND_TIME, 1e6}, {"seconds", KIND_TIME, 1e9},
};

/* A node of the call tree of one profile. Equal stacks are added in the tree before they become
 * samples, so memory depends on the number of different stacks, not on that of events. */
struct node {
    uint32_t parent; /* 0 is the root */
    uint32_t frame;
    double value;
};

struct reader {
    struct profile_builder *builder;
    const json_t *root;
    const json_t *frames;
    const json_t *profiles;
    uint32_t *locations; /* per frame; PROFILE_NONE until used */
    uint32_t *stack;
    size_t stack_capacity;
    struct node *nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    struct map_u64 children;  /* parent << 32 | frame -> node */
    unsigned sample_decimals; /* numbers of samples are multiplied by this power of ten */
    double sample_total;      /* at least the sum of these numbers, as in the file */
    double carry[KIND_COUNT]; /* remainders of rounding, see round_value */
    uint32_t index_of_kind[KIND_COUNT];
    uint32_t value_type_count;
    size_t profile_index; /* of the current profile, for messages */
};

/* A line, column or index: a positive number that a double represents exactly (below 2^53); else 0.
 */
static int64_t get_position(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    double number = json_is_number(value) ? json_number_value(value) : 0;
    return number > 0 && number < 9e15 ? (int64_t)number : 0;
}

static const struct unit *find_unit(const json_t *profile)
{
    struct span name = json_tree_text(profile, "unit");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (span_equal_text(name, units[i].name))
            return &units[i];
    }
    return NULL;
}

static enum err_code check_profile(const json_t *profile, size_t index, struct err *err)
{
    struct span type = json_tree_text(profile, "type");
    struct span unit = json_tree_text(profile, "unit");
    if (!json_is_object(profile))
        return err_set(err, ERR_INVALID, "speedscope: profile %zu is not an object", index);
    if (!span_equal_text(type, "sampled") && !span_equal_text(type, "evented"))
        return err_set(err, ERR_UNSUPPORTED,
                       "speedscope: profile %zu has the type '%.*s'; supported are sampled and "
                       "evented",
                       index, (int)(type.size < 40 ? type.size : 40), (const char *)type.data);
    if (!find_unit(profile))
        return err_set(err, ERR_UNSUPPORTED, "speedscope: profile %zu has the unknown unit '%.*s'",
                       index, (int)(unit.size < 40 ? unit.size : 40), (const char *)unit.data);
    return ERR_NONE;
}

/* The number of decimal places: the fewest with which the number is whole within the precision of a
 * double (4 epsilons), at most UNIT_DECIMALS_MAX. */
static unsigned count_decimals(double number)
{
    double scaled = fabs(number);
    for (unsigned decimals = 0; decimals < UNIT_DECIMALS_MAX; decimals++) {
        scaled = fabs(number) * pow(10, decimals);
        if (fabs(scaled - rint(scaled)) <= scaled * 4 * DBL_EPSILON)
            return decimals;
    }
    return UNIT_DECIMALS_MAX;
}

/* A number with a point has at least one decimal place, even if that is 0, as in folded stacks. So
 * all files of a tool that writes 2.5 and 3.0 get the same unit. */
static void survey_number(struct reader *reader, const json_t *number)
{
    unsigned decimals = count_decimals(json_number_value(number));
    if (decimals == 0 && json_is_real(number))
        decimals = 1;
    if (decimals > reader->sample_decimals)
        reader->sample_decimals = decimals;
}

/* Finds the decimals and adds up the values of a profile in the unit "none". Its numbers have not
 * been validated yet; a value that is not a number counts as 0. */
static void survey_samples(struct reader *reader, const json_t *profile)
{
    const json_t *weights = json_object_get(profile, "weights");
    const json_t *events = json_object_get(profile, "events");
    const json_t *end = json_object_get(profile, "endValue");
    if (find_unit(profile)->kind != KIND_SAMPLES)
        return;
    for (size_t i = 0; i < json_array_size(weights); i++) {
        survey_number(reader, json_array_get(weights, i));
        reader->sample_total += fabs(json_number_value(json_array_get(weights, i)));
    }
    double last = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *at = json_object_get(json_array_get(events, i), "at");
        survey_number(reader, at);
        reader->sample_total += i ? fabs(json_number_value(at) - last) : 0;
        last = json_number_value(at);
    }
    if (json_array_size(events)) {
        survey_number(reader, end);
        reader->sample_total += fabs(json_number_value(end) - last);
    }
}

/* Rounding small values is better than refusing a large one that does not fit int64. */
static void choose_sample_decimals(struct reader *reader)
{
    while (reader->sample_decimals &&
           reader->sample_total * pow(10, reader->sample_decimals) >= FOLDED_VALUE_END)
        reader->sample_decimals--;
}

static void add_value_types(struct reader *reader, const bool is_used[KIND_COUNT])
{
    static const char *const names[KIND_COUNT] = {"samples", "time", "space"};
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        if (!is_used[kind])
            continue;
        char count[UNIT_NAME_BYTES];
        unit_print_decimals(reader->sample_decimals, count);
        const char *const units_of_kind[KIND_COUNT] = {count, "nanoseconds", "bytes"};
        const char *unit = units_of_kind[kind];
        profile_builder_add_value_type(reader->builder, span_text(names[kind]), span_text(unit));
        reader->index_of_kind[kind] = reader->value_type_count++;
    }
    size_t active = (size_t)get_position(reader->root, "activeProfileIndex");
    if (active >= json_array_size(reader->profiles))
        active = 0;
    enum kind kind = find_unit(json_array_get(reader->profiles, active))->kind;
    profile_builder_fields(reader->builder)->default_sample_type =
        profile_builder_string(reader->builder, span_text(names[kind]));
}

static enum err_code read_types(struct reader *reader, struct err *err)
{
    bool is_used[KIND_COUNT] = {false};
    for (size_t i = 0; i < json_array_size(reader->profiles); i++) {
        const json_t *profile = json_array_get(reader->profiles, i);
        enum err_code code = check_profile(profile, i, err);
        if (code)
            return code;
        is_used[find_unit(profile)->kind] = true;
        survey_samples(reader, profile);
    }
    choose_sample_decimals(reader);
    add_value_types(reader, is_used);
    return ERR_NONE;
}

static void clear_tree(struct reader *reader)
{
    map_u64_fini(&reader->children);
    map_u64_init(&reader->children, 0);
    reader->node_count = 0;
}

static void append_node(struct reader *reader, uint32_t parent, uint32_t frame)
{
    vec_reserve(reader->nodes, reader->node_capacity, reader->node_count + 1);
    reader->nodes[reader->node_count++] = (struct node){.parent = parent, .frame = frame};
}

static uint32_t child_of(struct reader *reader, uint32_t parent, uint32_t frame)
{
    uint32_t index =
        map_u64_add(&reader->children, (uint64_t)parent << 32 | frame, reader->node_count);
    if (index == reader->node_count)
        append_node(reader, parent, frame);
    return index;
}

/* Reads an index into shared.frames. */
static bool get_frame(const struct reader *reader, const json_t *number, uint32_t *ret_frame)
{
    if (!json_is_integer(number) || json_integer_value(number) < 0 ||
        (size_t)json_integer_value(number) >= json_array_size(reader->frames))
        return false;
    *ret_frame = (uint32_t)json_integer_value(number);
    return true;
}

static enum err_code read_stack(struct reader *reader, const json_t *stack, size_t sample,
                                uint32_t *ret_node, struct err *err)
{
    uint32_t node = 0, frame;
    if (!json_is_array(stack))
        return err_set(err, ERR_INVALID,
                       "speedscope: profile %zu, sample %zu is not a list of frames",
                       reader->profile_index, sample);
    for (size_t k = 0; k < json_array_size(stack); k++) {
        if (!get_frame(reader, json_array_get(stack, k), &frame))
            return err_set(err, ERR_INVALID,
                           "speedscope: profile %zu, sample %zu: frame %zu is not in shared.frames",
                           reader->profile_index, sample, k);
        node = child_of(reader, node, frame);
    }
    *ret_node = node;
    return ERR_NONE;
}

static enum err_code read_sampled(struct reader *reader, const json_t *profile, struct err *err)
{
    const json_t *samples = json_object_get(profile, "samples");
    const json_t *weights = json_object_get(profile, "weights");
    if (!json_is_array(samples) || !json_is_array(weights) ||
        json_array_size(samples) != json_array_size(weights))
        return err_set(err, ERR_INVALID, "speedscope: profile %zu needs as many weights as samples",
                       reader->profile_index);
    for (size_t i = 0; i < json_array_size(samples); i++) {
        const json_t *weight = json_array_get(weights, i);
        uint32_t node = 0;
        if (!json_is_number(weight) || json_number_value(weight) < 0)
            return err_set(err, ERR_INVALID,
                           "speedscope: profile %zu: weight %zu is not a positive number",
                           reader->profile_index, i);
        enum err_code code = read_stack(reader, json_array_get(samples, i), i, &node, err);
        if (code)
            return code;
        reader->nodes[node].value += json_number_value(weight);
    }
    return ERR_NONE;
}

static enum err_code wrong_event(const struct reader *reader, size_t event, const char *what,
                                 struct err *err)
{
    return err_set(err, ERR_INVALID, "speedscope: profile %zu, event %zu: %s",
                   reader->profile_index, event, what);
}

/* Opens or closes a frame; *node is the innermost open frame. */
static enum err_code follow_event(struct reader *reader, const json_t *event, size_t index,
                                  uint32_t *node, struct err *err)
{
    struct span type = json_tree_text(event, "type");
    uint32_t frame;
    if (!get_frame(reader, json_object_get(event, "frame"), &frame))
        return wrong_event(reader, index, "the frame is not in shared.frames", err);
    if (span_equal_text(type, "O")) {
        *node = child_of(reader, *node, frame);
        return ERR_NONE;
    }
    if (!span_equal_text(type, "C"))
        return wrong_event(reader, index, "the type is neither O nor C", err);
    if (*node == 0 || reader->nodes[*node].frame != frame)
        return wrong_event(reader, index, "it closes a frame that is not the innermost open one",
                           err);
    *node = reader->nodes[*node].parent;
    return ERR_NONE;
}

static enum err_code read_evented(struct reader *reader, const json_t *profile, struct err *err)
{
    const json_t *events = json_object_get(profile, "events");
    const json_t *end = json_object_get(profile, "endValue");
    uint32_t node = 0;
    double time = 0;
    if (!json_is_array(events))
        return err_set(err, ERR_INVALID, "speedscope: profile %zu has no events",
                       reader->profile_index);
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const json_t *at = json_object_get(event, "at");
        if (!json_is_number(at) || (i > 0 && json_number_value(at) < time))
            return wrong_event(reader, i, "the time is missing, or earlier than the previous one",
                               err);
        if (node)
            reader->nodes[node].value += json_number_value(at) - time;
        time = json_number_value(at);
        enum err_code code = follow_event(reader, event, i, &node, err);
        if (code)
            return code;
    }
    /* In a truncated recording, frames that are still open last until its end. */
    if (node && json_is_number(end) && json_number_value(end) > time)
        reader->nodes[node].value += json_number_value(end) - time;
    return ERR_NONE;
}

static uint32_t location_of(struct reader *reader, uint32_t frame)
{
    if (reader->locations[frame] != PROFILE_NONE)
        return reader->locations[frame];
    const json_t *json = json_array_get(reader->frames, frame);
    const struct profile_builder_frame known = {
        .name = json_tree_text(json, "name"),
        .filename = json_tree_text(json, "file"),
        .line = get_position(json, "line"),
        .column = get_position(json, "col"),
    };
    reader->locations[frame] = profile_builder_frame(reader->builder, &known);
    return reader->locations[frame];
}

/*
 * Converts the value of a stack to the unit of the result and rounds it. The remainder of each
 * rounding is carried to the next stack of the same kind, so that all stacks add up to the rounded
 * total. Example: 0.4, 0.4 and 0.4 become 0, 1 and 0. False if the value does not fit int64.
 */
static bool round_value(double value, const struct unit *unit, struct reader *reader,
                        int64_t *ret_value)
{
    double *carry = &reader->carry[unit->kind];
    value *= unit->kind == KIND_SAMPLES ? pow(10, reader->sample_decimals) : unit->factor;
    if (!(value < FOLDED_VALUE_END))
        return false;
    /* carry is at least -0.5, so the result is not negative: rint(-0.5) is 0. */
    *ret_value = (int64_t)rint(value + *carry);
    *carry += value - (double)*ret_value;
    return true;
}

static void push_location(struct reader *reader, size_t depth, uint32_t location)
{
    vec_reserve(reader->stack, reader->stack_capacity, depth + 1);
    reader->stack[depth] = location;
}

static enum err_code add_samples(struct reader *reader, const struct unit *unit,
                                 const struct profile_label *labels, size_t label_count,
                                 struct err *err)
{
    for (uint32_t i = 0; i < reader->node_count; i++) {
        int64_t values[KIND_COUNT] = {0}, value;
        size_t depth = 0;
        if (!round_value(reader->nodes[i].value, unit, reader, &value))
            return err_set(err, ERR_INVALID,
                           "speedscope: profile %zu has a stack whose value is too large to count",
                           reader->profile_index);
        if (value == 0)
            continue;
        for (uint32_t at = i; at != 0; at = reader->nodes[at].parent)
            push_location(reader, depth++, location_of(reader, reader->nodes[at].frame));
        profile_builder_count_entries(reader->builder, depth);
        values[reader->index_of_kind[unit->kind]] = value;
        profile_builder_add_sample(reader->builder, reader->stack, depth, values, labels,
                                   label_count);
        if (profile_builder_failed(reader->builder))
            break;
    }
    return ERR_NONE;
}

static enum err_code read_profile(struct reader *reader, const json_t *profile, struct err *err)
{
    bool is_evented = span_equal_text(json_tree_text(profile, "type"), "evented");
    clear_tree(reader);
    append_node(reader, 0, PROFILE_NONE);
    enum err_code code =
        is_evented ? read_evented(reader, profile, err) : read_sampled(reader, profile, err);
    if (code)
        return code;
    bool is_labelled = json_array_size(reader->profiles) > 1;
    const struct profile_label label = {
        .key = profile_builder_string(reader->builder,
                                      is_labelled ? SPAN_LITERAL("profile") : SPAN_LITERAL("")),
        .text = profile_builder_string(
            reader->builder, is_labelled ? json_tree_text(profile, "name") : SPAN_LITERAL("")),
    };
    return add_samples(reader, find_unit(profile), &label, is_labelled, err);
}

static enum err_code decode_root(struct reader *reader, struct err *err)
{
    const json_t *shared = json_object_get(reader->root, "shared");
    reader->frames = json_object_get(shared, "frames");
    reader->profiles = json_object_get(reader->root, "profiles");
    if (!json_is_array(reader->frames) || !json_is_array(reader->profiles))
        return err_set(err, ERR_INVALID, "speedscope: shared.frames or profiles is missing");
    if (json_array_size(reader->profiles) == 0)
        return err_set(err, ERR_INVALID, "speedscope: the file contains no profile");
    size_t frame_count = json_array_size(reader->frames);
    reader->locations = mem_new(uint32_t, frame_count);
    memset(reader->locations, 0xff, frame_count * sizeof(*reader->locations));
    enum err_code code = read_types(reader, err);
    if (code)
        return code;
    for (size_t i = 0; i < json_array_size(reader->profiles); i++) {
        reader->profile_index = i;
        code = read_profile(reader, json_array_get(reader->profiles, i), err);
        if (code)
            return code;
    }
    return ERR_NONE;
}

bool speedscope_detect(struct span text)
{
    return json_scan_has_member(text, "profiles") && json_scan_has_member(text, "shared");
}

enum err_code speedscope_decode(struct span text, const struct profile_limits *limits,
                                struct profile **ret_profile, struct err *err)
{
    json_t *root;
    enum err_code code = json_tree_load(text, limits, "speedscope", &root, err);
    if (code)
        return code;
    profile_builder_auto builder = profile_builder_create(limits);
    struct reader reader = {.builder = builder, .root = root};
    code = decode_root(&reader, err);
    map_u64_fini(&reader.children);
    mem_free(reader.locations);
    mem_free(reader.nodes);
    mem_free(reader.stack);
    json_tree_free(root, text);
    return code ? code : profile_builder_take(builder, ret_profile, err);
}
