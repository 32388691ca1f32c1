#include "tests/unit/lib/profile/stacks.h"

#include "lib/base/err.h"
#include "lib/profile/formats/speedscope.h"

#define FRAMES                                                                                     \
    "\"shared\":{\"frames\":[{\"name\":\"a\",\"file\":\"a.py\",\"line\":7},{\"name\":\"b\"},"      \
    "{\"name\":\"c\"}]}"
#define SAMPLED(unit, weights)                                                                     \
    "{\"type\":\"sampled\",\"name\":\"one\",\"unit\":\"" unit                                      \
    "\",\"samples\":[[0,1],[0,1,2],[0]],"                                                          \
    "\"weights\":" weights "}"
#define EVENTED(unit, events)                                                                      \
    "{\"type\":\"evented\",\"name\":\"two\",\"unit\":\"" unit "\",\"startValue\":0,"               \
    "\"endValue\":14,\"events\":[" events "]}"
#define EVENT(type, frame, at) "{\"type\":\"" type "\",\"frame\":" frame ",\"at\":" at "}"
#define FILE_OF(profiles) "{" FRAMES ",\"profiles\":[" profiles "]}"

static void weights_are_the_values_of_sampled_profiles(void **state)
{
    (void)state;
    struct profile *profile =
        decode_text(speedscope_decode, SPAN_LITERAL(FILE_OF(SAMPLED("seconds", "[1,2,4]"))));
    assert_type(profile, 0, "time", "nanoseconds");
    assert_stacks(profile, "", "a 4000000000\na;b 1000000000\na;b;c 2000000000\n");
    assert_int_equal(profile->label_start[profile->sample_count], 0);
    profile_destroy(profile);
}

