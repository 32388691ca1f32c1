#include "store/block/dictionary_union.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <stdlib.h>

/* The numbers of one input's objects while the union is built. */
struct input {
    const struct dictionary *dictionary;
    const struct stack_hashes *hashes;
    const struct dictionary_use *use; /* NULL: all of it */
    bool is_needed;                   /* false: nothing of it is needed */
    uint32_t *strings;
    uint32_t *mappings;
    uint32_t *functions;
    uint32_t *locations; /* in the union, unsorted */
    uint32_t *label_sets;
    uint32_t *series;
};

struct table {
    void *items;
    uint32_t count;
    uint32_t capacity;
    size_t size;
};

struct building {
    struct arena *arena; /* of the result */
    struct arena *scratch;
    struct input *inputs;
    uint32_t input_count;
    struct map_bytes strings_by_text;
    struct map_bytes by_bytes[4]; /* mappings, functions, label sets, series */
    struct table strings;
    struct table mappings;
    struct table functions;
    struct table lines;
    struct table locations;
    struct table label_sets;
    struct table sample_labels;
    struct table series;
    struct table series_labels;
    struct stack_hash_set frames;
    struct stack_hash_set stacks;
    uint32_t *sorted_locations; /* sorted number by unsorted number */
};

enum { OF_MAPPINGS, OF_FUNCTIONS, OF_LABEL_SETS, OF_SERIES };

static void *append_items(struct table *table, uint32_t count)
{
    const size_t wanted = (size_t)table->count + count;
    if (wanted > table->capacity || !table->items) {
        const size_t capacity =
            vec_grow_capacity(table->capacity, wanted, table->size, VEC_MAX(table->capacity));
        table->items = mem_resize(table->items, capacity, table->size);
        table->capacity = (uint32_t)capacity;
    }
    void *items = (uint8_t *)table->items + table->count * table->size;
    table->count += count;
    return items;
}

static uint32_t *new_numbers(struct arena *arena, uint32_t count)
{
    uint32_t *numbers = arena_new_raw(arena, uint32_t, count);
    memset(numbers, 0xff, count * sizeof(*numbers));
    return numbers;
}

/* Returns the number of the object with this key. If there is none, *ret_is_new is true, the number
 * is `next`, and the caller appends the object. */
static uint32_t intern(struct building *building, int kind, const void *key, size_t size,
                       uint32_t next, bool *ret_is_new)
{
    struct map_bytes *map = &building->by_bytes[kind];
    const uint32_t found = map_bytes_find(map, span_of(key, size));
    *ret_is_new = found == MAP_ABSENT;
    if (!*ret_is_new)
        return found;
    uint8_t *kept = arena_alloc_raw(building->scratch, size, 1);
    memcpy(kept, key, size);
    return map_bytes_add(map, span_of(kept, size), next);
}

/* ---- tables ---- */

static uint32_t add_string(struct building *building, struct input *input, uint32_t string)
{
    uint32_t *number = &input->strings[string];
    if (*number != PROFILE_NONE)
        return *number;
    const struct span text = input->dictionary->tables->strings[string];
    *number = map_bytes_add(&building->strings_by_text, text, building->strings.count);
    if (*number == building->strings.count)
        *(struct span *)append_items(&building->strings, 1) = text;
    return *number;
}

static uint32_t add_mapping(struct building *building, struct input *input, uint32_t index)
{
    if (index == PROFILE_NONE || input->mappings[index] != PROFILE_NONE)
        return index == PROFILE_NONE ? PROFILE_NONE : input->mappings[index];
    struct profile_mapping copied = input->dictionary->tables->mappings[index];
    bool is_new;
    copied.filename = add_string(building, input, copied.filename);
    copied.build_id = add_string(building, input, copied.build_id);
    const unsigned bits = copied.has_functions | copied.has_filenames * 2u |
                          copied.has_line_numbers * 4u | copied.has_inline_frames * 8u;
    const uint64_t key[] = {copied.start, copied.limit, copied.offset, copied.filename,
                            (uint64_t)copied.build_id << 4 | bits};
    input->mappings[index] =
        intern(building, OF_MAPPINGS, key, sizeof(key), building->mappings.count, &is_new);
    if (is_new)
        *(struct profile_mapping *)append_items(&building->mappings, 1) = copied;
    return input->mappings[index];
}

