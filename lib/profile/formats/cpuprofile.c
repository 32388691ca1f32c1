#include "lib/profile/formats/cpuprofile.h"

#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/formats/json_scan.h"
#include "lib/profile/formats/json_tree.h"
#include "lib/profile/profile_builder.h"

#include <math.h>

enum { VALUE_SAMPLES, VALUE_TIME, VALUE_COUNT };
enum { US_PER_S = 1000000 };

struct node {
    const json_t *json;
    int64_t id;
    uint32_t parent; /* PROFILE_NONE: a root */
    uint32_t location;
    uint32_t depth; /* frames of its stack, not counting the node "(root)" */
    int64_t values[VALUE_COUNT];
};

struct reader {
    struct profile_builder *builder;
    const json_t *root;
    struct node *nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    struct map_u64 index_of_id;
    uint32_t *stack;
    double start_us;
    double end_us; /* below start_us: unknown */
};

static bool get_number(const json_t *object, const char *name, double *ret_number)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value))
        return false;
    *ret_number = json_number_value(value);
    return isfinite(*ret_number);
}

/* Whether times of this size, and differences of two of them, fit an int64 in microseconds: 4e18 is
 * below 2^63. */
static bool is_countable(double time_us)
{
    return fabs(time_us) < 2e18;
}

/* The member as an integer; fallback if it is missing or beyond the integers that a double can
 * represent (2^53 is 9.007e15). */
static int64_t get_integer(const json_t *object, const char *name, int64_t fallback)
{
    double number;
    if (!get_number(object, name, &number) || fabs(number) > 9e15)
        return fallback;
    return llround(number);
}

static enum err_code add_node(struct reader *reader, const json_t *json, int64_t id,
                              uint32_t parent, struct err *err)
{
    if (map_u64_add(&reader->index_of_id, (uint64_t)id, reader->node_count) != reader->node_count)
        return err_set(err, ERR_INVALID, "cpuprofile: two nodes have the id %lld", (long long)id);
    vec_reserve(reader->nodes, reader->node_capacity, reader->node_count + 1);
    reader->nodes[reader->node_count++] =
        (struct node){.json = json, .id = id, .parent = parent, .location = PROFILE_NONE};
    return ERR_NONE;
}

/* Reads the tree breadth first, without recursion. */
static enum err_code read_tree(struct reader *reader, const json_t *head, struct err *err)
{
    enum err_code code = add_node(reader, head, get_integer(head, "id", 0), PROFILE_NONE, err);
    for (uint32_t i = 0; !code && i < reader->node_count; i++) {
        const json_t *children = json_object_get(reader->nodes[i].json, "children");
        for (size_t k = 0; !code && k < json_array_size(children); k++) {
            const json_t *child = json_array_get(children, k);
            /* A node without an id gets a negative one, to which no sample can refer. */
            int64_t id = get_integer(child, "id", -(int64_t)reader->node_count);
            code = json_is_object(child)
                       ? add_node(reader, child, id, i, err)
                       : err_set(err, ERR_INVALID, "cpuprofile: a child is not an object");
        }
    }
    return code;
}

static uint32_t find_node(const struct reader *reader, const json_t *id)
{
    if (!json_is_integer(id))
        return MAP_ABSENT;
    return map_u64_find(&reader->index_of_id, (uint64_t)json_integer_value(id));
}

static enum err_code set_parent(struct reader *reader, uint32_t child, uint32_t parent,
                                struct err *err)
{
    struct node *node = &reader->nodes[child];
    if (node->parent != PROFILE_NONE && node->parent != parent)
        return err_set(err, ERR_INVALID, "cpuprofile: node %lld has two parents",
                       (long long)node->id);
    node->parent = parent;
    return ERR_NONE;
}

