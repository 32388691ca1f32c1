#include "store/block/dictionary.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/batch/batch_labels.h"

#include <stdlib.h>

struct subset {
    const struct batch *batch;
    const struct profile *from; /* the batch's tables */
    struct arena *arena;
    struct arena *scratch;
    struct profile *tables;

    /* New numbers by old ones; PROFILE_NONE: not used. */
    uint32_t *locations;
    uint32_t *functions;
    uint32_t *mappings;
    uint32_t *strings;

    /* The copied items, in order of first use. */
    struct span *new_strings;
    struct profile_location *new_locations;
    struct profile_line *new_lines;
    struct profile_function *new_functions;
    struct profile_mapping *new_mappings;
};

static uint32_t *new_numbers(struct arena *arena, uint32_t count)
{
    uint32_t *numbers = arena_new_raw(arena, uint32_t, count);
    memset(numbers, 0xff, count * sizeof(*numbers));
    return numbers;
}

static uint32_t take_string(struct subset *subset, uint32_t string)
{
    uint32_t *number = &subset->strings[string];
    if (*number == PROFILE_NONE) {
        *number = subset->tables->string_count++;
        subset->new_strings[*number] = subset->from->strings[string];
    }
    return *number;
}

static uint32_t take_function(struct subset *subset, uint32_t function)
{
    if (function == PROFILE_NONE)
        return PROFILE_NONE;
    uint32_t *number = &subset->functions[function];
    if (*number == PROFILE_NONE) {
        struct profile_function taken = subset->from->functions[function];
        taken.name = take_string(subset, taken.name);
        taken.system_name = take_string(subset, taken.system_name);
        taken.filename = take_string(subset, taken.filename);
        *number = subset->tables->function_count++;
        subset->new_functions[*number] = taken;
    }
    return *number;
}

/* True when addresses in the mapping can be given as offsets in its file. Not for the kernel's own,
 * "[kernel.kallsyms]", nor when neither file nor size is known. */
static bool is_file(const struct profile *profile, const struct profile_mapping *mapping)
{
    const struct span name = profile_string(profile, mapping->filename);
    return mapping->limit > mapping->start && (mapping->build_id || mapping->filename) &&
           !span_starts_with(name, "[");
}

static uint32_t take_mapping(struct subset *subset, uint32_t mapping)
{
    uint32_t *number = &subset->mappings[mapping];
    if (*number == PROFILE_NONE) {
        struct profile_mapping taken = subset->from->mappings[mapping];
        if (is_file(subset->from, &taken)) {
            taken.limit = taken.limit - taken.start + taken.offset;
            taken.start = taken.offset;
        }
        taken.filename = take_string(subset, taken.filename);
        taken.build_id = take_string(subset, taken.build_id);
        *number = subset->tables->mapping_count++;
        subset->new_mappings[*number] = taken;
    }
    return *number;
}

static uint32_t add_location(struct subset *subset, uint32_t location)
{
    struct profile_location taken = subset->from->locations[location];
    if (taken.mapping != PROFILE_NONE) {
        const uint64_t start = subset->from->mappings[taken.mapping].start;
        taken.mapping = take_mapping(subset, taken.mapping);
        taken.address += subset->new_mappings[taken.mapping].start - start;
    }
    const uint32_t first_line = taken.first_line;
    taken.first_line = subset->tables->line_count;
    for (uint32_t i = 0; i < taken.line_count; i++) {
        struct profile_line line = subset->from->lines[first_line + i];
        line.function = take_function(subset, line.function);
        subset->new_lines[subset->tables->line_count++] = line;
    }
    const uint32_t number = subset->tables->location_count++;
    subset->new_locations[number] = taken;
    return subset->locations[location] = number;
}

static inline uint32_t take_location(struct subset *subset, uint32_t location)
{
    const uint32_t number = subset->locations[location];
    return number != PROFILE_NONE ? number : add_location(subset, location);
}

