#include "store/query/stack_union.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/profile_builder.h"
#include "store/block/block_read.h"
#include "store/query/row_labels.h"

#include <string.h>

enum { NO_LOCATION = 0 };

/* Where a stack occurred first. */
struct origin {
    uint32_t block;
    uint32_t stack;
    uint32_t group;
};

struct stack_union {
    struct stack_hash_set set;
    struct origin *origins;
    int64_t *sums; /* one per stack */
    uint32_t origin_capacity;
    uint32_t sum_capacity;
    int64_t *starts; /* the second numbers; those beyond start_capacity are 0 */
    uint32_t start_capacity;
    const struct block **blocks;  /* each once */
    struct map_u64 block_numbers; /* by address */
    uint32_t last_block;
    uint32_t block_count;
    uint32_t block_capacity;
};

struct stack_union *stack_union_create(void)
{
    struct stack_union *stacks = mem_new(struct stack_union, 1);
    stack_hash_set_init(&stacks->set);
    return stacks;
}

void stack_union_destroy(struct stack_union *stacks)
{
    if (!stacks)
        return;
    stack_hash_set_fini(&stacks->set);
    mem_free(stacks->origins);
    mem_free(stacks->sums);
    mem_free(stacks->starts);
    mem_free(stacks->blocks);
    map_u64_fini(&stacks->block_numbers);
    mem_free(stacks);
}

/* A query that goes series by series adds the same blocks again and again. */
static uint32_t number_of_block(struct stack_union *stacks, const struct block *block)
{
    if (stacks->block_count && stacks->blocks[stacks->last_block] == block)
        return stacks->last_block;
    stacks->last_block = map_u64_add(&stacks->block_numbers, (uintptr_t)block, stacks->block_count);
    if (stacks->last_block < stacks->block_count)
        return stacks->last_block;
    vec_reserve(stacks->blocks, stacks->block_capacity, stacks->block_count + 1);
    stacks->blocks[stacks->block_count] = block;
    return stacks->block_count++;
}

static void add_stack(struct stack_union *stacks, const struct origin *origin)
{
    vec_reserve(stacks->origins, stacks->origin_capacity, stacks->set.count);
    vec_reserve(stacks->sums, stacks->sum_capacity, stacks->set.count);
    const uint32_t number = stacks->set.count - 1;
    stacks->origins[number] = *origin;
    stacks->sums[number] = 0;
}

/* Mixes the group into a hash. The seed of the hashes is secret, so collisions cannot be provoked.
 * Group 0 leaves a hash unchanged. */
static struct stack_hash hash_in_group(struct stack_hash hash, uint32_t group)
{
    return (struct stack_hash){.low = hash.low ^ group * UINT64_C(0x9e3779b97f4a7c15),
                               .high = hash.high ^ group * UINT64_C(0xc2b2ae3d27d4eb4f)};
}

static uint32_t number_stack(struct stack_union *stacks, struct stack_hash hash,
                             const struct origin *origin)
{
    const uint32_t before = stacks->set.count;
    const uint32_t number = stack_hash_set_add(&stacks->set, hash_in_group(hash, origin->group));
    if (number == before)
        add_stack(stacks, origin);
    return number;
}

void stack_union_add(struct stack_union *stacks, const struct block *block, const int64_t *sums,
                     uint32_t group)
{
    const struct stack_hash *hashes = block_hashes(block)->stacks;
    const uint32_t count = block_dictionary(block)->stacks.stack_count;
    struct origin origin = {.block = number_of_block(stacks, block), .group = group};
    for (uint32_t i = 0; i < count; i++) {
        if (!sums[i])
            continue;
        origin.stack = i;
        const uint32_t number = number_stack(stacks, hashes[i], &origin);
        stacks->sums[number] += sums[i];
    }
}