static uint32_t add_function(struct building *building, struct input *input, uint32_t index)
{
    if (index == PROFILE_NONE || input->functions[index] != PROFILE_NONE)
        return index == PROFILE_NONE ? PROFILE_NONE : input->functions[index];
    struct profile_function copied = input->dictionary->tables->functions[index];
    bool is_new;
    copied.name = add_string(building, input, copied.name);
    copied.system_name = add_string(building, input, copied.system_name);
    copied.filename = add_string(building, input, copied.filename);
    const uint64_t key[] = {(uint64_t)copied.name << 32 | copied.system_name, copied.filename,
                            (uint64_t)copied.start_line};
    input->functions[index] =
        intern(building, OF_FUNCTIONS, key, sizeof(key), building->functions.count, &is_new);
    if (is_new)
        *(struct profile_function *)append_items(&building->functions, 1) = copied;
    return input->functions[index];
}

static void copy_location(struct building *building, struct input *input, uint32_t index)
{
    struct profile_location copied = input->dictionary->tables->locations[index];
    const struct profile_line *from = input->dictionary->tables->lines + copied.first_line;
    copied.mapping = add_mapping(building, input, copied.mapping);
    copied.first_line = building->lines.count;
    for (uint32_t i = 0; i < copied.line_count; i++) {
        struct profile_line line = from[i];
        line.function = add_function(building, input, line.function);
        *(struct profile_line *)append_items(&building->lines, 1) = line;
    }
    *(struct profile_location *)append_items(&building->locations, 1) = copied;
}

/* Marks the locations of the needed stacks; NULL: all are needed. */
static const bool *find_locations(struct building *building, const struct input *input)
{
    const struct stacks *stacks = &input->dictionary->stacks;
    if (!input->use)
        return NULL;
    bool *locations =
        arena_new(building->scratch, bool, input->dictionary->tables->location_count + (size_t)1);
    bool *nodes = arena_new(building->scratch, bool, stacks->node_count);
    for (uint32_t i = 0; i < stacks->stack_count; i++)
        nodes[stacks->ends[i].node] = input->use->stacks[i];
    /* Backwards, since callers come before what they call. */
    struct stack_position position = {.node = stacks->node_count, .chain = stacks->chain_count - 1};
    while (--position.node != STACKS_ROOT) {
        position.chain -= position.node < stacks->chains[position.chain].first;
        if (!nodes[position.node])
            continue;
        nodes[stacks_caller(stacks, position).node] = true;
        locations[stacks->frames[position.node]] = true;
    }
    return locations;
}

static void add_locations(struct building *building, struct input *input)
{
    const uint32_t count = input->dictionary->tables->location_count;
    const bool *needed = find_locations(building, input);
    for (uint32_t i = 0; i < count; i++) {
        if (needed && !needed[i])
            continue;
        const uint32_t before = building->frames.count;
        input->locations[i] = stack_hash_set_add(&building->frames, input->hashes->frames[i]);
        if (input->locations[i] == before)
            copy_location(building, input, i);
    }
}

/* ---- labels ---- */

