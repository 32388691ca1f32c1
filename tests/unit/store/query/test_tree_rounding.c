/* Random stacks of few frames: the sum of each subtree is compared with the exact one. */
#include "tests/unit/store/random_batch.h"
#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "lib/profile/profile_builder.h"
#include "store/query/tree_rounding.h"

enum {
    NAMES = 4,
    DEPTH = 4,
    PATHS = (1 + NAMES) * (1 + NAMES) * (1 + NAMES) * (1 + NAMES),
    BITS = 20
};

/* For each path of at most DEPTH frames from the root, the sum of all stacks that begin with it. A
 * path is a number to the base NAMES + 1, in which a frame is the index of its name plus 1. */
struct sums {
    int64_t of[PATHS];
};

static uint32_t make_location(struct profile_builder *builder, uint32_t number)
{
    const char name[] = {(char)('d' - number), '\0'}; /* not in the order of the numbers */
    const struct profile_function function = {
        .name = profile_builder_string(builder, span_of(name, 1))};
    const struct profile_line line = {.function = profile_builder_function(builder, &function)};
    const struct profile_location place = {.address = number + 1, .mapping = PROFILE_NONE};
    return profile_builder_location(builder, &place, &line, 1);
}

/* A profile of 200 random stacks, some of which are equal, with values from 1 to most. */
static struct profile *make(uint64_t *seed, int64_t most)
{
    struct profile_builder *builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    uint32_t locations[NAMES], stack[DEPTH];
    for (uint32_t i = 0; i < NAMES; i++)
        locations[i] = make_location(builder, i);
    for (int i = 0; i < 200; i++) {
        const uint32_t depth = 1 + random_below(seed, DEPTH);
        for (uint32_t j = 0; j < depth; j++)
            stack[j] = locations[random_below(seed, NAMES)];
        const int64_t value = (int64_t)(random_next(seed) >> 1) % most + 1;
        profile_builder_add_sample(builder, stack, depth, &value, NULL, 0);
    }
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(builder);
    return profile;
}

static struct sums add_up(const struct profile *profile, const int64_t *values)
{
    struct sums sums = {{0}};
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        uint32_t path = 0;
        sums.of[path] += values[i];
        for (uint64_t j = profile->stack_start[i + 1]; j-- > profile->stack_start[i];) {
            path = path * (NAMES + 1) + 1 + profile->stack[j];
            sums.of[path] += values[i];
        }
    }
    return sums;
}

static void sums_of_subtrees_are_right(void **state)
{
    (void)state;
    uint64_t seed = 20261129;
    for (int round = 0; round < 200; round++) {
        struct err err;
        const int64_t unit = 1 << BITS;
        struct profile *profile = make(&seed, round % 2 ? unit / 4 : 5 * unit);
        const bool has_starts = round % 4 >= 2;
        int64_t *starts = mem_new(int64_t, profile->sample_count);
        for (uint32_t i = 0; i < profile->sample_count; i++)
            starts[i] = has_starts ? profile->values[i] / 3 : 0;
        const struct sums scaled = add_up(profile, profile->values),
                          before = add_up(profile, starts);
        assert_int_equal(tree_rounding_apply(profile, has_starts ? starts : NULL, BITS, 0, &err),
                         ERR_NONE);
        const struct sums rounded = add_up(profile, profile->values);
        for (uint32_t i = 0; i < PATHS; i++) {
            const int64_t error = rounded.of[i] * unit - (scaled.of[i] - before.of[i]);
            const int64_t most = (i || has_starts ? unit : unit / 2) * (has_starts && i ? 2 : 1);
            assert_in_range(llabs(error), 0, most + 1);
        }
        for (uint32_t i = 0; i < profile->sample_count; i++)
            assert_true(profile->values[i] != 0);
        mem_free(starts);
        profile_destroy(profile);
    }
}

static void whole_values_are_unchanged(void **state)
{
    (void)state;
    uint64_t seed = 7;
    struct err err;
    struct profile *profile = make(&seed, 5);
    int64_t values[200];
    const uint32_t count = profile->sample_count;
    for (uint32_t i = 0; i < count; i++)
        values[i] = profile->values[i];
    int64_t *scaled = arena_new(profile->arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++)
        scaled[i] = values[i] << BITS;
    profile->values = scaled;
    assert_int_equal(tree_rounding_apply(profile, NULL, BITS, 0, &err), ERR_NONE);
    assert_int_equal(profile->sample_count, count);
    assert_memory_equal(profile->values, values, count * sizeof(*values));
    profile_destroy(profile);
}

/* Two stacks of 65,536 frames with 50,000 inlined calls each: 26 GB if they were not cut. */
static void stacks_of_inlined_calls_are_cut(void **state)
{
    enum { LINES = 50000, FRAMES = 65536 };
    (void)state;
    struct err err;
    struct profile_builder *builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    const struct profile_function function = {
        .name = profile_builder_string(builder, SPAN_LITERAL("f"))};
    const uint32_t number = profile_builder_function(builder, &function);
    struct profile_line *lines = mem_new(struct profile_line, LINES);
    uint32_t *stack = mem_new(uint32_t, FRAMES);
    for (uint32_t i = 0; i < LINES; i++)
        lines[i] = (struct profile_line){.function = number, .line = i};
    const struct profile_location place = {.address = 1, .mapping = PROFILE_NONE};
    const uint32_t location = profile_builder_location(builder, &place, lines, LINES);
    for (uint32_t i = 0; i < FRAMES; i++)
        stack[i] = location;
    const int64_t value = INT64_C(3) << (BITS - 1);
    profile_builder_add_sample(builder, stack, FRAMES, &value, NULL, 0);
    profile_builder_add_sample(builder, stack, FRAMES - 1, &value, NULL, 0);
    struct profile *profile;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(builder);
    assert_in_range(tree_rounding_memory(profile), 1, 128 << 20);
    assert_int_equal(tree_rounding_apply(profile, NULL, BITS, 0, &err), ERR_NONE);
    assert_int_equal(profile->sample_count, 2);
    assert_int_equal(profile->values[0] + profile->values[1], 3);
    profile_destroy(profile);
    mem_free(lines);
    mem_free(stack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_subtrees_are_right),
        cmocka_unit_test(whole_values_are_unchanged),
        cmocka_unit_test(stacks_of_inlined_calls_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
