#include "lib/profile/profile_builder.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/profile/long_string.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* A growing array on the heap. */
struct list {
    void *items;
    size_t count;
    size_t capacity;
};

/* A table whose entries are found by their bytes. */
struct table {
    struct list list;
    struct map_bytes by_key;
};

struct profile_builder {
    struct profile_limits limits;
    struct profile *fields;
    struct arena *arena;       /* the profile's; strings are copied into it at once */
    struct arena *keys;        /* keys of the tables, except strings, which are in arena */
    const char *exceeded_name; /* what exceeded its limit, in plural; NULL: nothing did */
    uint64_t exceeded_limit;
    uint64_t memory_bytes;     /* charged so far */
    uint64_t followed_entries; /* sum of the counts of profile_builder_count_entries */
    bool is_frozen;
    bool is_taken; /* by profile_builder_take */

    struct table strings;
    struct table functions;
    struct table mappings;
    struct table locations;
    struct list lines;
    struct list value_types;
    struct list comments;

    struct list stack;
    struct list stack_start;
    struct list values;
    struct list labels;
    struct list label_start;
    struct list hashes; /* per sample */
    uint32_t *slots;    /* samples by hash; PROFILE_NONE is a free slot */
    uint64_t slot_count;
    uint64_t seed;
};

/* Memory of a sample beside its stack, labels and values: hash, starts, and about two slots. */
enum { SAMPLE_OVERHEAD_BYTES = 32 };

/* ---- lists and tables ---- */

/* Grows by half, not twofold as lib/base/vec.h does, because the lists hold most of the memory of a
 * profile that is decoded. */
static void *list_grow(struct list *list, size_t count, size_t size)
{
    size_t needed = list->count + count;
    if (needed > list->capacity || !list->items) {
        size_t capacity = list->capacity + list->capacity / 2;
        list->capacity = capacity > needed ? capacity : needed + 16;
        list->items = mem_resize(list->items, list->capacity, size);
    }
    void *added = (char *)list->items + list->count * size;
    list->count = needed;
    return added;
}

#define list_add(list, type, value) (*(type *)list_grow((list), 1, sizeof(type)) = (value))
#define list_at(list, type, index) (((type *)(list)->items)[index])

/* Copies the list to the arena of the finished profile. */
static void *list_take(const struct list *list, struct arena *arena, size_t size)
{
    void *copy = arena_alloc_raw(arena, list->count, size);
    if (list->count)
        memcpy(copy, list->items, list->count * size);
    return copy;
}

static void set_limit_failure(struct profile_builder *builder, const char *what, uint64_t limit)
{
    if (builder->exceeded_name)
        return;
    builder->exceeded_name = what;
    builder->exceeded_limit = limit;
}

static void charge(struct profile_builder *builder, uint64_t bytes)
{
    builder->memory_bytes += bytes;
    if (builder->memory_bytes > builder->limits.memory_bytes)
        set_limit_failure(builder, "bytes when decoded", builder->limits.memory_bytes);
}

bool profile_builder_failed(const struct profile_builder *builder)
{
    return builder->exceeded_name || builder->is_taken;
}

/* MAP_ABSENT if the table has no such key. */
static uint32_t table_find(const struct table *table, const void *key, size_t size)
{
    return map_bytes_find(&table->by_key, span_of(key, size));
}

/* Adds a key; the caller adds the entry to table->list. */
static uint32_t table_add_key(struct profile_builder *builder, struct table *table, const void *key,
                              size_t size)
{
    if (table->list.count >= PROFILE_NONE - 1)
        set_limit_failure(builder, "entries in a table", PROFILE_NONE - 1);
    /* the copied key, and about as much for the entry */
    charge(builder, 2 * size + sizeof(struct map_bytes_slot));
    if (profile_builder_failed(builder))
        return 0;
    void *copy = arena_alloc_raw(builder->keys, size, 1);
    memcpy(copy, key, size);
    return map_bytes_add(&table->by_key, span_of(copy, size), (uint32_t)table->list.count);
}