uint32_t stack_union_number(struct stack_union *stacks, const struct block *block, uint32_t stack,
                            uint32_t group)
{
    const struct origin origin = {
        .block = number_of_block(stacks, block), .stack = stack, .group = group};
    return number_stack(stacks, block_hashes(block)->stacks[stack], &origin);
}

uint32_t stack_union_count(const struct stack_union *stacks)
{
    return stacks->set.count;
}

size_t stack_union_memory(const struct stack_union *stacks)
{
    return stacks->set.capacity * (sizeof(struct stack_hash) + 2 * sizeof(uint32_t)) +
           stacks->origin_capacity * sizeof(struct origin) +
           stacks->sum_capacity * sizeof(int64_t) + stacks->start_capacity * sizeof(int64_t) +
           stacks->block_capacity * sizeof(struct block *) +
           stacks->block_numbers.capacity * sizeof(struct map_u64_slot);
}

int64_t *stack_union_sum(struct stack_union *stacks, uint32_t stack)
{
    return &stacks->sums[stack];
}

int64_t *stack_union_start(struct stack_union *stacks, uint32_t stack)
{
    vec_reserve_zeroed(stacks->starts, stacks->start_capacity, (size_t)stack + 1);
    return &stacks->starts[stack];
}

/* ---- as a profile ---- */

static int64_t start_of(const struct stack_union *stacks, uint32_t stack)
{
    return stack < stacks->start_capacity ? stacks->starts[stack] : 0;
}

uint32_t stack_union_left_out(const struct stack_union *stacks, int64_t *ret_sum,
                              int64_t *ret_start)
{
    uint32_t count = stacks->set.count;
    *ret_sum = *ret_start = 0;
    for (uint32_t i = 0; i < stacks->set.count; i++) {
        if (row_labels_stays(stacks->origins[i].group))
            continue;
        count--;
        if (stacks->origins[i].group != ROW_LABELS_LEFT_OUT)
            continue;
        *ret_sum = stacks->sums[i];
        *ret_start = start_of(stacks, i);
    }
    return count;
}

static bool is_sample(const struct stack_union *stacks, uint32_t stack)
{
    return row_labels_stays(stacks->origins[stack].group) &&
           (stacks->sums[stack] || start_of(stacks, stack));
}

/* Tables of one block that were copied into the profile: numbers there, plus 1; 0: not copied. */
struct block_tables {
    uint32_t *strings;
    uint32_t *locations;
    uint32_t *functions;
    uint32_t *mappings;
};

struct profile_build {
    struct stack_union *stacks;
    struct profile_builder *builder;
    struct arena *scratch;
    struct block_tables *block_tables; /* per block */
    struct stack_hash_set frames;
    uint32_t *location_of_frame; /* by number in frames */
    uint32_t frame_capacity;
    struct map_u64 group_labels; /* by group of labels: the first index of its labels */
};

static uint32_t copy_string(struct profile_build *profile_build, struct block_tables *block_tables,
                            const struct profile *tables, uint32_t string)
{
    if (!block_tables->strings[string])
        block_tables->strings[string] =
            profile_builder_string(profile_build->builder, tables->strings[string]) + 1;
    return block_tables->strings[string] - 1;
}

static uint32_t copy_function(struct profile_build *profile_build,
                              struct block_tables *block_tables, const struct profile *tables,
                              uint32_t index)
{
    if (index == PROFILE_NONE)
        return PROFILE_NONE;
    if (!block_tables->functions[index]) {
        struct profile_function function = tables->functions[index];
        function.name = copy_string(profile_build, block_tables, tables, function.name);
        function.system_name =
            copy_string(profile_build, block_tables, tables, function.system_name);
        function.filename = copy_string(profile_build, block_tables, tables, function.filename);
        block_tables->functions[index] =
            profile_builder_function(profile_build->builder, &function) + 1;
    }
    return block_tables->functions[index] - 1;
}