static void add_label_sets(struct building *building, struct input *input)
{
    const struct dictionary *from = input->dictionary;
    buf_auto key;
    buf_init(&key, 1 << 26);
    for (uint32_t i = 0; i < from->label_set_count; i++) {
        struct batch_label_set set = from->label_sets[i];
        if (i && input->use && !input->use->label_sets[i])
            continue;
        buf_clear(&key);
        buf_append(&key, &set.link, sizeof(set.link));
        const uint32_t first = building->sample_labels.count;
        struct profile_label *labels = append_items(&building->sample_labels, set.label_count);
        for (uint32_t j = 0; j < set.label_count; j++) {
            struct profile_label label = from->sample_labels[set.first_label + j];
            labels[j] = (struct profile_label){
                .key = add_string(building, input, label.key),
                .text = add_string(building, input, label.text),
                .number = label.number,
                .unit = add_string(building, input, label.unit),
                .is_numeric = label.is_numeric,
            };
            const uint64_t fields[] = {(uint64_t)labels[j].key << 32 | labels[j].text,
                                       (uint64_t)labels[j].number,
                                       (uint64_t)labels[j].unit << 1 | labels[j].is_numeric};
            buf_append(&key, fields, sizeof(fields));
        }
        bool is_new;
        set.first_label = first;
        input->label_sets[i] = intern(building, OF_LABEL_SETS, key.data, key.size,
                                      building->label_sets.count, &is_new);
        if (is_new)
            *(struct batch_label_set *)append_items(&building->label_sets, 1) = set;
        else
            building->sample_labels.count = first;
    }
}

static void append_type(struct building *building, struct input *input, struct batch_type *type,
                        struct buf *key)
{
    type->name = add_string(building, input, type->name);
    type->sample_type.type = add_string(building, input, type->sample_type.type);
    type->sample_type.unit = add_string(building, input, type->sample_type.unit);
    type->period_type.type = add_string(building, input, type->period_type.type);
    type->period_type.unit = add_string(building, input, type->period_type.unit);
    const uint32_t fields[] = {type->name,
                               type->sample_type.type,
                               type->sample_type.unit,
                               type->period_type.type,
                               type->period_type.unit,
                               (uint32_t)type->kind};
    buf_append(key, fields, sizeof(fields));
}

static void add_series(struct building *building, struct input *input)
{
    const struct dictionary *from = input->dictionary;
    buf_auto key;
    buf_init(&key, 1 << 26);
    for (uint32_t i = 0; i < from->series_count; i++) {
        struct batch_series series = from->series[i];
        if (input->use && !input->use->series[i])
            continue;
        const uint32_t first = building->series_labels.count;
        struct batch_label *labels = append_items(&building->series_labels, series.label_count);
        buf_clear(&key);
        append_type(building, input, &series.type, &key);
        for (uint32_t j = 0; j < series.label_count; j++) {
            const struct batch_label *label = &from->series_labels[series.first_label + j];
            labels[j].name = add_string(building, input, label->name);
            labels[j].value = add_string(building, input, label->value);
            buf_append(&key, &labels[j], sizeof(labels[j]));
        }
        bool is_new;
        series.first_label = first;
        input->series[i] =
            intern(building, OF_SERIES, key.data, key.size, building->series.count, &is_new);
        if (is_new)
            *(struct batch_series *)append_items(&building->series, 1) = series;
        else
            building->series_labels.count = first;
    }
}

/* ---- sorting ---- */

static int compare_locations(const void *a, const void *b, void *context)
{
    const struct profile_location *locations = context;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct profile_location *x = &locations[i], *y = &locations[j];
    if (x->mapping != y->mapping)
        return x->mapping < y->mapping ? -1 : 1;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return (i > j) - (i < j);
}

static int compare_texts(const void *a, const void *b, void *context)
{
    const struct span *texts = context;
    return span_compare(texts[*(const uint32_t *)a], texts[*(const uint32_t *)b]);
}

