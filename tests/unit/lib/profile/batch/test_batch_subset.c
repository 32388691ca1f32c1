#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/profile/batch/batch_subset.h"

/* Three profiles of series 2, 0 and 1 with one, two and one samples, which have timestamps. */
static struct batch *make_batch(struct arena *arena, bool has_timestamps)
{
    static const struct batch_series series[] = {
        {.first_label = 0}, {.first_label = 10}, {.first_label = 20}};
    static const struct batch_profile profiles[] = {
        {.series = 2, .first_sample = 3, .sample_count = 1, .time_ns = 100},
        {.series = 0, .first_sample = 0, .sample_count = 2, .time_ns = 200},
        {.series = 1, .first_sample = 2, .sample_count = 1, .time_ns = 300},
    };
    static const struct batch_sample samples[] = {{1, 1, 0}, {2, 2, 0}, {3, 3, 0}, {4, 4, 0}};
    static const uint64_t starts[] = {0, 2, 2, 3, 5};
    static const int64_t timestamps[] = {11, 12, 31, 41, 42};
    struct batch *batch = arena_new(arena, struct batch, 1);
    *batch = (struct batch){.arena = arena,
                            .series = series,
                            .series_count = 3,
                            .profiles = profiles,
                            .profile_count = 3,
                            .samples = samples,
                            .sample_count = 4,
                            .timestamp_start = has_timestamps ? starts : NULL,
                            .timestamps = has_timestamps ? timestamps : NULL};
    return batch;
}

static void omitted_profiles_leave_nothing(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const bool keeps[] = {true, false, true};
    const struct batch *subset = batch_subset(make_batch(arena, true), keeps);
    assert_int_equal(subset->profile_count, 2);
    assert_int_equal(subset->series_count, 2);
    assert_int_equal(subset->sample_count, 2);
    assert_int_equal(subset->profiles[0].time_ns, 100);
    assert_int_equal(subset->series[subset->profiles[0].series].first_label, 20);
    assert_int_equal(subset->series[subset->profiles[1].series].first_label, 10);
    assert_int_equal(subset->samples[subset->profiles[0].first_sample].value, 4);
    assert_int_equal(subset->samples[subset->profiles[1].first_sample].value, 3);
    static const int64_t wanted[] = {41, 42, 31};
    assert_int_equal(subset->timestamp_start[1], 2);
    assert_int_equal(subset->timestamp_start[2], 3);
    assert_memory_equal(subset->timestamps, wanted, sizeof(wanted));
}

static void all_and_none_are_possible(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct batch *batch = make_batch(arena, false);
    const struct batch *all = batch_subset(batch, (const bool[]){true, true, true});
    assert_int_equal(all->sample_count, 4);
    assert_null(all->timestamp_start);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(all->series[all->profiles[i].series].first_label,
                         batch->series[batch->profiles[i].series].first_label);
    const struct batch *none = batch_subset(batch, (const bool[]){false, false, false});
    assert_int_equal(none->profile_count + none->sample_count + none->series_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(omitted_profiles_leave_nothing),
        cmocka_unit_test(all_and_none_are_possible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