static void begin_subset(struct subset *subset, struct arena *arena, struct arena *scratch,
                         const struct batch *batch)
{
    const struct profile *from = batch->tables;
    *subset = (struct subset){
        .batch = batch,
        .from = from,
        .arena = arena,
        .scratch = scratch,
        .tables = arena_new(arena, struct profile, 1),
        .locations = new_numbers(scratch, from->location_count),
        .functions = new_numbers(scratch, from->function_count),
        .mappings = new_numbers(scratch, from->mapping_count),
        .strings = new_numbers(scratch, from->string_count),
        .new_strings = arena_new_raw(arena, struct span, from->string_count),
        .new_locations = arena_new_raw(arena, struct profile_location, from->location_count),
        .new_lines = arena_new_raw(arena, struct profile_line, from->line_count),
        .new_functions = arena_new_raw(arena, struct profile_function, from->function_count),
        .new_mappings = arena_new_raw(arena, struct profile_mapping, from->mapping_count),
    };
    struct profile *tables = subset->tables;
    tables->arena = arena;
    tables->strings = subset->new_strings;
    tables->locations = subset->new_locations;
    tables->lines = subset->new_lines;
    tables->functions = subset->new_functions;
    tables->mappings = subset->new_mappings;
    take_string(subset, 0);
}

/* ---- stacks ---- */

/* The tree while stacks are added in order of arrival: each shares its first nodes with the stack
 * before it. */
struct stack_adder {
    struct subset *subset;
    uint32_t *frames;
    struct stack_chains chains;
    struct stack_position *ends;
    uint32_t node_count;
    uint32_t stack_count;
    uint32_t *last; /* frames of the last stack, by depth */
    uint32_t depth; /* of the last stack */
};

/* Adds a stack. Its last frame always gets a node of its own, even if the stack equals the one
 * before, so that stacks are numbered in order of their nodes. */
static void add_stack(struct stack_adder *adder, const uint32_t *leaf_first, uint32_t depth)
{
    uint32_t *last = adder->last;
    const uint32_t *root_first = leaf_first + depth; /* backwards */
    const uint32_t most = depth - 1 < adder->depth ? depth - 1 : adder->depth;
    uint32_t common = 0;
    while (common < most && last[common] == take_location(adder->subset, root_first[-1L - common]))
        common++;
    if (common < adder->depth)
        stack_chains_add(&adder->chains, adder->node_count, common + 1);
    uint32_t *frames = adder->frames + adder->node_count;
    adder->node_count += depth - common;
    for (uint32_t at = common; at < depth; at++)
        *frames++ = last[at] = take_location(adder->subset, root_first[-1L - at]);
    adder->depth = depth;
    adder->ends[adder->stack_count++] =
        (struct stack_position){.node = adder->node_count - 1, .chain = adder->chains.count - 1};
}

/* Counts the frames of all stacks that samples refer to, and the deepest; marks each in stacks. */
static uint64_t mark_stacks(const struct batch *batch, uint32_t *stacks, uint32_t *ret_count,
                            uint64_t *ret_deepest)
{
    uint64_t frames = 0;
    *ret_count = 0;
    *ret_deepest = 0;
    for (uint32_t i = 0; i < batch->sample_count; i++) {
        const uint32_t stack = batch->samples[i].stack;
        if (stacks[stack] != PROFILE_NONE)
            continue;
        const uint64_t depth = batch->stack_start[stack + 1] - batch->stack_start[stack];
        stacks[stack] = 0;
        frames += depth;
        *ret_count += 1;
        *ret_deepest = depth > *ret_deepest ? depth : *ret_deepest;
    }
    return frames;
}

/*
 * The stacks of a batch are stored as they came, not as a tree without repetition, which costs a
 * look-up per frame that misses the caches. A merge builds such a tree from many batches at once.
 */