static enum err_code link_node(struct reader *reader, uint32_t index, struct err *err)
{
    const json_t *json = reader->nodes[index].json;
    const json_t *parent = json_object_get(json, "parent");
    const json_t *children = json_object_get(json, "children");
    enum err_code code = ERR_NONE;
    if (parent) {
        uint32_t found = find_node(reader, parent);
        code = found == MAP_ABSENT
                   ? err_set(err, ERR_INVALID, "cpuprofile: the parent of node %lld does not exist",
                             (long long)reader->nodes[index].id)
                   : set_parent(reader, index, found, err);
    }
    for (size_t k = 0; !code && k < json_array_size(children); k++) {
        uint32_t found = find_node(reader, json_array_get(children, k));
        code = found == MAP_ABSENT
                   ? err_set(err, ERR_INVALID, "cpuprofile: child %zu of node %lld does not exist",
                             k, (long long)reader->nodes[index].id)
                   : set_parent(reader, found, index, err);
    }
    return code;
}

static enum err_code read_list(struct reader *reader, const json_t *list, struct err *err)
{
    enum err_code code = ERR_NONE;
    for (size_t i = 0; !code && i < json_array_size(list); i++) {
        const json_t *json = json_array_get(list, i);
        const json_t *id = json_object_get(json, "id");
        code = json_is_integer(id)
                   ? add_node(reader, json, json_integer_value(id), PROFILE_NONE, err)
                   : err_set(err, ERR_INVALID, "cpuprofile: node %zu has no id", i);
    }
    for (uint32_t i = 0; !code && i < reader->node_count; i++)
        code = link_node(reader, i, err);
    return code;
}

static enum err_code read_nodes(struct reader *reader, struct err *err)
{
    const json_t *list = json_object_get(reader->root, "nodes");
    const json_t *head = json_object_get(reader->root, "head");
    if (json_is_array(list) && json_array_size(list))
        return read_list(reader, list, err);
    if (json_is_object(head))
        return read_tree(reader, head, err);
    return err_set(err, ERR_INVALID, "cpuprofile: neither nodes nor head");
}

/* In the old form the node itself has the fields of callFrame, and times are in seconds. */
static bool is_old_form(const struct reader *reader)
{
    return !json_is_array(json_object_get(reader->root, "nodes"));
}

static bool is_root_node(const struct node *node)
{
    if (node->parent != PROFILE_NONE)
        return false;
    const json_t *call = json_object_get(node->json, "callFrame");
    return span_equal_text(json_tree_text(call ? call : node->json, "functionName"), "(root)");
}

/*
 * Computes the depth of each node, and refuses a chain of parents that is a cycle. Each node is
 * visited once: from a node up to the first ancestor whose depth is known, then back down along
 * reader->stack. An ancestor that is marked WALKING was met on the same way up, so it is its own
 * ancestor.
 */
static enum err_code find_depths(struct reader *reader, struct err *err)
{
    enum { UNKNOWN = UINT32_MAX, WALKING = UINT32_MAX - 1 };
    reader->stack = mem_new(uint32_t, reader->node_count);
    for (uint32_t i = 0; i < reader->node_count; i++)
        reader->nodes[i].depth = UNKNOWN;
    for (uint32_t i = 0; i < reader->node_count; i++) {
        uint32_t at = i, count = 0;
        while (at != PROFILE_NONE && reader->nodes[at].depth == UNKNOWN) {
            reader->nodes[at].depth = WALKING;
            reader->stack[count++] = at;
            at = reader->nodes[at].parent;
        }
        if (at != PROFILE_NONE && reader->nodes[at].depth == WALKING)
            return err_set(err, ERR_INVALID, "cpuprofile: node %lld is its own ancestor",
                           (long long)reader->nodes[at].id);
        uint32_t depth = at == PROFILE_NONE ? 0 : reader->nodes[at].depth;
        while (count) {
            struct node *node = &reader->nodes[reader->stack[--count]];
            depth += !is_root_node(node);
            node->depth = depth;
        }
    }
    return ERR_NONE;
}

