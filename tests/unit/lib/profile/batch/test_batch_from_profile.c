#include "tests/unit/lib/profile/batches.h"

#include "lib/base/buf.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/batch/batch_from_profile.h"
#include "lib/profile/pprof/pprof.h"
#include "tests/unit/lib/profile/maker.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static struct batch *convert(const struct batch_source *source, const struct batch_options *options)
{
    struct batch *batch = NULL;
    struct err err = {0};
    enum err_code code = batch_from_profile(source, options, &batch, &err);
    if (code)
        print_error("%s\n", err.message);
    assert_int_equal(code, ERR_NONE);
    return batch;
}

static void assert_refused(const struct batch_source *source, const struct batch_options *options,
                           enum err_code expected, const char *words)
{
    struct batch *batch = NULL;
    struct err err = {0};
    assert_int_equal(batch_from_profile(source, options, &batch, &err), expected);
    assert_null(batch);
    if (!strstr(err.message, words))
        print_error("message: %s\n", err.message);
    assert_non_null(strstr(err.message, words));
}

#define LABEL(the_name, the_value)                                                                 \
    {                                                                                              \
        .name = SPAN_LITERAL(the_name), .value = SPAN_LITERAL(the_value)                           \
    }

static void each_type_is_a_series(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("samples/count", "cpu/nanoseconds");
    set_period(&maker, "cpu", "nanoseconds", 10000000);
    profile_builder_fields(maker.builder)->duration_ns = 5;
    ADD(&maker, "a", 1, 10000000);
    ADD(&maker, "b", 0, 7);
    ADD(&maker, "c", 0, 0);
    ADD(&maker, "d", 2, -3);
    /* The profile contains the string "a" already, but not "service_name". */
    const struct batch_text_label labels[] = {LABEL("service_name", "a"), LABEL("empty", ""),
                                              LABEL("k8s.pod", "x")};
    struct batch_source source = {.profile = take(&maker), .labels = labels, .label_count = 3};
    batch_auto batch = convert(&source, NULL);
    assert_batch(batch,
                 "process_cpu:samples:count:cpu:nanoseconds:delta{k8s_pod=x,service_name=a}"
                 " 1700000000000000000 5 10000000\n"
                 "  main;a 1\n"
                 "  main;d 2\n"
                 "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{k8s_pod=x,service_name=a}"
                 " 1700000000000000000 5 10000000\n"
                 "  main;a 10000000\n"
                 "  main;b 7\n"
                 "  main;d -3\n");
    assert_int_equal(batch->series_label_count, 2); /* the two series share them */
}

static void strings_stay_canonical(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("cpu/nanoseconds");
    ADD(&maker, "prod", 1);
    const struct batch_text_label labels[] = {LABEL("cpu", "prod"), LABEL("nanoseconds", "cpu"),
                                              LABEL("new", "new")};
    struct batch_source source = {.profile = take(&maker), .labels = labels, .label_count = 3};
    batch_auto batch = convert(&source, NULL);
    for (uint32_t i = 0; i < batch->tables->string_count; i++) {
        for (uint32_t j = 0; j < i; j++)
            assert_false(span_equal(batch->tables->strings[i], batch->tables->strings[j]));
    }
    assert_batch(batch, "process_cpu:cpu:nanoseconds:::delta{cpu=prod,nanoseconds=cpu,new=new}"
                        " 1700000000000000000 0 0\n"
                        "  main;prod 1\n");
}

static void labels_of_samples_are_sets(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("cpu/ns");
    for (int i = 0; i < 3; i++) {
        static const char *const leaves[] = {"a", "b", "c"};
        put_text(&maker, "thread", "worker");
        put_number(&maker, "bytes", 512, "bytes");
        ADD(&maker, leaves[i], i + 1);
        ADD(&maker, leaves[i], 10);
    }
    put_text(&maker, "thread", "other");
    ADD(&maker, "a", 5);
    struct batch_source source = {.profile = take(&maker)};
    batch_auto batch = convert(&source, NULL);
    assert_int_equal(batch->label_set_count, 3);
    assert_batch(batch, "process_cpu:cpu:ns:::delta{} 1700000000000000000 0 0\n"
                        "  main;a thread=worker bytes=512bytes 1\n"
                        "  main;a 10\n"
                        "  main;b thread=worker bytes=512bytes 2\n"
                        "  main;b 10\n"
                        "  main;c thread=worker bytes=512bytes 3\n"
                        "  main;c 10\n"
                        "  main;a thread=other 5\n");
}

static struct profile *profile_with_malloc(const char *drop)
{
    struct maker maker = NEW_MAKER("cpu/ns");
    ADD(&maker, "malloc", 1);
    ADD(&maker, "work", 2);
    ADD(&maker, "malloc(int)", 3);
    profile_builder_fields(maker.builder)->drop_frames =
        profile_builder_string(maker.builder, span_text(drop));
    return take(&maker);
}

static void drop_frames_leaves_frames_out(void **state)
{
    (void)state;
    struct batch_source source = {.profile = profile_with_malloc("mal.*")};
    batch_auto batch = convert(&source, NULL);
    assert_null(batch->notice);
    assert_batch(batch, "process_cpu:cpu:ns:::delta{} 1700000000000000000 0 0\n"
                        "  main 1\n"
                        "  main;work 2\n"
                        "  main 3\n");
    struct batch_source unusable = {.profile = profile_with_malloc("(?=x)")};
    batch_auto whole = convert(&unusable, NULL);
    assert_non_null(strstr(whole->notice, "drop_frames"));
    assert_batch(whole, "process_cpu:cpu:ns:::delta{} 1700000000000000000 0 0\n"
                        "  main;malloc 1\n"
                        "  main;work 2\n"
                        "  main;malloc(int) 3\n");
}