/* ---- lifetime ---- */

struct profile_builder *profile_builder_create(const struct profile_limits *limits)
{
    struct profile_builder *builder = mem_new(struct profile_builder, 1);
    builder->limits = profile_limits_resolve(limits);
    builder->arena = arena_create();
    builder->keys = arena_create();
    builder->fields = arena_new(builder->arena, struct profile, 1);
    builder->fields->arena = builder->arena;
    struct table *const tables[] = {&builder->strings, &builder->functions, &builder->mappings,
                                    &builder->locations};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        map_bytes_init(&tables[i]->by_key, 64);
    if (getrandom(&builder->seed, sizeof(builder->seed), 0) < 0)
        builder->seed = (uintptr_t)builder;
    list_add(&builder->strings.list, struct span, span_of(NULL, 0));
    list_add(&builder->stack_start, uint64_t, 0);
    list_add(&builder->label_start, uint32_t, 0);
    return builder;
}

void profile_builder_destroy(struct profile_builder *builder)
{
    if (!builder)
        return;
    struct list *const lists[] = {
        &builder->strings.list,   &builder->functions.list, &builder->mappings.list,
        &builder->locations.list, &builder->lines,          &builder->value_types,
        &builder->comments,       &builder->stack,          &builder->stack_start,
        &builder->values,         &builder->labels,         &builder->label_start,
        &builder->hashes};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        mem_free(lists[i]->items);
    struct table *const tables[] = {&builder->strings, &builder->functions, &builder->mappings,
                                    &builder->locations};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        map_bytes_fini(&tables[i]->by_key);
    mem_free(builder->slots);
    arena_destroy(builder->keys);
    arena_destroy(builder->arena);
    mem_free(builder);
}

/* ---- tables ---- */

void profile_builder_freeze(struct profile_builder *builder, bool is_frozen)
{
    builder->is_frozen = is_frozen;
}

struct profile_builder_counts profile_builder_count(const struct profile_builder *builder)
{
    return (struct profile_builder_counts){.strings = (uint32_t)builder->strings.list.count,
                                           .functions = (uint32_t)builder->functions.list.count,
                                           .mappings = (uint32_t)builder->mappings.list.count,
                                           .locations = (uint32_t)builder->locations.list.count};
}

uint32_t profile_builder_find_string(const struct profile_builder *builder, struct span text)
{
    static_assert(MAP_ABSENT == PROFILE_NONE, "an absent key is PROFILE_NONE");
    return text.size ? table_find(&builder->strings, text.data, text.size) : 0;
}

static uint32_t long_string(struct profile_builder *builder, struct span text)
{
    arena_auto scratch = arena_create();
    uint32_t cut_count = 0;
    const size_t known_count = builder->strings.list.count;
    /* The cut text is within the limit, so profile_builder_string does not call this again. */
    const uint32_t index = profile_builder_string(
        builder, long_string_cut(scratch, text, builder->limits.string_bytes, &cut_count));
    if (builder->strings.list.count > known_count)
        builder->fields->cut_string_count += cut_count;
    return index;
}

uint32_t profile_builder_string(struct profile_builder *builder, struct span text)
{
    struct table *table = &builder->strings;
    if (text.size > builder->limits.string_bytes)
        return long_string(builder, text);
    uint32_t index = profile_builder_find_string(builder, text);
    if (index != PROFILE_NONE)
        return index;
    charge(builder, text.size + sizeof(struct span) + sizeof(struct map_bytes_slot));
    if (table->list.count >= PROFILE_NONE - 1)
        set_limit_failure(builder, "strings", PROFILE_NONE - 1);
    if (profile_builder_failed(builder))
        return 0;
    struct span copy = span_of(arena_strndup(builder->arena, text.data, text.size), text.size);
    index = (uint32_t)table->list.count;
    list_add(&table->list, struct span, copy);
    return map_bytes_add(&table->by_key, copy, index);
}