static uint32_t location_of(struct reader *reader, struct node *node)
{
    if (node->location != PROFILE_NONE)
        return node->location;
    const json_t *call = json_object_get(node->json, "callFrame");
    const json_t *source = call ? call : node->json;
    struct span name = json_tree_text(source, "functionName");
    /* Positions count from 0 in callFrame and from 1 in the old form; -1 means none. */
    int64_t first = call ? 1 : 0;
    int64_t line = get_integer(source, "lineNumber", -1) + first;
    int64_t column = get_integer(source, "columnNumber", -1) + first;
    const struct profile_builder_frame frame = {
        .name = name.size ? name : SPAN_LITERAL("(anonymous)"),
        .filename = json_tree_text(source, "url"),
        .line = line > 0 ? line : 0,
        .column = column > 0 ? column : 0,
        .start_line = line > 0 ? line : 0,
    };
    node->location = profile_builder_frame(reader->builder, &frame);
    return node->location;
}

/* Sets *time_us, the time of the sample before, to that of sample i, from "timeDeltas" or else
 * "timestamps"; false if it is missing or too large. */
static bool advance_time(const json_t *deltas, const json_t *timestamps, size_t i, double *time_us)
{
    const json_t *list = json_is_array(deltas) ? deltas : timestamps;
    const json_t *number = json_array_get(list, i);
    if (!json_is_number(number))
        return false;
    if (list == deltas)
        *time_us += json_number_value(number);
    else
        *time_us = json_number_value(number);
    return is_countable(*time_us);
}

/* Adds the time from *latest_us to time_us to the node; nothing if the clock went back. */
static void spend_time(struct node *node, double time_us, double *latest_us)
{
    if (time_us <= *latest_us)
        return;
    /* Rounds the times, not their difference, so that all durations add up to the total. */
    int64_t duration_us = llround(time_us) - llround(*latest_us);
    if (__builtin_add_overflow(node->values[VALUE_TIME], duration_us, &node->values[VALUE_TIME]))
        node->values[VALUE_TIME] = INT64_MAX;
    *latest_us = time_us;
}

static enum err_code read_samples(struct reader *reader, const json_t *samples, struct err *err)
{
    const json_t *deltas = json_object_get(reader->root, "timeDeltas");
    const json_t *timestamps = json_object_get(reader->root, "timestamps");
    bool has_times = json_is_array(deltas) || json_is_array(timestamps);
    double time_us = json_is_array(deltas) ? 0 : reader->start_us;
    double latest_us = 0;
    struct node *previous = NULL;
    if (has_times &&
        json_array_size(json_is_array(deltas) ? deltas : timestamps) < json_array_size(samples))
        return err_set(err, ERR_INVALID, "cpuprofile: fewer times than samples");
    for (size_t i = 0; i < json_array_size(samples); i++) {
        uint32_t index = find_node(reader, json_array_get(samples, i));
        if (index == MAP_ABSENT)
            return err_set(err, ERR_INVALID,
                           "cpuprofile: sample %zu refers to a node that does not exist", i);
        if (has_times && !advance_time(deltas, timestamps, i, &time_us))
            return err_set(err, ERR_INVALID,
                           "cpuprofile: the time of sample %zu is not a time in microseconds", i);
        if (previous)
            spend_time(previous, time_us, &latest_us);
        else
            latest_us = time_us;
        previous = &reader->nodes[index];
        previous->values[VALUE_SAMPLES]++;
    }
    double end_us = json_is_array(deltas) ? reader->end_us - reader->start_us : reader->end_us;
    if (previous && has_times && reader->end_us > reader->start_us)
        spend_time(previous, end_us, &latest_us);
    return ERR_NONE;
}

/* Without a list of samples, distributes the profile's time in proportion to the hit counts. The
 * durations add up to the total, because each is the difference of two rounded times. */
static void read_hits(struct reader *reader)
{
    double hit_count = 0, seen = 0;
    double duration_us = reader->end_us > reader->start_us ? reader->end_us - reader->start_us : 0;
    for (uint32_t i = 0; i < reader->node_count; i++) {
        int64_t hits = get_integer(reader->nodes[i].json, "hitCount", 0);
        reader->nodes[i].values[VALUE_SAMPLES] = hits > 0 ? hits : 0;
        hit_count += (double)reader->nodes[i].values[VALUE_SAMPLES];
    }
    for (uint32_t i = 0; hit_count > 0 && i < reader->node_count; i++) {
        struct node *node = &reader->nodes[i];
        double before_us = duration_us * (seen / hit_count);
        seen += (double)node->values[VALUE_SAMPLES];
        spend_time(node, duration_us * (seen / hit_count), &before_us);
    }
}