/* A location whose inlined call is uninteresting keeps the function that it is inlined into. */
static void drop_frames_leaves_inlined_calls_out(void **state)
{
    (void)state;
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("cpu"), SPAN_LITERAL("ns"));
    struct profile *fields = profile_builder_fields(builder);
    fields->time_ns = MAKER_TIME_NS;
    fields->drop_frames = profile_builder_string(builder, SPAN_LITERAL("std::.*"));
    struct profile_line lines[2];
    static const char *const names[] = {"std::sort", "work"};
    for (int i = 0; i < 2; i++) {
        const struct profile_function function = {
            .name = profile_builder_string(builder, span_text(names[i]))};
        lines[i] = (struct profile_line){.function = profile_builder_function(builder, &function)};
    }
    const struct profile_builder_frame main_frame = {.name = SPAN_LITERAL("main")};
    const uint32_t frame = profile_builder_frame(builder, &main_frame);
    const struct profile_location location = {.mapping = PROFILE_NONE};
    const uint32_t both = profile_builder_location(builder, &location, lines, 2);
    const int64_t value = 5;
    profile_builder_add_sample(builder, (const uint32_t[]){both, frame}, 2, &value, NULL, 0);
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    struct batch_source source = {.profile = profile};
    batch_auto batch = convert(&source, NULL);
    assert_batch(batch, "process_cpu:cpu:ns:::delta{} 1700000000000000000 0 0\n"
                        "  main;work 5\n");
}

/* More label sets than the initial hash table holds; each is found again. */
static void many_label_sets_are_distinguished(void **state)
{
    (void)state;
    enum { SETS = 1000 };
    struct maker maker = NEW_MAKER("cpu/ns");
    for (int64_t i = 0; i < 3 * SETS; i++) {
        char leaf[20];
        snprintf(leaf, sizeof(leaf), "f%d", (int)(i / SETS));
        put_number(&maker, "id", i % SETS, "");
        ADD(&maker, leaf, i + 1);
    }
    struct batch_source source = {.profile = take(&maker)};
    batch_auto batch = convert(&source, NULL);
    assert_int_equal(batch->label_set_count, SETS + 1);
    assert_int_equal(batch->sample_label_count, SETS);
    for (uint32_t i = 0; i < batch->sample_count; i++) {
        const struct batch_label_set *set = &batch->label_sets[batch->samples[i].label_set];
        assert_int_equal(batch->sample_labels[set->first_label].number,
                         (batch->samples[i].value - 1) % SETS);
    }
}

static void chosen_labels_split_series(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("samples/count", "cpu/nanoseconds");
    put_text(&maker, "endpoint", "/a");
    put_text(&maker, "thread", "1");
    ADD(&maker, "a", 1, 2);
    put_text(&maker, "thread", "1");
    put_text(&maker, "endpoint", "/b");
    ADD(&maker, "a", 3, 0);
    put_text(&maker, "service_name", "mine");
    ADD(&maker, "b", 5, 6);
    put_text(&maker, "endpoint", "/a");
    ADD(&maker, "b", 7, 8);
    put_number(&maker, "endpoint", 4, "");
    ADD(&maker, "c", 0, 9);
    const struct batch_text_label labels[] = {LABEL("service_name", "app")};
    const struct span chosen[] = {SPAN_LITERAL("endpoint"), SPAN_LITERAL("service_name"),
                                  SPAN_LITERAL("absent")};
    const struct batch_options options = {.series_labels = chosen, .series_label_count = 3};
    struct batch_source source = {.profile = take(&maker), .labels = labels, .label_count = 1};
    batch_auto batch = convert(&source, &options);
    assert_batch(batch,
                 "process_cpu:samples:count:::delta{service_name=app} 1700000000000000000 0 0\n"
                 "process_cpu:cpu:nanoseconds:::delta{service_name=app} 1700000000000000000 0 0\n"
                 "  main;c endpoint=4 9\n"
                 "process_cpu:samples:count:::delta{endpoint=/a,service_name=app}"
                 " 1700000000000000000 0 0\n"
                 "  main;a thread=1 1\n"
                 "  main;b 7\n"
                 "process_cpu:cpu:nanoseconds:::delta{endpoint=/a,service_name=app}"
                 " 1700000000000000000 0 0\n"
                 "  main;a thread=1 2\n"
                 "  main;b 8\n"
                 "process_cpu:samples:count:::delta{endpoint=/b,service_name=app}"
                 " 1700000000000000000 0 0\n"
                 "  main;a thread=1 3\n"
                 "process_cpu:cpu:nanoseconds:::delta{endpoint=/b,service_name=app}"
                 " 1700000000000000000 0 0\n"
                 "process_cpu:samples:count:::delta{service_name=mine}"
                 " 1700000000000000000 0 0\n"
                 "  main;b 5\n"
                 "process_cpu:cpu:nanoseconds:::delta{service_name=mine}"
                 " 1700000000000000000 0 0\n"
                 "  main;b 6\n");
}

static void chosen_labels_of_snapshots_stay_with_samples(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("samples/count", "inuse_space/bytes", "alloc_space/bytes");
    put_text(&maker, "endpoint", "/a");
    put_text(&maker, "thread", "1");
    ADD(&maker, "a", 1, 2, 0);
    put_text(&maker, "endpoint", "/b");
    ADD(&maker, "a", 3, 4, 0);
    const struct span chosen[] = {SPAN_LITERAL("endpoint")};
    const struct batch_options options = {.series_labels = chosen, .series_label_count = 1};
    struct batch_source source = {.profile = take(&maker)};
    batch_auto batch = convert(&source, &options);
    assert_batch(batch, "process_cpu:inuse_space:bytes::{} 1700000000000000000 0 0\n"
                        "  main;a endpoint=/a thread=1 2\n"
                        "  main;a endpoint=/b 4\n"
                        "process_cpu:alloc_space:bytes::{} 1700000000000000000 0 0\n"
                        "process_cpu:samples:count:::delta{endpoint=/a} 1700000000000000000 0 0\n"
                        "  main;a thread=1 1\n"
                        "process_cpu:samples:count:::delta{endpoint=/b} 1700000000000000000 0 0\n"
                        "  main;a 3\n");
}