/* Files of one tool have one type, whether a file has fractions or not. */
static void times_of_all_units_become_nanoseconds(void **state)
{
    (void)state;
    static const struct {
        const char *file, *stacks;
    } cases[] = {
        {FILE_OF(SAMPLED("nanoseconds", "[1,2,3]")), "a 3\na;b 1\na;b;c 2\n"},
        {FILE_OF(SAMPLED("microseconds", "[1,2,3]")), "a 3000\na;b 1000\na;b;c 2000\n"},
        {FILE_OF(SAMPLED("milliseconds", "[1,2,3]")), "a 3000000\na;b 1000000\na;b;c 2000000\n"},
        {FILE_OF(SAMPLED("milliseconds", "[1.5,0.000002,4]")), "a 4000000\na;b 1500000\na;b;c 2\n"},
        {FILE_OF(EVENTED("seconds", EVENT("O", "0", "1") "," EVENT("C", "0", "3"))),
         "a 2000000000\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct profile *profile = decode_text(speedscope_decode, span_text(cases[i].file));
        assert_type(profile, 0, "time", "nanoseconds");
        assert_stacks(profile, "", cases[i].stacks);
        profile_destroy(profile);
    }
}

static void fractions_of_samples_are_kept_by_the_unit(void **state)
{
    (void)state;
    static const struct {
        const char *weights, *unit, *stacks;
    } cases[] = {
        {FILE_OF(SAMPLED("none", "[0.5,0.5,0]")), "count/10", "a;b 0.5\na;b;c 0.5\n"},
        {FILE_OF(SAMPLED("none", "[0.4,0.1,0.2]")), "count/10", "a 0.2\na;b 0.4\na;b;c 0.1\n"},
        {FILE_OF(SAMPLED("none", "[0.25,3,1e-6]")), "count/1000000",
         "a 0.000001\na;b 0.25\na;b;c 3\n"},
        {FILE_OF(SAMPLED("none", "[2e18,0.25,0.5]")), "count",
         "a;b 2000000000000000000\na;b;c 1\n"}, /* too large for decimals */
        {FILE_OF(SAMPLED("none", "[3,2,1]")), "count", "a 1\na;b 3\na;b;c 2\n"},
        {FILE_OF(SAMPLED("none", "[3.0,2,1]")), "count/10", "a 1\na;b 3\na;b;c 2\n"},
        {FILE_OF(EVENTED("none", EVENT("O", "0", "0.1") "," EVENT("O", "1", "0.3") "," EVENT(
                                     "C", "1", "0.35") "," EVENT("C", "0", "0.4"))),
         "count/100", "a 0.25\na;b 0.05\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct profile *profile = decode_text(speedscope_decode, span_text(cases[i].weights));
        assert_type(profile, 0, "samples", cases[i].unit);
        assert_stacks(profile, "", cases[i].stacks);
        profile_destroy(profile);
    }
}

/* All profiles of a file use the same unit of a type. */
static void decimals_are_those_of_all_profiles(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        speedscope_decode, SPAN_LITERAL(FILE_OF(SAMPLED("none", "[1,2,3]") "," SAMPLED(
                               "none", "[0.5,0,0]") "," SAMPLED("bytes", "[1.5,1,1]"))));
    assert_type(profile, 0, "samples", "count/10");
    assert_type(profile, 1, "space", "bytes");
    assert_stacks(profile, "samples", "a 3\na;b 1.5\na;b;c 2\n");
    profile_destroy(profile);
}

static void fractions_that_no_unit_keeps_add_up(void **state)
{
    (void)state;
    struct profile *profile =
        decode_text(speedscope_decode, SPAN_LITERAL(FILE_OF(SAMPLED("bytes", "[0.4,0.4,0.4]"))));
    assert_stacks(profile, "", "a;b 1\n");
    profile_destroy(profile);
    profile = decode_text(speedscope_decode,
                          SPAN_LITERAL(FILE_OF(SAMPLED("nanoseconds", "[0.5,0.5,7]"))));
    assert_stacks(profile, "", "a 7\na;b;c 1\n");
    profile_destroy(profile);
    profile = decode_text(speedscope_decode, SPAN_LITERAL(FILE_OF(SAMPLED("bytes", "[0,0,1.5]"))));
    assert_stacks(profile, "", "a 2\n"); /* stacks without a value get no part of the rounding */
    profile_destroy(profile);
}

static void evented_profiles_count_time_between_events(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        speedscope_decode,
        SPAN_LITERAL(FILE_OF(EVENTED(
            "none",
            EVENT("O", "0", "0") "," EVENT("O", "1", "2") "," EVENT("C", "1", "5") "," EVENT(
                "O", "1", "5") "," EVENT("C", "1", "9") "," EVENT("C", "0", "14")))));
    assert_type(profile, 0, "samples", "count");
    assert_stacks(profile, "", "a 7\na;b 7\n");
    profile_destroy(profile);
}

static void open_frames_last_until_the_end(void **state)
{
    (void)state;
    struct profile *profile =
        decode_text(speedscope_decode,
                    SPAN_LITERAL(FILE_OF(
                        EVENTED("microseconds", EVENT("O", "0", "1") "," EVENT("O", "2", "4")))));
    assert_stacks(profile, "", "a 3000\na;c 10000\n");
    profile_destroy(profile);
}

static void several_profiles_share_types_by_unit(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        speedscope_decode,
        SPAN_LITERAL("{" FRAMES ",\"activeProfileIndex\":1,\"profiles\":[" SAMPLED(
            "seconds",
            "[1,2,4]") "," SAMPLED("bytes", "[8,0,16]") "," EVENTED("milliseconds",
                                                                    EVENT("O", "0", "0") "," EVENT(
                                                                        "C", "0", "5")) "]}"));
    assert_int_equal(profile->value_type_count, 2);
    assert_type(profile, 0, "time", "nanoseconds");
    assert_type(profile, 1, "space", "bytes");
    assert_stacks(profile, "", "a 16\na;b 8\n"); /* the default type */
    assert_stacks_by(profile, "time", "profile",
                     "one;a 4000000000\none;a;b 1000000000\none;a;b;c 2000000000\n"
                     "two;a 5000000\n");
    profile_destroy(profile);
}