static uint32_t copy_mapping(struct profile_build *profile_build, struct block_tables *block_tables,
                             const struct profile *tables, uint32_t index)
{
    if (index == PROFILE_NONE)
        return PROFILE_NONE;
    if (!block_tables->mappings[index]) {
        struct profile_mapping mapping = tables->mappings[index];
        mapping.filename = copy_string(profile_build, block_tables, tables, mapping.filename);
        mapping.build_id = copy_string(profile_build, block_tables, tables, mapping.build_id);
        block_tables->mappings[index] =
            profile_builder_mapping(profile_build->builder, &mapping) + 1;
    }
    return block_tables->mappings[index] - 1;
}

static uint32_t make_location(struct profile_build *profile_build,
                              struct block_tables *block_tables, const struct profile *tables,
                              uint32_t index)
{
    enum { FEW = 16 };
    struct profile_location location = tables->locations[index];
    struct profile_line few[FEW];
    struct profile_line *lines =
        location.line_count <= FEW
            ? few
            : arena_new_raw(profile_build->scratch, struct profile_line, location.line_count);
    location.mapping = copy_mapping(profile_build, block_tables, tables, location.mapping);
    for (uint32_t i = 0; i < location.line_count; i++) {
        lines[i] = tables->lines[location.first_line + i];
        lines[i].function = copy_function(profile_build, block_tables, tables, lines[i].function);
    }
    return profile_builder_location(profile_build->builder, &location, lines, location.line_count);
}

/* Allocates a block's tables at first use: most blocks contribute no new stack. */
static void begin_block(struct profile_build *profile_build, uint32_t block_number)
{
    const struct block *block = profile_build->stacks->blocks[block_number];
    const struct profile *tables = block_dictionary(block)->tables;
    profile_build->block_tables[block_number] = (struct block_tables){
        .strings = arena_new(profile_build->scratch, uint32_t, tables->string_count),
        .locations = arena_new(profile_build->scratch, uint32_t, tables->location_count),
        .functions = arena_new(profile_build->scratch, uint32_t, tables->function_count),
        .mappings = arena_new(profile_build->scratch, uint32_t, tables->mapping_count),
    };
}

/* Copies a frame; frames with equal hashes, of whichever block, are one location. Returns its
 * number plus 1. */
static uint32_t copy_location(struct profile_build *profile_build, uint32_t block_number,
                              uint32_t index)
{
    struct block_tables *block_tables = &profile_build->block_tables[block_number];
    const struct block *block = profile_build->stacks->blocks[block_number];
    const uint32_t before = profile_build->frames.count;
    const uint32_t number =
        stack_hash_set_add(&profile_build->frames, block_hashes(block)->frames[index]);
    if (number == before) {
        vec_reserve(profile_build->location_of_frame, profile_build->frame_capacity,
                    profile_build->frames.count);
        profile_build->location_of_frame[number] =
            make_location(profile_build, block_tables, block_dictionary(block)->tables, index);
    }
    return block_tables->locations[index] = profile_build->location_of_frame[number] + 1;
}

/* The stack that was copied last; it ends at `node` of its block's tree. */
struct last_stack {
    const struct stacks *tree; /* NULL: none */
    uint32_t node;
};

/*
 * Appends the frames of a stack, leaf first, and returns the position after them.
 *
 * In preorder, the callers that two stacks share are those callers of the later one whose node is
 * not after the end of the earlier one. So when the stack before was of the same tree and ends at
 * an earlier node `common`, the new frames are those of nodes after `common`, and the rest is
 * copied from the end of the stack before.
 *
 * Example: nodes 1 main, 2 a, 3 b, 4 c (called by a). Stack b-a-main ends at node 3, then c-a-main
 * at node 4. Only node 4 is after node 3; its caller is node 2 with depth 2, so c is appended and
 * the last two frames of the stack before, a and main, are copied.
 */