static bool has_values(const struct node *node)
{
    return node->values[VALUE_SAMPLES] || node->values[VALUE_TIME];
}

/* Counts all stack entries before the first stack is built, because a small file can describe
 * millions of long stacks, each by one node. */
static void count_entries(struct reader *reader)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < reader->node_count; i++)
        count += has_values(&reader->nodes[i]) ? reader->nodes[i].depth : 0;
    profile_builder_count_entries(reader->builder, count);
}

static void add_samples(struct reader *reader)
{
    count_entries(reader);
    for (uint32_t i = 0; i < reader->node_count; i++) {
        const struct node *node = &reader->nodes[i];
        size_t depth = 0;
        if (profile_builder_failed(reader->builder))
            return;
        if (!has_values(node))
            continue;
        for (uint32_t at = i; depth < node->depth; at = reader->nodes[at].parent)
            reader->stack[depth++] = location_of(reader, &reader->nodes[at]);
        profile_builder_add_sample(reader->builder, reader->stack, depth, node->values, NULL, 0);
    }
}

static void add_value_types(struct reader *reader)
{
    profile_builder_add_value_type(reader->builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    profile_builder_add_value_type(reader->builder, SPAN_LITERAL("time"),
                                   SPAN_LITERAL("microseconds"));
    struct profile *fields = profile_builder_fields(reader->builder);
    double duration_us = reader->end_us - reader->start_us;
    if (duration_us > 0 && duration_us < 9e15)
        fields->duration_ns = llround(duration_us * 1000);
}

static enum err_code decode_root(struct reader *reader, struct err *err)
{
    double scale = is_old_form(reader) ? US_PER_S : 1;
    if (get_number(reader->root, "startTime", &reader->start_us) &&
        get_number(reader->root, "endTime", &reader->end_us)) {
        reader->start_us *= scale;
        reader->end_us *= scale;
    }
    if (!(reader->end_us > reader->start_us) || !is_countable(reader->start_us) ||
        !is_countable(reader->end_us)) {
        reader->start_us = 0;
        reader->end_us = -1;
    }
    enum err_code code = read_nodes(reader, err);
    if (code)
        return code;
    code = find_depths(reader, err);
    if (code)
        return code;
    const json_t *samples = json_object_get(reader->root, "samples");
    add_value_types(reader);
    if (json_array_size(samples))
        code = read_samples(reader, samples, err);
    else
        read_hits(reader);
    if (code)
        return code;
    add_samples(reader);
    return ERR_NONE;
}

bool cpuprofile_detect(struct span text)
{
    enum { NODES, HEAD, START_TIME, END_TIME, SNAPSHOT, COUNT };
    static const char *const names[COUNT] = {"nodes", "head", "startTime", "endTime", "snapshot"};
    const uint64_t found = json_scan_find_members(text, names, COUNT);
    if (found & (1 << START_TIME | 1 << END_TIME))
        return found & (1 << NODES | 1 << HEAD);
    return (found & (1 << NODES | 1 << HEAD | 1 << SNAPSHOT)) == 1 << NODES;
}

enum err_code cpuprofile_decode(struct span text, const struct profile_limits *limits,
                                struct profile **ret_profile, struct err *err)
{
    json_t *root;
    enum err_code code = json_tree_load(text, limits, "cpuprofile", &root, err);
    if (code)
        return code;
    profile_builder_auto builder = profile_builder_create(limits);
    struct reader reader = {.builder = builder, .root = root};
    map_u64_init(&reader.index_of_id, 0);
    code = decode_root(&reader, err);
    map_u64_fini(&reader.index_of_id);
    mem_free(reader.nodes);
    mem_free(reader.stack);
    json_tree_free(root, text);
    return code ? code : profile_builder_take(builder, ret_profile, err);
}