static void spans_become_links(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("cpu/ns");
    put_text(&maker, "span_id", "0123456789abcdef");
    put_text(&maker, "trace_id", "00112233445566778899aabbccddeeff");
    put_text(&maker, "span_name", "GET /");
    ADD(&maker, "a", 1);
    put_text(&maker, "span_id", "not one");
    ADD(&maker, "b", 2);
    put_text(&maker, "span_id", "0000000000000001");
    ADD(&maker, "c", 3);
    struct batch_source source = {.profile = take(&maker)};
    batch_auto batch = convert(&source, NULL);
    assert_batch(batch, "process_cpu:cpu:ns:::delta{} 1700000000000000000 0 0\n"
                        "  main;a span_name=GET / <00112233445566778899aabbccddeeff "
                        "0123456789abcdef> 1\n"
                        "  main;b span_id=not one 2\n"
                        "  main;c <00000000000000000000000000000000 0000000000000001> 3\n");
}

static void a_profile_without_a_time_gets_one(void **state)
{
    (void)state;
    static const int64_t times[] = {0, INT64_C(1700000000000000), -5};
    for (size_t i = 0; i < 3; i++) {
        struct maker maker = NEW_MAKER("wall/ns");
        profile_builder_fields(maker.builder)->time_ns = times[i];
        ADD(&maker, "a", 1);
        struct batch_source source = {
            .profile = take(&maker), .time_ns = MAKER_TIME_NS + 1, .duration_ns = 9};
        batch_auto batch = convert(&source, NULL);
        assert_batch(batch, "wall:wall:ns:::delta{} 1700000000000000001 9 0\n  main;a 1\n");
    }
}

#define SECOND INT64_C(1000000000)
#define AT (INT64_C(1700000000) * SECOND) /* the time of a maker's profile */

/* Checks the start that a delta and a snapshot of the profile get in a window of the request. */
static void assert_begins(int64_t from_ns, int64_t window_ns, int64_t own_ns, const char *delta,
                          const char *snapshot)
{
    struct maker maker = NEW_MAKER("alloc_space/bytes", "inuse_space/bytes");
    profile_builder_fields(maker.builder)->duration_ns = own_ns;
    ADD(&maker, "a", 1, 2);
    struct batch_source source = {
        .profile = take(&maker), .is_ready = true, .time_ns = from_ns, .duration_ns = window_ns};
    batch_auto batch = convert(&source, NULL);
    char text[400];
    snprintf(text, sizeof(text),
             "memory:alloc_space:bytes:::delta{} %s 0\n  main;a 1\n"
             "memory:inuse_space:bytes::{} %s 0\n  main;a 2\n",
             delta, snapshot);
    assert_batch(batch, text);
}

static void a_time_near_the_end_of_the_window_is_the_end_of_deltas(void **state)
{
    (void)state;
    const int64_t ten = 10 * SECOND, early = AT - ten;
    assert_begins(AT, ten, 0, "1700000000000000000 10000000000", "1700000000000000000 10000000000");
    assert_begins(early, ten, 0, "1699999990000000000 10000000000",
                  "1700000000000000000 10000000000");
    assert_begins(early - SECOND, ten, 11 * SECOND, "1699999989000000000 11000000000",
                  "1700000000000000000 11000000000");
    assert_begins(AT - 4 * SECOND, ten, 9 * SECOND, "1700000000000000000 9000000000",
                  "1700000000000000000 9000000000");
    assert_begins(early, 0, ten, "1700000000000000000 10000000000",
                  "1700000000000000000 10000000000");
}

static void a_go_profile_of_some_seconds_has_only_deltas_that_end_at_its_time(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("alloc_objects/count", "alloc_space/bytes", "inuse_space/bytes");
    set_period(&maker, "space", "bytes", 524288);
    profile_builder_fields(maker.builder)->duration_ns = 5 * SECOND;
    ADD(&maker, "a", 1, 2, -3);
    struct batch_source source = {.profile = take(&maker)};
    batch_auto batch = convert(&source, NULL);
    assert_batch(batch, "memory:alloc_objects:count:space:bytes:delta{} 1699999995000000000"
                        " 5000000000 524288\n  main;a 1\n"
                        "memory:alloc_space:bytes:space:bytes:delta{} 1699999995000000000"
                        " 5000000000 524288\n  main;a 2\n");
    assert_non_null(strstr(batch->notice, "?seconds=N"));
    struct maker goroutines = NEW_MAKER("goroutine/count");
    set_period(&goroutines, "goroutine", "count", 1);
    profile_builder_fields(goroutines.builder)->duration_ns = 5 * SECOND;
    ADD(&goroutines, "a", 1);
    struct batch_source refused = {.profile = take(&goroutines)};
    assert_refused(&refused, NULL, ERR_INVALID, "?seconds=N");
    profile_destroy(refused.profile);
}