void profile_builder_add_value_type(struct profile_builder *builder, struct span type,
                                    struct span unit)
{
    assert(builder->values.count == 0);
    struct profile_value_type value_type = {.type = profile_builder_string(builder, type),
                                            .unit = profile_builder_string(builder, unit)};
    list_add(&builder->value_types, struct profile_value_type, value_type);
}

uint32_t profile_builder_function(struct profile_builder *builder,
                                  const struct profile_function *function)
{
    struct table *table = &builder->functions;
    const int64_t key[] = {function->name, function->system_name, function->filename,
                           function->start_line};
    uint32_t index = table_find(table, key, sizeof(key));
    if (index != MAP_ABSENT || builder->is_frozen)
        return index;
    index = table_add_key(builder, table, key, sizeof(key));
    if (!profile_builder_failed(builder))
        list_add(&table->list, struct profile_function, *function);
    return index;
}

uint32_t profile_builder_mapping(struct profile_builder *builder,
                                 const struct profile_mapping *mapping)
{
    struct table *table = &builder->mappings;
    uint64_t flags = (uint64_t)mapping->has_functions | (uint64_t)mapping->has_filenames << 1 |
                     (uint64_t)mapping->has_line_numbers << 2 |
                     (uint64_t)mapping->has_inline_frames << 3;
    const uint64_t key[] = {mapping->start,    mapping->limit,    mapping->offset,
                            mapping->filename, mapping->build_id, flags};
    uint32_t index = table_find(table, key, sizeof(key));
    if (index != MAP_ABSENT || builder->is_frozen)
        return index;
    index = table_add_key(builder, table, key, sizeof(key));
    if (!profile_builder_failed(builder))
        list_add(&table->list, struct profile_mapping, *mapping);
    return index;
}

/* Adds lines, except those without a function: they contain nothing, and pprof's readers reject
 * them. */
static uint32_t add_lines(struct profile_builder *builder, const struct profile_line *lines,
                          uint32_t line_count)
{
    uint32_t added = 0;
    for (uint32_t i = 0; i < line_count; i++) {
        if (lines[i].function == PROFILE_NONE)
            continue;
        list_add(&builder->lines, struct profile_line, lines[i]);
        added++;
    }
    charge(builder, added * sizeof(struct profile_line));
    if (builder->lines.count >= PROFILE_NONE)
        set_limit_failure(builder, "lines", PROFILE_NONE - 1);
    return added;
}

uint32_t profile_builder_location(struct profile_builder *builder,
                                  const struct profile_location *location,
                                  const struct profile_line *lines, uint32_t line_count)
{
    struct table *table = &builder->locations;
    int64_t few[3 + 3 * 8];
    size_t key_count = 3 + 3 * (size_t)line_count;
    int64_t *key = key_count > sizeof(few) / sizeof(few[0]) ? mem_new(int64_t, key_count) : few;
    key[0] = (int64_t)location->address;
    key[1] = location->mapping;
    key[2] = location->is_folded;
    for (uint32_t i = 0; i < line_count; i++) {
        key[3 + 3 * i] = lines[i].function;
        key[4 + 3 * i] = lines[i].line;
        key[5 + 3 * i] = lines[i].column;
    }
    uint32_t index = table_find(table, key, key_count * sizeof(*key));
    bool is_new = index == MAP_ABSENT && !builder->is_frozen;
    if (is_new)
        index = table_add_key(builder, table, key, key_count * sizeof(*key));
    if (key != few)
        mem_free(key);
    if (!is_new || profile_builder_failed(builder))
        return index;
    struct profile_location added = *location;
    added.first_line = (uint32_t)builder->lines.count;
    added.line_count = add_lines(builder, lines, line_count);
    list_add(&table->list, struct profile_location, added);
    return index;
}