/* Returns sorted numbers by unsorted ones; *ret_order: unsorted by sorted. */
static uint32_t *sort_numbers(struct arena *arena, uint32_t count,
                              int (*compare)(const void *, const void *, void *), void *context,
                              uint32_t **ret_order)
{
    uint32_t *order = arena_new_raw(arena, uint32_t, count);
    uint32_t *ranks = arena_new_raw(arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    if (count)
        qsort_r(order, count, sizeof(*order), compare, context);
    for (uint32_t i = 0; i < count; i++)
        ranks[order[i]] = i;
    *ret_order = order;
    return ranks;
}

/* Sorts strings by bytes: "" is first and keeps number 0. */
static const uint32_t *sort_strings(struct building *building, struct profile *tables)
{
    const uint32_t count = building->strings.count;
    const struct span *texts = building->strings.items;
    uint32_t *order;
    const uint32_t *ranks =
        sort_numbers(building->scratch, count, compare_texts, building->strings.items, &order);
    struct span *sorted = arena_new_raw(building->arena, struct span, count);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = texts[order[i]];
    tables->strings = sorted;
    tables->string_count = count;
    return ranks;
}

static void renumber_tables(struct building *building, struct profile *tables,
                            const uint32_t *strings)
{
    struct profile_mapping *mappings = building->mappings.items;
    struct profile_function *functions = building->functions.items;
    for (uint32_t i = 0; i < building->mappings.count; i++) {
        mappings[i].filename = strings[mappings[i].filename];
        mappings[i].build_id = strings[mappings[i].build_id];
    }
    for (uint32_t i = 0; i < building->functions.count; i++) {
        functions[i].name = strings[functions[i].name];
        functions[i].system_name = strings[functions[i].system_name];
        functions[i].filename = strings[functions[i].filename];
    }
    tables->mappings = mappings;
    tables->mapping_count = building->mappings.count;
    tables->functions = functions;
    tables->function_count = building->functions.count;
}

static void sort_locations(struct building *building, struct profile *tables)
{
    const uint32_t count = building->locations.count;
    const struct profile_location *from = building->locations.items;
    const struct profile_line *from_lines = building->lines.items;
    uint32_t *order;
    building->sorted_locations = sort_numbers(building->scratch, count, compare_locations,
                                              building->locations.items, &order);
    struct profile_location *locations =
        arena_new_raw(building->arena, struct profile_location, count);
    struct profile_line *lines =
        arena_new_raw(building->arena, struct profile_line, building->lines.count);
    uint32_t line_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        locations[i] = from[order[i]];
        if (locations[i].line_count)
            memcpy(lines + line_count, from_lines + locations[i].first_line,
                   locations[i].line_count * sizeof(*lines));
        locations[i].first_line = line_count;
        line_count += locations[i].line_count;
    }
    tables->locations = locations;
    tables->location_count = count;
    tables->lines = lines;
    tables->line_count = line_count;
}

static void renumber_labels(struct building *building, struct dictionary *dictionary,
                            const uint32_t *strings)
{
    struct profile_label *labels = building->sample_labels.items;
    for (uint32_t i = 0; i < building->sample_labels.count; i++) {
        labels[i].key = strings[labels[i].key];
        labels[i].text = strings[labels[i].text];
        labels[i].unit = strings[labels[i].unit];
    }
    dictionary->label_sets = building->label_sets.items;
    dictionary->label_set_count = building->label_sets.count;
    dictionary->sample_labels = labels;
    dictionary->sample_label_count = building->sample_labels.count;
}

static int compare_series(const void *a, const void *b, void *context)
{
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    return dictionary_compare_series(context, i, context, j);
}

static const uint32_t *sort_series(struct building *building, struct dictionary *dictionary,
                                   const uint32_t *strings)
{
    struct batch_label *labels = building->series_labels.items;
    struct batch_series *series = building->series.items;
    const uint32_t count = building->series.count;
    for (uint32_t i = 0; i < building->series_labels.count; i++) {
        labels[i].name = strings[labels[i].name];
        labels[i].value = strings[labels[i].value];
    }
    for (uint32_t i = 0; i < count; i++) {
        struct batch_type *type = &series[i].type;
        type->name = strings[type->name];
        type->sample_type.type = strings[type->sample_type.type];
        type->sample_type.unit = strings[type->sample_type.unit];
        type->period_type.type = strings[type->period_type.type];
        type->period_type.unit = strings[type->period_type.unit];
    }
    dictionary->series = series;
    dictionary->series_labels = labels;
    dictionary->series_label_count = building->series_labels.count;
    uint32_t *order;
    const uint32_t *ranks =
        sort_numbers(building->scratch, count, compare_series, dictionary, &order);
    struct batch_series *sorted = arena_new_raw(building->arena, struct batch_series, count);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = series[order[i]];
    dictionary->series = sorted;
    dictionary->series_count = count;
    return ranks;
}