static void a_time_outside_the_supported_days_is_refused(void **state)
{
    (void)state;
    const int64_t day_ns = INT64_C(86400000000000);
    const struct {
        int64_t time_ns;
        bool is_taken;
    } cases[] = {
        {106751 * day_ns - 1, true}, {106751 * day_ns, false},      {INT64_MAX, false},
        {-106751 * day_ns, true},    {-106751 * day_ns - 1, false}, {INT64_MIN, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct maker maker = NEW_MAKER("wall/ns");
        profile_builder_fields(maker.builder)->time_ns = cases[i].time_ns;
        ADD(&maker, "a", 1);
        struct batch_source source = {.profile = take(&maker), .time_ns = cases[i].time_ns};
        if (cases[i].is_taken) {
            batch_auto batch = convert(&source, NULL);
            assert_int_equal(batch->profiles[0].time_ns, cases[i].time_ns);
        } else {
            assert_refused(&source, NULL, ERR_INVALID, "before 1677-09-22 or after 2262-04-10");
            profile_destroy(source.profile);
        }
    }
}

static void a_type_that_repeats_counts_once(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("/", "x/count", "/", "x/count", "x/bytes");
    ADD(&maker, "a", 1, 2, 3, 4, 5);
    struct batch_source source = {.profile = take(&maker)};
    batch_auto batch = convert(&source, NULL);
    assert_batch(batch, "x:::::delta{} 1700000000000000000 0 0\n  main;a 1\n"
                        "x:x:count:::delta{} 1700000000000000000 0 0\n  main;a 2\n"
                        "x:x:bytes:::delta{} 1700000000000000000 0 0\n  main;a 5\n");
}

static void decimals_have_one_unit_in_all_series(void **state)
{
    (void)state;
    static const char *const types[] = {"samples/count/10", "samples/count/1000",
                                        "samples/count/1000000"};
    static const int64_t values[] = {25, 2500, 2500000};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct maker maker = NEW_MAKER(types[i], "bytes/count");
        ADD(&maker, "a", values[i], 7);
        ADD(&maker, "b", -values[i], 0);
        struct batch_source source = {.profile = take(&maker)};
        batch_auto batch = convert(&source, NULL);
        assert_batch(batch, "process_cpu:samples:count/1000000:::delta{} 1700000000000000000 0 0\n"
                            "  main;a 2500000\n"
                            "  main;b -2500000\n"
                            "process_cpu:bytes:count:::delta{} 1700000000000000000 0 0\n"
                            "  main;a 7\n");
    }
}

static void a_type_that_repeats_with_other_decimals_counts_once(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("n/count/10", "n/count/100", "n/count");
    ADD(&maker, "a", 5, 77, 3);
    struct batch_source source = {.profile = take(&maker)};
    batch_auto batch = convert(&source, NULL);
    assert_batch(batch, "n:n:count/1000000:::delta{} 1700000000000000000 0 0\n  main;a 500000\n"
                        "n:n:count:::delta{} 1700000000000000000 0 0\n  main;a 3\n");
}

static void decimals_that_no_series_can_keep_are_refused(void **state)
{
    (void)state;
    static const int64_t ends[] = {INT64_MAX / 1000, INT64_MIN / 1000};
    for (size_t i = 0; i < 2; i++) {
        struct maker maker = NEW_MAKER("n/count/1000");
        ADD(&maker, "a", ends[i]);
        struct batch_source source = {.profile = take(&maker)};
        batch_auto batch = convert(&source, NULL);
        assert_int_equal(batch->samples[0].value, ends[i] * 1000);
        maker = NEW_MAKER("n/count/1000");
        ADD(&maker, "a", ends[i] + (i ? -1 : 1));
        struct batch_source large = {.profile = take(&maker)};
        assert_refused(&large, NULL, ERR_INVALID, "write its values as whole numbers");
        profile_destroy(large.profile);
    }
}

static void profiles_without_samples_are_profiles(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("cpu/ns");
    struct batch_source source = {.profile = take(&maker), .duration_ns = 5};
    batch_auto batch = convert(&source, NULL);
    assert_batch(batch, "process_cpu:cpu:ns:::delta{} 1700000000000000000 5 0\n");
    assert_int_equal(batch->stack_count, 1);
    assert_int_equal(batch->label_set_count, 1);
    struct maker zeros = NEW_MAKER("cpu/ns", "/", "x/count");
    put_text(&zeros, "a", "b");
    ADD(&zeros, "a", 0, 0, 1);
    struct batch_source other = {.profile = take(&zeros)};
    batch_auto idle = convert(&other, NULL);
    assert_batch(idle, "process_cpu:cpu:ns:::delta{} 1700000000000000000 0 0\n"
                       "process_cpu:::::delta{} 1700000000000000000 0 0\n"
                       "process_cpu:x:count:::delta{} 1700000000000000000 0 0\n"
                       "  main;a a=b 1\n");
    struct maker snapshot = NEW_MAKER("goroutine/count");
    struct batch_source level = {.profile = take(&snapshot)};
    batch_auto of_zero = convert(&level, NULL);
    assert_batch(of_zero, "goroutines:goroutine:count::{} 1700000000000000000 0 0\n");
}

/* Labels that no sample has are unknown, and the series without labels exists only if a sample has
 * none. More series than the limit do not make the profile invalid. */