void profile_builder_replace_location(struct profile_builder *builder, uint32_t location,
                                      uint64_t address, const struct profile_line *line)
{
    if (profile_builder_failed(builder))
        return;
    struct profile_location *at =
        &list_at(&builder->locations.list, struct profile_location, location);
    at->address = address;
    if (!line)
        return;
    assert(at->line_count == 1 && line->function != PROFILE_NONE);
    list_at(&builder->lines, struct profile_line, at->first_line) = *line;
}

uint32_t profile_builder_frame(struct profile_builder *builder,
                               const struct profile_builder_frame *frame)
{
    struct profile_location location = {.address = frame->address, .mapping = PROFILE_NONE};
    if (frame->mapping.size) {
        struct profile_mapping mapping = {.filename =
                                              profile_builder_string(builder, frame->mapping),
                                          .has_functions = !frame->is_not_symbolised};
        location.mapping = profile_builder_mapping(builder, &mapping);
    }
    if (frame->is_not_symbolised)
        return profile_builder_location(builder, &location, NULL, 0);
    struct profile_function function = {.name = profile_builder_string(builder, frame->name),
                                        .system_name = profile_builder_string(builder, frame->name),
                                        .filename =
                                            profile_builder_string(builder, frame->filename),
                                        .start_line = frame->start_line};
    struct profile_line line = {.function = profile_builder_function(builder, &function),
                                .line = frame->line,
                                .column = frame->column};
    return profile_builder_location(builder, &location, &line, 1);
}

/* ---- samples ---- */

static bool is_same_sample(const struct profile_builder *builder, uint32_t sample,
                           const uint32_t *stack, size_t depth, const struct profile_label *labels,
                           size_t label_count)
{
    uint64_t start = list_at(&builder->stack_start, uint64_t, sample);
    uint64_t end = list_at(&builder->stack_start, uint64_t, sample + 1);
    uint32_t first = list_at(&builder->label_start, uint32_t, sample);
    uint32_t last = list_at(&builder->label_start, uint32_t, sample + 1);
    if (end - start != depth || last - first != label_count)
        return false;
    if (depth && memcmp(&list_at(&builder->stack, uint32_t, start), stack, depth * sizeof(*stack)))
        return false;
    return !label_count || !memcmp(&list_at(&builder->labels, struct profile_label, first), labels,
                                   label_count * sizeof(*labels));
}

/* If equal samples are not joined because their sum would overflow, only the last one has a slot.
 * Slots for all of them would form one long run, and each growth would take the square of their
 * number. */
static void grow_sample_slots(struct profile_builder *builder)
{
    const uint64_t before = builder->slot_count;
    uint32_t *old = builder->slots;
    builder->slot_count = before ? before * 2 : 1024;
    builder->slots = mem_resize(NULL, (size_t)builder->slot_count, sizeof(*builder->slots));
    memset(builder->slots, 0xff, (size_t)builder->slot_count * sizeof(*builder->slots));
    const uint64_t mask = builder->slot_count - 1;
    for (uint64_t i = 0; i < before; i++) {
        if (old[i] == PROFILE_NONE)
            continue;
        uint64_t at = list_at(&builder->hashes, uint64_t, old[i]) & mask;
        while (builder->slots[at] != PROFILE_NONE)
            at = (at + 1) & mask;
        builder->slots[at] = old[i];
    }
    mem_free(old);
}

/* The slot of an equal sample, or the free slot where it belongs. */
static uint32_t *find_sample_slot(const struct profile_builder *builder, uint64_t hash,
                                  const uint32_t *stack, size_t depth,
                                  const struct profile_label *labels, size_t label_count)
{
    uint64_t mask = builder->slot_count - 1;
    for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
        uint32_t sample = builder->slots[at];
        if (sample == PROFILE_NONE ||
            (list_at(&builder->hashes, uint64_t, sample) == hash &&
             is_same_sample(builder, sample, stack, depth, labels, label_count)))
            return &builder->slots[at];
    }
}