static enum err_code take_stacks(struct subset *subset, struct dictionary_of_batch *result,
                                 struct err *err)
{
    const struct batch *batch = subset->batch;
    uint32_t *stacks = new_numbers(subset->arena, batch->stack_count);
    uint32_t count;
    uint64_t deepest;
    const uint64_t frames = mark_stacks(batch, stacks, &count, &deepest);
    if (frames >= STACKS_NODES_MAX)
        return err_set(err, ERR_TOO_LARGE, "more than %d frames in stacks", STACKS_NODES_MAX);
    struct stack_adder adder = {
        .subset = subset,
        .frames = arena_new_raw(subset->arena, uint32_t, frames + 1),
        .ends = arena_new_raw(subset->arena, struct stack_position, count + (size_t)1),
        .last = arena_new_raw(subset->scratch, uint32_t, deepest + 1),
        .node_count = 1,
        .stack_count = 1,
    };
    stack_chains_init(&adder.chains, subset->arena, subset->scratch, count);
    adder.ends[0] = (struct stack_position){.node = STACKS_ROOT};
    adder.frames[0] = STACKS_NO_FRAME;
    for (uint32_t i = 0; i < batch->stack_count; i++) {
        const uint64_t start = batch->stack_start[i];
        const uint32_t depth = (uint32_t)(batch->stack_start[i + 1] - start);
        if (stacks[i] == PROFILE_NONE || depth == 0)
            continue;
        stacks[i] = adder.stack_count;
        add_stack(&adder, batch->stack + start, depth);
    }
    result->stacks = stacks;
    result->dictionary.stacks = (struct stacks){
        .node_count = adder.node_count,
        .stack_count = adder.stack_count,
        .chain_count = adder.chains.count,
        .frames = adder.frames,
        .chains = adder.chains.chains,
        .ends = adder.ends,
    };
    return ERR_NONE;
}

/* ---- labels and series ---- */

static void take_label_sets(struct subset *subset, struct dictionary *dictionary)
{
    const struct batch *batch = subset->batch;
    struct profile_label *labels =
        arena_new_raw(subset->arena, struct profile_label, batch->sample_label_count);
    for (uint32_t i = 0; i < batch->sample_label_count; i++) {
        labels[i] = batch->sample_labels[i];
        labels[i].key = take_string(subset, labels[i].key);
        labels[i].text = take_string(subset, labels[i].text);
        labels[i].unit = take_string(subset, labels[i].unit);
    }
    struct batch_label_set *sets =
        arena_new_raw(subset->arena, struct batch_label_set, batch->label_set_count);
    memcpy(sets, batch->label_sets, batch->label_set_count * sizeof(*sets));
    dictionary->label_sets = sets;
    dictionary->label_set_count = batch->label_set_count;
    dictionary->sample_labels = labels;
    dictionary->sample_label_count = batch->sample_label_count;
}

static int compare_strings(const struct dictionary *a, uint32_t string_of_a,
                           const struct dictionary *b, uint32_t string_of_b)
{
    if (a == b && string_of_a == string_of_b)
        return 0;
    return span_compare(a->tables->strings[string_of_a], b->tables->strings[string_of_b]);
}

static int compare_types(const struct dictionary *a, const struct batch_type *x,
                         const struct dictionary *b, const struct batch_type *y)
{
    const uint32_t strings_of_a[] = {x->name, x->sample_type.type, x->sample_type.unit,
                                     x->period_type.type, x->period_type.unit};
    const uint32_t strings_of_b[] = {y->name, y->sample_type.type, y->sample_type.unit,
                                     y->period_type.type, y->period_type.unit};
    for (size_t i = 0; i < sizeof(strings_of_a) / sizeof(strings_of_a[0]); i++) {
        const int order = compare_strings(a, strings_of_a[i], b, strings_of_b[i]);
        if (order)
            return order;
    }
    return (int)x->kind - (int)y->kind;
}

int dictionary_compare_series(const struct dictionary *a, uint32_t series_of_a,
                              const struct dictionary *b, uint32_t series_of_b)
{
    const struct batch_series *x = &a->series[series_of_a], *y = &b->series[series_of_b];
    int order = compare_types(a, &x->type, b, &y->type);
    const struct batch_label *labels_of_x = a->series_labels + x->first_label;
    const struct batch_label *labels_of_y = b->series_labels + y->first_label;
    for (uint32_t i = 0; !order && i < x->label_count && i < y->label_count; i++) {
        order = compare_strings(a, labels_of_x[i].name, b, labels_of_y[i].name);
        if (!order)
            order = compare_strings(a, labels_of_x[i].value, b, labels_of_y[i].value);
    }
    return order ? order : (x->label_count > y->label_count) - (x->label_count < y->label_count);
}