/* ---- stacks ---- */

static void add_path(const struct building *building, const struct input *input, uint32_t stack,
                     struct stack_paths *paths)
{
    const struct stacks *from = &input->dictionary->stacks;
    const uint32_t depth = stacks_depth(from, stack);
    uint32_t *frames = stack_paths_add(paths, depth);
    struct stack_position position = from->ends[stack];
    for (uint32_t at = depth; at-- > 0; position = stacks_caller(from, position))
        frames[at] = building->sorted_locations[input->locations[from->frames[position.node]]];
}

/* Most stacks occurred in an earlier input: their hashes are enough, their frames are not read. */
static void add_stacks(struct building *building, const struct input *input,
                       struct stack_paths *paths, uint32_t *path_of_stack)
{
    const struct stacks *from = &input->dictionary->stacks;
    for (uint32_t i = 0; i < from->stack_count; i++) {
        path_of_stack[i] = 0;
        if (i && input->use && !input->use->stacks[i])
            continue;
        const uint32_t before = building->stacks.count;
        path_of_stack[i] = stack_hash_set_add(&building->stacks, input->hashes->stacks[i]);
        if (path_of_stack[i] == before)
            add_path(building, input, i, paths);
    }
}

static enum err_code unite_stacks(struct building *building, struct dictionary_union *result,
                                  struct dictionary_numbers *numbers, struct err *err)
{
    struct stack_paths *paths = stack_paths_create();
    uint32_t **stacks = arena_new(building->scratch, uint32_t *, building->input_count);
    for (uint32_t i = 0; i < building->input_count; i++) {
        const struct input *input = &building->inputs[i];
        if (!input->is_needed)
            continue;
        stacks[i] = arena_new_raw(building->arena, uint32_t, input->dictionary->stacks.stack_count);
        add_stacks(building, input, paths, stacks[i]);
    }
    uint32_t *stack_of_path = arena_new_raw(building->scratch, uint32_t, building->stacks.count);
    const bool fits =
        stack_paths_finish(paths, building->arena, &result->dictionary.stacks, stack_of_path);
    for (uint32_t i = 0; i < building->input_count && fits; i++) {
        if (!building->inputs[i].is_needed)
            continue;
        const uint32_t count = building->inputs[i].dictionary->stacks.stack_count;
        for (uint32_t j = 0; j < count; j++)
            stacks[i][j] = stack_of_path[stacks[i][j]];
        numbers[i].stacks = stacks[i];
    }
    stack_paths_destroy(paths);
    return fits ? ERR_NONE
                : err_set(err, ERR_TOO_LARGE, "stacks of more than %d frames", STACKS_NODES_MAX);
}

/* ---- all ---- */

static void begin_inputs(struct building *building, const struct block *const *blocks,
                         const struct dictionary_use *uses)
{
    building->inputs = arena_new(building->scratch, struct input, building->input_count);
    for (uint32_t i = 0; i < building->input_count; i++) {
        const struct dictionary *from = block_dictionary(blocks[i]);
        if (uses[i].what == DICTIONARY_NONE)
            continue;
        building->inputs[i] = (struct input){
            .dictionary = from,
            .hashes = block_hashes(blocks[i]),
            .use = uses[i].what == DICTIONARY_SOME ? &uses[i] : NULL,
            .is_needed = true,
            .strings = new_numbers(building->scratch, from->tables->string_count),
            .mappings = new_numbers(building->scratch, from->tables->mapping_count),
            .functions = new_numbers(building->scratch, from->tables->function_count),
            .locations = new_numbers(building->scratch, from->tables->location_count),
            .label_sets = new_numbers(building->arena, from->label_set_count),
            .series = new_numbers(building->arena, from->series_count),
        };
    }
}