/* Adds values to a sample. Returns false without a change if a sum would overflow int64. */
static bool add_values(struct profile_builder *builder, uint32_t sample, const int64_t *values)
{
    size_t count = builder->value_types.count;
    int64_t *sums = &list_at(&builder->values, int64_t, sample * count), sum;
    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(sums[i], values[i], &sum))
            return false;
    for (size_t i = 0; i < count; i++)
        sums[i] += values[i];
    return true;
}

static void check_sample(struct profile_builder *builder, size_t depth, size_t label_count)
{
    const struct profile_limits *limits = &builder->limits;
    if (builder->hashes.count >= limits->sample_count)
        set_limit_failure(builder, "samples", limits->sample_count);
    if (builder->stack.count + depth > limits->stack_entries)
        set_limit_failure(builder, "stack entries", limits->stack_entries);
    if (builder->labels.count + label_count >= PROFILE_NONE)
        set_limit_failure(builder, "labels", PROFILE_NONE - 1);
    charge(builder, depth * sizeof(uint32_t) + label_count * sizeof(struct profile_label) +
                        SAMPLE_OVERHEAD_BYTES + builder->value_types.count * sizeof(int64_t));
}

static void append_sample(struct profile_builder *builder, uint64_t hash, const uint32_t *stack,
                          size_t depth, const int64_t *values, const struct profile_label *labels,
                          size_t label_count)
{
    size_t value_count = builder->value_types.count;
    void *to = list_grow(&builder->stack, depth, sizeof(*stack));
    if (depth)
        memcpy(to, stack, depth * sizeof(*stack));
    memcpy(list_grow(&builder->values, value_count, sizeof(*values)), values,
           value_count * sizeof(*values));
    to = list_grow(&builder->labels, label_count, sizeof(*labels));
    if (label_count)
        memcpy(to, labels, label_count * sizeof(*labels));
    list_add(&builder->stack_start, uint64_t, builder->stack.count);
    list_add(&builder->label_start, uint32_t, (uint32_t)builder->labels.count);
    list_add(&builder->hashes, uint64_t, hash);
}

/* Labels are compared as bytes, so padding and unused members must be zero. */
static struct profile_label clean_label(const struct profile_label *label)
{
    struct profile_label clean;
    memset(&clean, 0, sizeof(clean));
    clean.key = label->key;
    clean.is_numeric = label->is_numeric;
    clean.text = label->is_numeric ? 0 : label->text;
    clean.number = label->is_numeric ? label->number : 0;
    clean.unit = label->is_numeric ? label->unit : 0;
    return clean;
}

static void add_clean_sample(struct profile_builder *builder, const uint32_t *stack, size_t depth,
                             const int64_t *values, const struct profile_label *labels,
                             size_t label_count)
{
    if (builder->hashes.count * 2 >= builder->slot_count)
        grow_sample_slots(builder);
    uint64_t hash = XXH3_64bits_withSeed(stack, depth * sizeof(*stack), builder->seed);
    if (label_count)
        hash = XXH3_64bits_withSeed(labels, label_count * sizeof(*labels), hash);
    uint32_t *slot = find_sample_slot(builder, hash, stack, depth, labels, label_count);
    if (*slot != PROFILE_NONE && add_values(builder, *slot, values))
        return;
    check_sample(builder, depth, label_count);
    if (profile_builder_failed(builder))
        return;
    *slot = (uint32_t)builder->hashes.count;
    append_sample(builder, hash, stack, depth, values, labels, label_count);
}

void profile_builder_add_sample(struct profile_builder *builder, const uint32_t *stack,
                                size_t depth, const int64_t *values,
                                const struct profile_label *labels, size_t label_count)
{
    assert(builder->value_types.count > 0);
    if (depth > builder->limits.stack_depth)
        set_limit_failure(builder, "frames in one stack", builder->limits.stack_depth);
    if (profile_builder_failed(builder))
        return;
    if (label_count == 0) {
        add_clean_sample(builder, stack, depth, values, NULL, 0);
        return;
    }
    struct profile_label few[16];
    struct profile_label *clean =
        label_count > 16 ? mem_new(struct profile_label, label_count) : few;
    for (size_t i = 0; i < label_count; i++) {
        struct profile_label label = clean_label(&labels[i]);
        memcpy(&clean[i], &label, sizeof(label));
    }
    add_clean_sample(builder, stack, depth, values, clean, label_count);
    if (clean != few)
        mem_free(clean);
}