static void series_of_labels_are_idle_where_samples_have_them(void **state)
{
    (void)state;
    const struct span chosen[] = {SPAN_LITERAL("endpoint")};
    struct batch_limits limits = {.series = 3};
    struct batch_options options = {.series_labels = chosen, .series_label_count = 1};
    for (int is_limited = 0; is_limited < 2; is_limited++) {
        struct maker maker = NEW_MAKER("cpu/ns", "wait/ns");
        put_text(&maker, "endpoint", "/a");
        ADD(&maker, "a", 1, 0);
        put_text(&maker, "endpoint", "/b");
        ADD(&maker, "b", 2, 3);
        struct batch_source source = {.profile = take(&maker)};
        options.limits = is_limited ? &limits : NULL;
        batch_auto batch = convert(&source, &options);
        assert_batch(
            batch, is_limited ? "process_cpu:cpu:ns:::delta{endpoint=/a} 1700000000000000000 0 0\n"
                                "  main;a 1\n"
                                "process_cpu:cpu:ns:::delta{endpoint=/b} 1700000000000000000 0 0\n"
                                "  main;b 2\n"
                                "process_cpu:wait:ns:::delta{endpoint=/b} 1700000000000000000 0 0\n"
                                "  main;b 3\n"
                              : "process_cpu:cpu:ns:::delta{endpoint=/a} 1700000000000000000 0 0\n"
                                "  main;a 1\n"
                                "process_cpu:wait:ns:::delta{endpoint=/a} 1700000000000000000 0 0\n"
                                "process_cpu:cpu:ns:::delta{endpoint=/b} 1700000000000000000 0 0\n"
                                "  main;b 2\n"
                                "process_cpu:wait:ns:::delta{endpoint=/b} 1700000000000000000 0 0\n"
                                "  main;b 3\n");
    }
}

/* Type, given name or NULL, duration; then the expected id. */
static void names_and_kinds_follow_the_rules(void **state)
{
    (void)state;
    static const struct {
        const char *type, *given;
        int64_t duration_ns;
        bool is_ready;
        const char *expected;
    } cases[] = {
        {"samples/count", NULL, 0, false, "process_cpu:samples:count:delta"},
        {"cpu/nanoseconds", NULL, 1, false, "process_cpu:cpu:nanoseconds:delta"},
        {"itimer/count", NULL, 1, false, "process_cpu:itimer:count:delta"},
        {"wall/nanoseconds", NULL, 1, false, "wall:wall:nanoseconds:delta"},
        {"cpu/nanoseconds", "wall", 1, false, "process_cpu:cpu:nanoseconds:delta"},
        {"samples/count", "wall", 1, false, "wall:samples:count:delta"},
        {"alloc_objects/count", NULL, 0, false, "memory:alloc_objects:count"},
        {"alloc_objects/count", NULL, 1, false, "memory:alloc_objects:count:delta"},
        {"alloc_space/bytes", NULL, 0, true, "memory:alloc_space:bytes:delta"},
        {"alloc_space/bytes", "godeltaprof_memory", 0, false, "memory:alloc_space:bytes:delta"},
        {"inuse_space/bytes", "godeltaprof_memory", 1, true, "memory:inuse_space:bytes"},
        {"inuse-space/bytes", NULL, 1, true, "memory:inuse-space:bytes"},
        {"inuse_objects/count", "heap", 1, true, "heap:inuse_objects:count"},
        {"space/bytes", NULL, 1, false, "memory:space:bytes"},
        {"objects/count", NULL, 1, false, "memory:objects:count"},
        {"resident_space/bytes", NULL, 0, false, "memory:resident_space:bytes"},
        {"swapped_space/bytes", NULL, 1, false, "memory:swapped_space:bytes"},
        {"stale_space/bytes", NULL, 1, false, "memory:stale_space:bytes"},
        {"locked_space/bytes", NULL, 1, false, "memory:locked_space:bytes"},
        {"heap-space/bytes", NULL, 1, false, "memory:heap-space:bytes"},
        {"heap-live-size/bytes", NULL, 1, false, "memory:heap-live-size:bytes"},
        {"heap-live-samples/count", NULL, 1, false, "memory:heap-live-samples:count"},
        {"alloc-space/bytes", NULL, 1, false, "memory:alloc-space:bytes:delta"},
        {"contentions/count", NULL, 0, false, "mutex:contentions:count"},
        {"delay/nanoseconds", "block", 0, false, "block:delay:nanoseconds"},
        {"delay/nanoseconds", "block", 10, false, "block:delay:nanoseconds:delta"},
        {"block_count/count", NULL, 0, false, "block:block_count:count"},
        {"mutex_duration/ns", NULL, 0, true, "mutex:mutex_duration:ns:delta"},
        {"lock_count/count", NULL, 1, false, "block:lock_count:count:delta"},
        {"goroutine/count", NULL, 1, true, "goroutines:goroutine:count"},
        {"goroutines/count", NULL, 0, false, "goroutines:goroutines:count"},
        {"samples/count", "goroutine", 1, true, "goroutine:samples:count"},
        {"threads/count", NULL, 1, true, "threads:threads:count"},
        {"threadcreate/count", NULL, 0, false, "threadcreate:threadcreate:count"},
        {"exceptions/count", NULL, 0, false, "exceptions:exceptions:count:delta"},
        {"off_cpu/nanoseconds", "off_cpu", 0, false, "off_cpu:off_cpu:nanoseconds:delta"},
        {"/", NULL, 0, false, "unknown:::delta"},
        {"c{pu}/n s", NULL, 0, false, "c_pu_:c_pu_:n_s:delta"},
        {" lead/b", "a b{}", 0, false, "a_b__:_lead:b:delta"},
        {"\xc3\xa9/nano\xff\xfe", NULL, 0, false, "\xc3\xa9:\xc3\xa9:nano__:delta"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct maker maker = NEW_MAKER(cases[i].type);
        profile_builder_fields(maker.builder)->duration_ns = cases[i].duration_ns;
        ADD(&maker, "a", 1);
        struct batch_source source = {.profile = take(&maker), .is_ready = cases[i].is_ready};
        if (cases[i].given)
            source.name = span_text(cases[i].given);
        batch_auto batch = convert(&source, NULL);
        buf_auto id;
        buf_init(&id, 200);
        const struct batch_type *type = &batch->series[0].type;
        put_string(batch, type->name, &id);
        put_value_type(batch, &type->sample_type, &id);
        buf_printf(&id, "%s%c", batch_type_suffix(type->kind), 0);
        assert_string_equal((const char *)id.data, cases[i].expected);
    }
}

static void a_wall_type_names_the_whole_profile(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("samples/count", "cpu/ns", "wall/ns");
    ADD(&maker, "a", 1, 2, 3);
    struct batch_source source = {.profile = take(&maker)};
    batch_auto batch = convert(&source, NULL);
    assert_batch(batch, "wall:samples:count:::delta{} 1700000000000000000 0 0\n  main;a 1\n"
                        "process_cpu:cpu:ns:::delta{} 1700000000000000000 0 0\n  main;a 2\n"
                        "wall:wall:ns:::delta{} 1700000000000000000 0 0\n  main;a 3\n");
}

/* The kind that the sender declares is stored where it differs from that of the names. */
static void the_kind_given_by_the_sender_has_precedence(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        enum batch_kind declared, expected;
    } cases[] = {
        {"alloc_space/bytes", BATCH_KIND_CUMULATIVE, BATCH_KIND_BY_RULE},
        {"alloc_space/bytes", BATCH_KIND_BY_RULE, BATCH_KIND_DELTA},
        {"alloc_space/bytes", BATCH_KIND_GAUGE, BATCH_KIND_GAUGE},
        {"cpu/ns", BATCH_KIND_GAUGE, BATCH_KIND_GAUGE},
        {"cpu/ns", BATCH_KIND_CUMULATIVE, BATCH_KIND_BY_RULE},
        {"inuse_space/bytes", BATCH_KIND_GAUGE, BATCH_KIND_BY_RULE},
        {"inuse_space/bytes", BATCH_KIND_CUMULATIVE, BATCH_KIND_CUMULATIVE},
        {"inuse_space/bytes", BATCH_KIND_DELTA, BATCH_KIND_DELTA},
        {"threads/count", BATCH_KIND_GAUGE, BATCH_KIND_BY_RULE},
        {"threads/count", BATCH_KIND_CUMULATIVE, BATCH_KIND_CUMULATIVE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct maker maker = NEW_MAKER(cases[i].type);
        profile_builder_fields(maker.builder)->duration_ns = 1;
        ADD(&maker, "a", 1);
        struct batch_source source = {.profile = take(&maker), .kinds = &cases[i].declared};
        batch_auto batch = convert(&source, NULL);
        assert_int_equal(batch->series[0].type.kind, cases[i].expected);
    }
}

/* Series of deltas have no session, since they are added anyway. */
static void snapshots_have_the_session_as_a_label(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "process_cpu:cpu:ns:::delta{service_name=app} 1700000000000000000 0 0\n  main;a 1\n"
        "process_cpu:inuse_space:bytes::{service_name=app,session_id=s1} 1700000000000000000 0 0\n"
        "  main;a 2\n",
        "process_cpu:cpu:ns:::delta{service_name=app,session_id=own} 1700000000000000000 0 0\n"
        "  main;a 1\n"
        "process_cpu:inuse_space:bytes::{service_name=app,session_id=own} 1700000000000000000 0 0\n"
        "  main;a 2\n"};
    const struct batch_text_label labels[] = {LABEL("service_name", "app"),
                                              LABEL("session_id", "own")};
    for (size_t i = 0; i < 2; i++) {
        struct maker maker = NEW_MAKER("cpu/ns", "inuse_space/bytes");
        ADD(&maker, "a", 1, 2);
        struct batch_source source = {.profile = take(&maker),
                                      .labels = labels,
                                      .label_count = i + 1,
                                      .session = SPAN_LITERAL("s1")};
        batch_auto batch = convert(&source, NULL);
        assert_batch(batch, expected[i]);
    }
}