static int compare_ranked(const void *a, const void *b, void *dictionary)
{
    const uint32_t *x = a, *y = b;
    return dictionary_compare_series(dictionary, *x, dictionary, *y);
}

/* Copies the batch's series with their strings, in the order of the batch. */
static void take_series(struct subset *subset, struct dictionary *dictionary)
{
    const struct batch *batch = subset->batch;
    struct batch_label *labels =
        arena_new_raw(subset->arena, struct batch_label, batch->series_label_count);
    for (uint32_t i = 0; i < batch->series_label_count; i++) {
        labels[i].name = take_string(subset, batch->series_labels[i].name);
        labels[i].value = take_string(subset, batch->series_labels[i].value);
    }
    struct batch_series *series =
        arena_new_raw(subset->arena, struct batch_series, batch->series_count);
    for (uint32_t i = 0; i < batch->series_count; i++) {
        series[i] = batch->series[i];
        struct batch_type *type = &series[i].type;
        type->name = take_string(subset, type->name);
        type->sample_type.type = take_string(subset, type->sample_type.type);
        type->sample_type.unit = take_string(subset, type->sample_type.unit);
        type->period_type.type = take_string(subset, type->period_type.type);
        type->period_type.unit = take_string(subset, type->period_type.unit);
    }
    dictionary->series = series;
    dictionary->series_count = batch->series_count;
    dictionary->series_labels = labels;
    dictionary->series_label_count = batch->series_label_count;
}

/* Sorts the series and joins equal ones. */
static const uint32_t *sort_series(struct subset *subset, struct dictionary *dictionary)
{
    const uint32_t count = dictionary->series_count;
    uint32_t *order = arena_new_raw(subset->scratch, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof(*order), compare_ranked, dictionary);
    struct batch_series *sorted = arena_new_raw(subset->arena, struct batch_series, count);
    uint32_t *numbers = arena_new_raw(subset->arena, uint32_t, count);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || compare_ranked(&order[i - 1], &order[i], dictionary) != 0)
            sorted[kept++] = dictionary->series[order[i]];
        numbers[order[i]] = kept - 1;
    }
    dictionary->series = sorted;
    dictionary->series_count = kept;
    return numbers;
}

enum err_code dictionary_of_batch(struct arena *arena, const struct batch *batch,
                                  struct dictionary_of_batch *ret_result, struct err *err)
{
    arena_auto scratch = arena_create();
    struct subset subset;
    begin_subset(&subset, arena, scratch, batch);
    struct dictionary_of_batch result = {.dictionary.tables = subset.tables};
    enum err_code code = take_stacks(&subset, &result, err);
    if (code)
        return code;
    take_label_sets(&subset, &result.dictionary);
    take_series(&subset, &result.dictionary);
    result.series = sort_series(&subset, &result.dictionary);
    *ret_result = result;
    return ERR_NONE;
}

/* Compares first, because nearly all names are sent as series have them. */
bool dictionary_becomes(struct span sent_name, struct span name)
{
    return !span_equal(sent_name, name) && batch_labels_becomes(sent_name, name);
}

const struct batch_label *dictionary_find_label(const struct dictionary *dictionary,
                                                uint32_t series, struct span sent_name)
{
    const struct batch_series *one = &dictionary->series[series];
    const struct batch_label *labels = &dictionary->series_labels[one->first_label];
    const struct span *strings = dictionary->tables->strings;
    const bool is_clean = batch_labels_is_name(sent_name);
    for (uint32_t i = 0; i < one->label_count; i++) {
        const struct span name = strings[labels[i].name];
        if (is_clean ? span_equal(name, sent_name) : batch_labels_becomes(sent_name, name))
            return &labels[i];
    }
    return NULL;
}