static uint64_t copy_stack(struct profile_build *profile_build, const struct origin *origin,
                           struct last_stack *last, uint32_t *stack, uint64_t at)
{
    const struct stacks *tree =
        &block_dictionary(profile_build->stacks->blocks[origin->block])->stacks;
    if (!profile_build->block_tables[origin->block].locations)
        begin_block(profile_build, origin->block);
    const uint32_t *block_tables = profile_build->block_tables[origin->block].locations;
    const uint64_t begin = at;
    struct stack_position position = tree->ends[origin->stack];
    const uint32_t common = last->tree == tree && last->node < position.node ? last->node : 0;
    *last = (struct last_stack){.tree = tree, .node = position.node};
    while (position.node > common) {
        const struct stack_chain *chain = &tree->chains[position.chain];
        const uint32_t first = chain->first > common ? chain->first : common + 1;
        for (; position.node >= first; position.node--) {
            const uint32_t frame = tree->frames[position.node], known = block_tables[frame];
            stack[at++] = (known ? known : copy_location(profile_build, origin->block, frame)) - 1;
        }
        if (position.node < chain->first)
            position = chain->caller;
    }
    if (position.node != STACKS_ROOT) {
        const struct stack_chain *chain = &tree->chains[position.chain];
        const uint32_t depth = chain->depth + (position.node - chain->first);
        memcpy(stack + at, stack + begin - depth, depth * sizeof(*stack));
        at += depth;
    }
    return at;
}

/* Samples of the finished profile. */
struct samples {
    uint32_t count;
    uint64_t entry_count;
    uint64_t *starts;
    uint32_t *stack;
    int64_t *values;
    int64_t *starts_of_values; /* the second numbers, or NULL */
    uint64_t label_count;
    uint32_t *label_starts;
    struct profile_label *labels;
};

static const struct stacks *stacks_of(const struct stack_union *stacks, uint32_t number)
{
    return &block_dictionary(stacks->blocks[stacks->origins[number].block])->stacks;
}

static void count_samples(struct stack_union *stacks, const struct row_labels *labels,
                          struct samples *samples)
{
    uint32_t label_count;
    for (uint32_t i = 0; i < stacks->set.count; i++) {
        if (!is_sample(stacks, i))
            continue;
        const struct stacks *tree = stacks_of(stacks, i);
        samples->count++;
        samples->entry_count += stacks_depth(tree, stacks->origins[i].stack);
        row_labels_get(labels, stacks->origins[i].group, &label_count);
        samples->label_count += label_count;
    }
}

static size_t memory_of_samples(const struct samples *samples)
{
    return samples->entry_count * sizeof(*samples->stack) +
           samples->label_count * sizeof(*samples->labels) +
           samples->count * (sizeof(*samples->starts) + 2 * sizeof(*samples->values) +
                             sizeof(*samples->label_starts));
}

/* Fills in the labels of a group from place `at` of all labels on, and returns their number. The
 * texts are looked up for its first sample only: they may have 16 KiB each. */
static uint32_t fill_labels(struct profile_build *profile_build, const struct row_labels *labels,
                            uint32_t group, struct profile_label *all, uint32_t at)
{
    uint32_t count;
    const struct label_words *words = row_labels_get(labels, group, &count);
    const uint32_t first = map_u64_add(&profile_build->group_labels, group, at);
    struct profile_label *labels_of_group = all + at;
    if (first != at) {
        memcpy(labels_of_group, all + first, count * sizeof(*labels_of_group));
        return count;
    }
    for (uint32_t i = 0; i < count; i++)
        labels_of_group[i] = (struct profile_label){
            .key = profile_builder_string(profile_build->builder, words[i].key),
            .text = profile_builder_string(profile_build->builder, words[i].text),
            .number = words[i].number,
            .unit = profile_builder_string(profile_build->builder, words[i].unit),
            .is_numeric = words[i].is_numeric,
        };
    return count;
}