void profile_builder_count_entries(struct profile_builder *builder, uint64_t count)
{
    builder->followed_entries += count;
    if (builder->followed_entries > builder->limits.stack_entries)
        set_limit_failure(builder, "stack entries", builder->limits.stack_entries);
}

void profile_builder_add_comment(struct profile_builder *builder, struct span comment)
{
    charge(builder, sizeof(uint32_t));
    uint32_t string = profile_builder_string(builder, comment);
    if (!profile_builder_failed(builder))
        list_add(&builder->comments, uint32_t, string);
}

void profile_builder_note_skipped(struct profile_builder *builder, size_t line_count,
                                  const char *why)
{
    char text[160];
    if (line_count == 0)
        return;
    snprintf(text, sizeof(text), "%zu line%s skipped: %s", line_count,
             line_count == 1 ? " was" : "s were", why);
    profile_builder_add_comment(builder, span_text(text));
    builder->fields->warning = profile_builder_string(builder, span_text(text));
}

struct profile *profile_builder_fields(struct profile_builder *builder)
{
    return builder->fields;
}

/* ---- finishing ---- */

static void fill_profile(struct profile_builder *builder, struct profile *profile)
{
    struct arena *arena = builder->arena;
    profile->string_count = (uint32_t)builder->strings.list.count;
    profile->strings = list_take(&builder->strings.list, arena, sizeof(struct span));
    profile->value_type_count = (uint32_t)builder->value_types.count;
    profile->value_types =
        list_take(&builder->value_types, arena, sizeof(struct profile_value_type));
    profile->mapping_count = (uint32_t)builder->mappings.list.count;
    profile->mappings = list_take(&builder->mappings.list, arena, sizeof(struct profile_mapping));
    profile->function_count = (uint32_t)builder->functions.list.count;
    profile->functions =
        list_take(&builder->functions.list, arena, sizeof(struct profile_function));
    profile->line_count = (uint32_t)builder->lines.count;
    profile->lines = list_take(&builder->lines, arena, sizeof(struct profile_line));
    profile->location_count = (uint32_t)builder->locations.list.count;
    profile->locations =
        list_take(&builder->locations.list, arena, sizeof(struct profile_location));
    profile->comment_count = (uint32_t)builder->comments.count;
    profile->comments = list_take(&builder->comments, arena, sizeof(uint32_t));
    profile->sample_count = (uint32_t)builder->hashes.count;
    profile->stack_start = list_take(&builder->stack_start, arena, sizeof(uint64_t));
    profile->stack = list_take(&builder->stack, arena, sizeof(uint32_t));
    profile->values = list_take(&builder->values, arena, sizeof(int64_t));
    profile->label_start = list_take(&builder->label_start, arena, sizeof(uint32_t));
    profile->labels = list_take(&builder->labels, arena, sizeof(struct profile_label));
}

enum err_code profile_builder_take(struct profile_builder *builder, struct profile **ret_profile,
                                   struct err *err)
{
    if (builder->is_taken)
        return err_set(err, ERR_TOO_LARGE, "the profile was taken from its builder already");
    if (profile_builder_failed(builder))
        return err_set(err, ERR_TOO_LARGE, "the profile has more %s than the limit, %" PRIu64,
                       builder->exceeded_name, builder->exceeded_limit);
    if (builder->value_types.count == 0)
        return err_set(err, ERR_INVALID, "the profile has no sample type");
    struct profile *profile = builder->fields;
    fill_profile(builder, profile);
    builder->arena = NULL;
    builder->fields = NULL;
    builder->is_taken = true;
    *ret_profile = profile;
    return ERR_NONE;
}
