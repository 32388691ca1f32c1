/* Profiles of a series with equal times are one snapshot, whatever their parts, order and blocks.
 * */
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "store/block/block_read.h"
#include "store/query/stack_union.h"
#include "store/values/counter_increase.h"
#include "tests/unit/store/random_batch.h"
#include "tests/unit/test.h"

enum { STACKS = 6, PARTS_MAX = 64 };

/* One profile, in its own block: a number for each stack but the empty one, 0 for none. */
struct part {
    int64_t time_ns;
    int64_t values[STACKS];
    struct buf bytes;
    struct span span;
    struct block *block;
};

static const int64_t begin_ns = INT64_C(1790000000) / 3600 * 3600 * 1000000000;

static void open_part(struct part *part)
{
    static const struct batch_label_set none;
    struct span strings[] = {span_text(""), span_text("memory"), span_text("alloc_objects"),
                             span_text("count")};
    const struct batch_series series = {.type = {.name = 1, .sample_type = {.type = 2, .unit = 3}}};
    struct profile_location locations[STACKS];
    uint64_t starts[STACKS + 1];
    uint32_t stack[STACKS];
    struct batch_sample samples[STACKS];
    uint32_t count = 0;
    starts[0] = 0;
    for (uint32_t i = 0; i < STACKS; i++) {
        locations[i] = (struct profile_location){.address = i, .mapping = PROFILE_NONE};
        starts[i + 1] = i; /* stack 0 is the empty one */
        if (i)
            stack[i - 1] = i;
        if (i && part->values[i])
            samples[count++] = (struct batch_sample){.stack = i, .value = part->values[i]};
    }
    arena_auto arena = arena_create();
    struct profile tables = {.arena = arena,
                             .strings = strings,
                             .string_count = 4,
                             .locations = locations,
                             .location_count = STACKS};
    const struct batch_profile profile = {.sample_count = count, .time_ns = part->time_ns};
    const struct batch batch = {.arena = arena,
                                .tables = &tables,
                                .stack_count = STACKS,
                                .stack_start = starts,
                                .stack = stack,
                                .label_sets = &none,
                                .label_set_count = 1,
                                .series = &series,
                                .series_count = 1,
                                .profiles = &profile,
                                .profile_count = 1,
                                .samples = samples,
                                .sample_count = count};
    struct block_summary summary;
    struct err err;
    buf_init(&part->bytes, 1 << 20);
    assert_int_equal(block_write_batch(&batch, 1, 0, &part->bytes, &summary, &err), ERR_NONE);
    part->span = buf_span(&part->bytes);
    assert_int_equal(block_open(block_source_memory(&part->span, "part"), 1, 1, &part->block, &err),
                     ERR_NONE);
}

static void close_part(struct part *part)
{
    block_close(part->block);
    buf_fini(&part->bytes);
}

/* Keys are the stacks' addresses. */
static void read_part(const struct part *part, struct block_cursor *cursor,
                      struct counter_increase *increase)
{
    const struct dictionary *dictionary = block_dictionary(part->block);
    uint32_t count, keys[STACKS];
    const struct block_granule *granule = block_granules(part->block, &count);
    struct block_rows rows;
    struct err err;
    assert_int_equal(count, 1);
    assert_int_equal(block_read_rows(part->block, granule, cursor, false, &rows, &err), ERR_NONE);
    for (uint32_t i = 0; i < rows.row_count; i++) {
        const uint32_t node = dictionary->stacks.ends[rows.stacks[i]].node;
        keys[i] = (uint32_t)dictionary->tables->locations[dictionary->stacks.frames[node]].address;
    }
    counter_increase_add(increase, part->block, &rows, 0, 1, keys);
}

static void add_increase(void *context, const struct counter_delta *delta)
{
    int64_t *increases = context;
    increases[delta->key] += delta->value;
}

/* Computes the increases from the parts in a random order. */
static void find_increases(uint64_t *seed, const struct part *parts, uint32_t count,
                           int64_t *increases)
{
    uint32_t order[PARTS_MAX];
    struct counter_increase increase = {0};
    struct block_cursor *cursor = block_cursor_create();
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t place = random_below(seed, i + 1);
        order[i] = order[place];
        order[place] = i;
    }
    memset(increases, 0, STACKS * sizeof(*increases));
    for (uint32_t i = 0; i < count; i++)
        read_part(&parts[order[i]], cursor, &increase);
    counter_increase_compute(&increase, NULL, add_increase, increases);
    counter_increase_fini(&increase);
    block_cursor_destroy(cursor);
}

/* The expected increases: snapshots[i] contains everything with time i. */
static void increase_plainly(int64_t (*snapshots)[STACKS], uint32_t count, int64_t *increases)
{
    memset(increases, 0, STACKS * sizeof(*increases));
    for (uint32_t i = 1; i < count; i++) {
        bool began = false;
        for (uint32_t j = 1; j < STACKS; j++)
            began |= snapshots[i][j] < snapshots[i - 1][j];
        for (uint32_t j = 1; j < STACKS; j++)
            increases[j] += snapshots[i][j] - (began ? 0 : snapshots[i - 1][j]);
    }
}