/*
 * Unites the inputs in two steps, so that every string, frame and stack is looked at once.
 *
 * First each input's objects are added under provisional numbers, in order of first occurrence:
 * strings and small objects by their bytes, locations and stacks by their hashes. Then strings,
 * locations and series are sorted, the references to them are renumbered, and the stacks, now with
 * final locations, become one tree.
 *
 * Example: input A has strings "", "main", "gc", input B "", "alloc", "main". The provisional
 * numbers are "" 0, main 1, gc 2, alloc 3; sorted they are "" 0, alloc 1, gc 2, main 3. A's string
 * 1 is first 1, then 3; so is B's string 2.
 */
static enum err_code build_union(struct building *building, struct dictionary_union *result,
                                 struct err *err)
{
    struct dictionary_numbers *numbers =
        arena_new(building->arena, struct dictionary_numbers, building->input_count);
    for (uint32_t i = 0; i < building->input_count; i++) {
        struct input *input = &building->inputs[i];
        if (!input->is_needed)
            continue;
        add_string(building, input, 0);
        add_locations(building, input);
        add_label_sets(building, input);
        add_series(building, input);
    }
    struct profile *tables = arena_new(building->arena, struct profile, 1);
    tables->arena = building->arena;
    result->dictionary.tables = tables;
    const uint32_t *strings = sort_strings(building, tables);
    renumber_tables(building, tables, strings);
    sort_locations(building, tables);
    renumber_labels(building, &result->dictionary, strings);
    const uint32_t *series = sort_series(building, &result->dictionary, strings);
    for (uint32_t i = 0; i < building->input_count; i++) {
        struct input *input = &building->inputs[i];
        if (!input->is_needed)
            continue;
        for (uint32_t j = 0; j < input->dictionary->series_count; j++)
            input->series[j] =
                input->series[j] == PROFILE_NONE ? PROFILE_NONE : series[input->series[j]];
        numbers[i].series = input->series;
        numbers[i].label_sets = input->label_sets;
    }
    result->inputs = numbers;
    return unite_stacks(building, result, numbers, err);
}

static void free_items(void *items)
{
    mem_free(items);
}

enum err_code dictionary_union_create(struct arena *arena, const struct block *const *blocks,
                                      uint32_t block_count, const struct dictionary_use *uses,
                                      struct dictionary_union *ret_union, struct err *err)
{
    arena_auto scratch = arena_create();
    struct building building = {
        .arena = arena,
        .scratch = scratch,
        .input_count = block_count,
        .strings.size = sizeof(struct span),
        .mappings.size = sizeof(struct profile_mapping),
        .functions.size = sizeof(struct profile_function),
        .lines.size = sizeof(struct profile_line),
        .locations.size = sizeof(struct profile_location),
        .label_sets.size = sizeof(struct batch_label_set),
        .sample_labels.size = sizeof(struct profile_label),
        .series.size = sizeof(struct batch_series),
        .series_labels.size = sizeof(struct batch_label),
    };
    struct dictionary_union result = {0};
    stack_hash_set_init(&building.frames);
    stack_hash_set_init(&building.stacks);
    begin_inputs(&building, blocks, uses);
    enum err_code code = build_union(&building, &result, err);
    stack_hash_set_fini(&building.frames);
    stack_hash_set_fini(&building.stacks);
    map_bytes_fini(&building.strings_by_text);
    for (size_t i = 0; i < sizeof(building.by_bytes) / sizeof(building.by_bytes[0]); i++)
        map_bytes_fini(&building.by_bytes[i]);
    /* These arrays belong to the result; the others were copied into its arena in sorted order. */
    struct table *const kept[] = {&building.mappings, &building.functions, &building.label_sets,
                                  &building.sample_labels, &building.series_labels};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        arena_on_destroy(arena, free_items, kept[i]->items);
    mem_free(building.strings.items);
    mem_free(building.lines.items);
    mem_free(building.locations.items);
    mem_free(building.series.items);
    if (!code)
        *ret_union = result;
    return code;
}