static void fill_samples(struct profile_build *profile_build, struct arena *arena,
                         const struct row_labels *labels, struct samples *samples)
{
    struct stack_union *stacks = profile_build->stacks;
    samples->starts = arena_new_raw(arena, uint64_t, samples->count + (size_t)1);
    samples->stack = arena_new_raw(arena, uint32_t, samples->entry_count);
    samples->values = arena_new_raw(arena, int64_t, samples->count);
    if (stacks->start_capacity)
        samples->starts_of_values = arena_new_raw(arena, int64_t, samples->count);
    samples->label_starts = arena_new(arena, uint32_t, samples->count + (size_t)1);
    samples->labels = arena_new_raw(arena, struct profile_label, samples->label_count);
    uint64_t at = 0;
    uint32_t count = 0, label_at = 0;
    struct last_stack last = {0};
    for (uint32_t i = 0; i < stacks->set.count; i++) {
        if (!is_sample(stacks, i))
            continue;
        samples->starts[count] = at;
        label_at +=
            fill_labels(profile_build, labels, stacks->origins[i].group, samples->labels, label_at);
        if (samples->starts_of_values)
            samples->starts_of_values[count] = start_of(stacks, i);
        samples->values[count++] = stacks->sums[i];
        samples->label_starts[count] = label_at;
        at = copy_stack(profile_build, &stacks->origins[i], &last, samples->stack, at);
    }
    samples->starts[count] = at;
}

static void set_fields(struct profile_build *profile_build, const struct stack_union_type *type)
{
    struct profile *fields = profile_builder_fields(profile_build->builder);
    profile_builder_add_value_type(profile_build->builder, span_text(type->sample_type),
                                   span_text(type->sample_unit));
    fields->period_type.type =
        profile_builder_string(profile_build->builder, span_text(type->period_type));
    fields->period_type.unit =
        profile_builder_string(profile_build->builder, span_text(type->period_unit));
    fields->period = type->period;
    fields->time_ns = type->time_ns;
    fields->duration_ns = type->duration_ns;
}

enum err_code stack_union_profile(struct stack_union *stacks, const struct stack_union_type *type,
                                  struct profile **ret_profile, const int64_t **ret_starts,
                                  struct err *err)
{
    arena_auto scratch = arena_create();
    profile_builder_auto builder = profile_builder_create(NULL);
    struct profile_build profile_build = {.stacks = stacks, .builder = builder, .scratch = scratch};
    struct arena *arena = profile_builder_fields(builder)->arena;
    struct samples samples = {0};
    stack_hash_set_init(&profile_build.frames);
    profile_build.block_tables = arena_new(scratch, struct block_tables, stacks->block_count);
    set_fields(&profile_build, type);
    count_samples(stacks, type->labels, &samples);
    if (samples.label_count > UINT32_MAX) {
        stack_hash_set_fini(&profile_build.frames);
        return err_set(err, ERR_TOO_LARGE, "samples have more than %u labels: group by fewer",
                       UINT32_MAX);
    }
    enum err_code code = type->check_memory
                             ? type->check_memory(type->check_context, memory_of_samples(&samples))
                             : ERR_NONE;
    if (code) {
        stack_hash_set_fini(&profile_build.frames);
        return code;
    }
    fill_samples(&profile_build, arena, type->labels, &samples);
    stack_hash_set_fini(&profile_build.frames);
    map_u64_fini(&profile_build.group_labels);
    mem_free(profile_build.location_of_frame);
    struct profile *profile;
    code = profile_builder_take(builder, &profile, err);
    if (code)
        return code;
    /* The builder would intern each sample; these are distinct already. */
    profile->sample_count = samples.count;
    profile->stack_start = samples.starts;
    profile->stack = samples.stack;
    profile->values = samples.values;
    profile->label_start = samples.label_starts;
    profile->labels = samples.labels;
    *ret_profile = profile;
    *ret_starts = samples.starts_of_values;
    return ERR_NONE;
}