static void a_session_that_fits_no_label_is_left_out(void **state)
{
    (void)state;
    static const struct batch_limits one_label = {.series_labels = 1},
                                     short_values = {.value_bytes = 3};
    const struct batch_text_label labels[] = {LABEL("service_name", "app")};
    const struct {
        struct span session;
        const struct batch_limits *limits;
        const char *notice;
    } cases[] = {
        {SPAN_LITERAL("s1"), &one_label, "the limits of labels have no space for it"},
        {SPAN_LITERAL("s123"), &short_values, "the limits of labels have no space for it"},
        {SPAN_LITERAL("s\xff"), NULL, "its value is no UTF-8"},
        {SPAN_LITERAL("s1"), &short_values, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct maker maker = NEW_MAKER("inuse_space/bytes");
        ADD(&maker, "a", 2);
        struct batch_source source = {.profile = take(&maker),
                                      .labels = labels,
                                      .label_count = 1,
                                      .session = cases[i].session};
        const struct batch_options options = {.session_limits = cases[i].limits};
        batch_auto batch = convert(&source, &options);
        assert_int_equal(batch->series[0].label_count, cases[i].notice ? 1 : 2);
        if (cases[i].notice)
            assert_non_null(strstr(batch->notice, cases[i].notice));
        else
            assert_null(batch->notice);
    }
}

static void invalid_labels_are_reported(void **state)
{
    (void)state;
    static const struct {
        struct batch_text_label labels[2];
        enum err_code code;
        const char *words;
    } cases[] = {
        {{LABEL("", "x"), LABEL("b", "x")}, ERR_INVALID, "a label has no name"},
        {{LABEL("b", "x"), LABEL("b", "x")}, ERR_INVALID, "'b' is given twice"},
        {{LABEL("a", "\xff"), LABEL("b", "x")}, ERR_INVALID, "value of label 'a' is no UTF-8"},
        {{LABEL("a\xff", "x"), LABEL("b", "x")}, ERR_INVALID, "the name of label 'a\xff' is no"},
        {{LABEL("a", "12345678901"), LABEL("b", "x")}, ERR_TOO_LARGE, "'a' is 11 bytes"},
        {{LABEL("abcdefghijk", "1"), LABEL("b", "x")}, ERR_TOO_LARGE, "name of label 'abcdef"},
    };
    const struct batch_limits limits = {.name_bytes = 10, .value_bytes = 10};
    const struct batch_options options = {.limits = &limits};
    struct maker maker = NEW_MAKER("cpu/ns");
    ADD(&maker, "a", 1);
    struct profile *profile = take(&maker);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct batch_source source = {
            .profile = profile, .labels = cases[i].labels, .label_count = 2};
        assert_refused(&source, &options, cases[i].code, cases[i].words);
    }
    struct batch_source named = {.profile = profile, .name = SPAN_LITERAL("a:b")};
    assert_refused(&named, NULL, ERR_INVALID, "'a:b'");
    profile_destroy(profile);
}