static void inconsistent_profiles_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err_code code;
        const char *words;
    } cases[] = {
        {"{\"profiles\":[", ERR_INVALID, "line 1"},
        {"{\"profiles\":[]}", ERR_INVALID, "shared.frames or profiles"},
        {FILE_OF(""), ERR_INVALID, "no profile"},
        {FILE_OF("{\"type\":\"heap\",\"unit\":\"none\"}"), ERR_UNSUPPORTED, "'heap'"},
        {FILE_OF(SAMPLED("furlongs", "[1,2,4]")), ERR_UNSUPPORTED, "'furlongs'"},
        {FILE_OF(SAMPLED("none", "[1,2]")), ERR_INVALID, "as many weights"},
        {FILE_OF(SAMPLED("none", "[1,2,-4]")), ERR_INVALID, "weight 2"},
        {FILE_OF(SAMPLED("none", "[1,2,\"x\"]")), ERR_INVALID, "weight 2"},
        {FILE_OF(SAMPLED("none", "[1,2,1e30]")), ERR_INVALID, "too large to count"},
        {FILE_OF(EVENTED("seconds", EVENT("O", "0", "0.5") "," EVENT("C", "0", "1e15"))),
         ERR_INVALID, "too large to count"},
        {FILE_OF("{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0,9]],\"weights\":[1]}"),
         ERR_INVALID, "frame 1 is not in"},
        {FILE_OF(EVENTED("none", EVENT("C", "0", "1"))), ERR_INVALID, "innermost"},
        {FILE_OF(EVENTED("none", EVENT("O", "0", "3") "," EVENT("C", "1", "4"))), ERR_INVALID,
         "event 1"},
        {FILE_OF(EVENTED("none", EVENT("O", "0", "3") "," EVENT("C", "0", "2"))), ERR_INVALID,
         "earlier than the previous"},
        {FILE_OF(EVENTED("none", EVENT("X", "0", "3"))), ERR_INVALID, "neither O nor C"},
        {FILE_OF(EVENTED("none", EVENT("O", "7", "3"))), ERR_INVALID, "shared.frames"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(speedscope_decode, cases[i].text, NULL, cases[i].code, cases[i].words);
}

/* The second profile adds no stack, but its stacks must be followed to detect that. */
static void repeated_stacks_count_for_the_limit(void **state)
{
    (void)state;
    static const char text[] =
        FILE_OF(EVENTED("none", EVENT("O", "0", "1") "," EVENT("O", "1", "2")) "," EVENTED(
            "none", EVENT("O", "0", "1") "," EVENT("O", "1", "2")));
    const struct profile_limits enough = {.stack_entries = 6}, few = {.stack_entries = 5};
    struct profile *profile = NULL;
    struct err err;
    assert_int_equal(speedscope_decode(span_text(text), &enough, &profile, &err), ERR_NONE);
    assert_int_equal(profile->stack_start[profile->sample_count], 3);
    profile_destroy(profile);
    assert_refused(speedscope_decode, text, &few, ERR_TOO_LARGE, "stack entries");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_the_values_of_sampled_profiles),
        cmocka_unit_test(times_of_all_units_become_nanoseconds),
        cmocka_unit_test(fractions_of_samples_are_kept_by_the_unit),
        cmocka_unit_test(decimals_are_those_of_all_profiles),
        cmocka_unit_test(fractions_that_no_unit_keeps_add_up),
        cmocka_unit_test(evented_profiles_count_time_between_events),
        cmocka_unit_test(open_frames_last_until_the_end),
        cmocka_unit_test(several_profiles_share_types_by_unit),
        cmocka_unit_test(inconsistent_profiles_are_refused),
        cmocka_unit_test(repeated_stacks_count_for_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