static void counters_increase_by_the_same_in_any_parts(void **state)
{
    (void)state;
    enum { ROUNDS = 300, TIMES = 8 };
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t seed = round * UINT64_C(0x9e3779b97f4a7c15);
        struct part parts[PARTS_MAX] = {0};
        int64_t snapshots[TIMES][STACKS] = {0}, increases[STACKS], wanted[STACKS];
        uint32_t count = 0;
        for (uint32_t i = 0; i < TIMES; i++) {
            for (uint32_t left = 1 + random_below(&seed, 4); left; left--) {
                struct part *part = &parts[count++];
                part->time_ns = begin_ns + i * INT64_C(10000000000);
                for (uint32_t j = 1; j < STACKS; j++) {
                    part->values[j] = random_below(&seed, 3) ? i * 10 + random_below(&seed, 9) : 0;
                    snapshots[i][j] += part->values[j];
                }
                open_part(part);
            }
        }
        increase_plainly(snapshots, TIMES, wanted);
        for (int try = 0; try < 3; try++) {
            find_increases(&seed, parts, count, increases);
            for (uint32_t j = 1; j < STACKS; j++)
                if (increases[j] != wanted[j])
                    fail_msg("round %u: stack %u increased by %lld, not %lld", (unsigned)round, j,
                             (long long)increases[j], (long long)wanted[j]);
        }
        for (uint32_t i = 0; i < count; i++)
            close_part(&parts[i]);
    }
}

/* ---- fields of granules ---- */

/* A granule records when its last profile ends, and whether its profiles are contiguous. */
static void granules_record_the_covered_time(void **state)
{
    (void)state;
    enum { ROUNDS = 200 };
    uint32_t gapless_count = 0, count, granule_count = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t seed = round * UINT64_C(0x9e3779b97f4a7c15);
        struct random_shape shape = random_shape(&seed);
        batch_auto batch = random_batch(&seed, &shape);
        struct batch_profile *profiles =
            arena_new(batch->arena, struct batch_profile, batch->profile_count);
        for (uint32_t i = 0; i < batch->profile_count; i++) {
            profiles[i] = batch->profiles[i];
            profiles[i].duration_ns =
                random_below(&seed, 20) ? (int64_t)random_below(&seed, 4) * shape.span_ns / 4 : 0;
        }
        batch->profiles = profiles;
        buf_auto bytes;
        struct block_summary summary;
        struct block *block;
        struct err err;
        buf_init(&bytes, 64u << 20);
        assert_int_equal(block_write_batch(batch, 1, 0, &bytes, &summary, &err), ERR_NONE);
        const struct span span = buf_span(&bytes);
        assert_int_equal(block_open(block_source_memory(&span, "covers"), 1, 1, &block, &err),
                         ERR_NONE);
        struct block_cursor *cursor = block_cursor_create();
        const struct block_granule *granules = block_granules(block, &count);
        for (uint32_t i = 0; i < count; i++) {
            const struct block_granule *granule = &granules[i];
            const struct block_profile *read;
            int64_t reach_ns = granule->begin_ns, longest_ns = 0;
            bool is_gapless = true;
            assert_int_equal(block_read_profiles(block, granule, cursor, &read, &err), ERR_NONE);
            for (uint32_t j = 0; j < granule->profile_count; j++) {
                const int64_t slack_ns = read[j].duration_ns / BLOCK_SLACK_PART;
                is_gapless &= read[j].duration_ns && read[j].time_ns <= reach_ns + slack_ns;
                if (read[j].time_ns + read[j].duration_ns > reach_ns)
                    reach_ns = read[j].time_ns + read[j].duration_ns;
                if (read[j].duration_ns > longest_ns)
                    longest_ns = read[j].duration_ns;
            }
            assert_int_equal(granule->reach_ns, reach_ns);
            assert_int_equal(granule->longest_ns, longest_ns);
            assert_int_equal(!!(granule->flags & BLOCK_IS_GAPLESS), is_gapless);
            gapless_count += is_gapless;
        }
        granule_count += count;
        block_cursor_destroy(cursor);
        block_close(block);
    }
    assert_in_range(gapless_count, 20, granule_count - 20);
}

/* ---- blocks of a union ---- */

/* Queries that process series one by one use the same blocks repeatedly. */
static void a_union_contains_each_block_once(void **state)
{
    (void)state;
    struct part parts[2] = {{.time_ns = begin_ns, .values = {0, 1, 2}},
                            {.time_ns = begin_ns + 1, .values = {0, 3, 4}}};
    struct stack_union *stacks = stack_union_create();
    for (uint32_t i = 0; i < 2; i++) {
        open_part(&parts[i]);
        stack_union_number(stacks, parts[i].block, 1, 0);
    }
    const size_t before = stack_union_memory(stacks);
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(stack_union_number(stacks, parts[i % 2].block, 1, 0), 0);
    assert_int_equal(stack_union_memory(stacks), before);
    stack_union_destroy(stacks);
    for (uint32_t i = 0; i < 2; i++)
        close_part(&parts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_increase_by_the_same_in_any_parts),
        cmocka_unit_test(granules_record_the_covered_time),
        cmocka_unit_test(a_union_contains_each_block_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