static void all_protocols_use_the_same_names(void **state)
{
    (void)state;
    /* "a-b" sorts before "a.b" and "a_b"; a label without a value is ignored. */
    const struct batch_text_label labels[] = {
        LABEL("a_b", "plain"), LABEL("a.b", "dot"),    LABEL("a-b", ""), LABEL("2nd", "x"),
        LABEL("..c", "dots"),  LABEL("\xc3\xa9", "e"), LABEL("A", "y"),
    };
    struct maker maker = NEW_MAKER("cpu/ns");
    ADD(&maker, "a", 1);
    struct batch_source source = {.profile = take(&maker), .labels = labels, .label_count = 7};
    batch_auto batch = convert(&source, NULL);
    assert_batch(batch, "process_cpu:cpu:ns:::delta{A=y,_=e,_2nd=x,_c=dots,a_b=dot}"
                        " 1700000000000000000 0 0\n"
                        "  main;a 1\n");
    assert_string_equal(batch->notice,
                        "label 'a_b' is left out: its name becomes that of 'a.b', which counts");
}

static void redundant_labels_cost_nothing(void **state)
{
    (void)state;
    const struct batch_text_label labels[] = {LABEL("service-name", "same"),
                                              LABEL("service.name", "same"), LABEL("x", "y")};
    struct maker maker = NEW_MAKER("cpu/ns");
    ADD(&maker, "a", 1);
    struct batch_source source = {.profile = take(&maker), .labels = labels, .label_count = 3};
    batch_auto batch = convert(&source, NULL);
    assert_null(batch->notice);
    assert_int_equal(batch->series_label_count, 2);
    assert_int_equal(batch_labels_compare(SPAN_LITERAL("service-name"), SPAN_LITERAL("a")) > 0, 1);
    assert_true(batch_labels_compare(SPAN_LITERAL("service.name"), SPAN_LITERAL("a")) < 0);
    assert_true(batch_labels_compare(SPAN_LITERAL("a"), SPAN_LITERAL("service.name")) > 0);
}

/* Even if the source spells the name of the label differently. */
static void labels_of_samples_replace_those_of_the_source(void **state)
{
    (void)state;
    const struct batch_text_label labels[] = {LABEL("k8s.pod", "of the source"), LABEL("x", "y")};
    const struct span chosen[] = {SPAN_LITERAL("k8s_pod")};
    const struct batch_options options = {.series_labels = chosen, .series_label_count = 1};
    struct maker maker = NEW_MAKER("cpu/ns");
    put_text(&maker, "k8s_pod", "of the sample");
    ADD(&maker, "a", 1);
    struct batch_source source = {.profile = take(&maker), .labels = labels, .label_count = 2};
    batch_auto batch = convert(&source, &options);
    assert_null(batch->notice);
    assert_batch(batch, "process_cpu:cpu:ns:::delta{k8s_pod=of the sample,x=y}"
                        " 1700000000000000000 0 0\n"
                        "  main;a 1\n");
}

static void limits_hold(void **state)
{
    (void)state;
    struct maker maker = NEW_MAKER("cpu/ns", "wall/ns");
    for (int i = 0; i < 3; i++) {
        static const char *const values[] = {"1", "2", "3"};
        put_text(&maker, "id", values[i]);
        ADD(&maker, "a", 1, 1);
    }
    struct profile *profile = take(&maker);
    const struct batch_text_label labels[] = {LABEL("a", "1"), LABEL("b", "2")};
    const struct span chosen[] = {SPAN_LITERAL("id")};
    struct batch_source source = {.profile = profile, .labels = labels, .label_count = 2};
    struct batch_limits limits = {.series_labels = 1};
    struct batch_options options = {
        .limits = &limits, .series_labels = chosen, .series_label_count = 1};
    assert_refused(&source, &options, ERR_TOO_LARGE, "2 labels; the limit is 1");
    limits = (struct batch_limits){.series_labels = 2};
    assert_refused(&source, &options, ERR_TOO_LARGE, "3 labels; the limit is 2");
    limits = (struct batch_limits){.series = 3};
    assert_refused(&source, &options, ERR_TOO_LARGE, "more than 3 series");
    limits = (struct batch_limits){.series = 5};
    assert_refused(&source, &options, ERR_TOO_LARGE, "6 series in one profile; the limit is 5");
    limits = (struct batch_limits){.types = 1};
    assert_refused(&source, &options, ERR_TOO_LARGE, "2 types of values");
    limits = (struct batch_limits){.series = 6};
    batch_auto batch = convert(&source, &options);
    assert_int_equal(batch->series_count, 6);
}

/* ---- files of other projects in ../shared/data (see its README) ---- */

enum { RAW_MAX = 64 << 20, TYPES_MAX = 16 };

static bool read_file(const char *path, struct buf *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    size_t size;
    do {
        uint8_t block[4096];
        size = fread(block, 1, sizeof(block), file);
        buf_append(bytes, block, size);
    } while (size);
    return fclose(file) == 0 && !buf_failed(bytes);
}

static uint64_t read_varint(struct span *rest)
{
    uint64_t number = 0;
    for (unsigned shift = 0; rest->size; shift += 7) {
        uint8_t byte = *rest->data;
        *rest = span_of(rest->data + 1, rest->size - 1);
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            break;
    }
    return number;
}

/* Reads one field of a message; a field that is not length-delimited has a number only. */
static uint64_t read_field(struct span *rest, struct span *ret_bytes, uint64_t *ret_number)
{
    uint64_t tag = read_varint(rest);
    *ret_number = read_varint(rest);
    *ret_bytes = span_of(NULL, 0);
    if ((tag & 7) == 2) {
        assert_true(*ret_number <= rest->size);
        *ret_bytes = span_of(rest->data, (size_t)*ret_number);
        *rest = span_of(rest->data + *ret_number, rest->size - (size_t)*ret_number);
    } else {
        assert_int_equal(tag & 7, 0);
    }
    return tag >> 3;
}

/* Sums and counts of values other than 0, by type, from the bytes of the samples. */
static void sum_samples(struct span raw, uint64_t *sums, uint32_t *counts)
{
    struct span bytes;
    uint64_t number;
    while (raw.size) {
        if (read_field(&raw, &bytes, &number) != 2)
            continue;
        struct span sample = bytes, values;
        uint32_t type = 0;
        while (sample.size) {
            if (read_field(&sample, &values, &number) != 2)
                continue;
            do {
                uint64_t value = values.size ? read_varint(&values) : number;
                assert_true(type < TYPES_MAX);
                sums[type] += value;
                counts[type++] += value != 0;
            } while (values.size);
        }
    }
}

static void check_file(const char *path)
{
    buf_auto gzip, raw;
    buf_init(&gzip, RAW_MAX);
    buf_init(&raw, RAW_MAX);
    struct err err = {0};
    assert_true(read_file(path, &gzip));
    assert_int_equal(compress_expand(COMPRESS_GZIP, buf_span(&gzip), &raw, &err), ERR_NONE);
    uint64_t sums[TYPES_MAX] = {0};
    uint32_t counts[TYPES_MAX] = {0};
    sum_samples(buf_span(&raw), sums, counts);
    struct batch_source source = {.time_ns = MAKER_TIME_NS};
    assert_int_equal(pprof_decode(buf_span(&raw), NULL, &source.profile, &err), ERR_NONE);
    const struct profile_value_type *types = source.profile->value_types;
    uint32_t type_count = source.profile->value_type_count, row = 0;
    batch_auto batch = convert(&source, NULL);
    for (uint32_t i = 0; i < type_count; i++) {
        bool is_repeat = false;
        for (uint32_t j = 0; j < i; j++)
            is_repeat |= types[i].type == types[j].type && types[i].unit == types[j].unit;
        if (is_repeat || counts[i] == 0)
            continue;
        const struct batch_profile *profile = &batch->profiles[row++];
        uint64_t sum = 0;
        for (uint32_t j = 0; j < profile->sample_count; j++)
            sum += (uint64_t)batch->samples[profile->first_sample + j].value;
        assert_int_equal(profile->sample_count, counts[i]);
        assert_int_equal(sum, sums[i]);
        assert_int_equal(batch->series[profile->series].type.sample_type.type, types[i].type);
    }
    assert_int_equal(batch->profile_count, row);
}

static void sums_are_those_of_the_files(void **state)
{
    (void)state;
    static const char folder[] = "../shared/data/pprof";
    DIR *directory = opendir(folder);
    if (!directory)
        skip();
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[400];
        if (!span_ends_with(span_text(entry->d_name), ".pb.gz"))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        check_file(path);
        count++;
    }
    closedir(directory);
    assert_true(count > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_is_a_series),
        cmocka_unit_test(strings_stay_canonical),
        cmocka_unit_test(labels_of_samples_are_sets),
        cmocka_unit_test(drop_frames_leaves_frames_out),
        cmocka_unit_test(drop_frames_leaves_inlined_calls_out),
        cmocka_unit_test(many_label_sets_are_distinguished),
        cmocka_unit_test(chosen_labels_split_series),
        cmocka_unit_test(chosen_labels_of_snapshots_stay_with_samples),
        cmocka_unit_test(spans_become_links),
        cmocka_unit_test(a_profile_without_a_time_gets_one),
        cmocka_unit_test(a_time_near_the_end_of_the_window_is_the_end_of_deltas),
        cmocka_unit_test(a_go_profile_of_some_seconds_has_only_deltas_that_end_at_its_time),
        cmocka_unit_test(a_time_outside_the_supported_days_is_refused),
        cmocka_unit_test(a_type_that_repeats_counts_once),
        cmocka_unit_test(decimals_have_one_unit_in_all_series),
        cmocka_unit_test(a_type_that_repeats_with_other_decimals_counts_once),
        cmocka_unit_test(decimals_that_no_series_can_keep_are_refused),
        cmocka_unit_test(profiles_without_samples_are_profiles),
        cmocka_unit_test(series_of_labels_are_idle_where_samples_have_them),
        cmocka_unit_test(names_and_kinds_follow_the_rules),
        cmocka_unit_test(snapshots_have_the_session_as_a_label),
        cmocka_unit_test(a_session_that_fits_no_label_is_left_out),
        cmocka_unit_test(a_wall_type_names_the_whole_profile),
        cmocka_unit_test(the_kind_given_by_the_sender_has_precedence),
        cmocka_unit_test(invalid_labels_are_reported),
        cmocka_unit_test(all_protocols_use_the_same_names),
        cmocka_unit_test(redundant_labels_cost_nothing),
        cmocka_unit_test(labels_of_samples_replace_those_of_the_source),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(sums_are_those_of_the_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
