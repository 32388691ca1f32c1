#include "tests/unit/lib/profile/stacks.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/formats/cpuprofile.h"

#define CALL(name) "\"callFrame\":{\"functionName\":\"" name "\",\"url\":\"a.js\",\"lineNumber\":4}"
#define NODE(id, name) "{\"id\":" id "," CALL(name) "}"
#define TREE                                                                                       \
    "\"nodes\":[{\"id\":1," CALL("(root)") ",\"children\":[2,5]},{\"id\":2," CALL(                 \
        "a") ",\"children\":[3]}," NODE("3", "") "," NODE("5", "(idle)") "]"

static void a_sample_lasts_until_the_next(void **state)
{
    (void)state;
    /* Times 1100, 1350, 1350 (the clock went back), 1750; the profile ends at 2000. */
    struct profile *profile = decode_text(
        cpuprofile_decode, SPAN_LITERAL("{" TREE ",\"startTime\":1000,\"endTime\":2000,"
                                        "\"samples\":[2,3,5,3],\"timeDeltas\":[100,250,-10,410]}"));
    assert_type(profile, 0, "samples", "count");
    assert_type(profile, 1, "time", "microseconds");
    assert_stacks(profile, "samples", "(idle) 1\na 1\na;(anonymous) 2\n");
    assert_stacks(profile, "", "(idle) 400\na 250\na;(anonymous) 250\n");
    assert_int_equal(profile->duration_ns, 1000000);
    assert_int_equal(profile->functions[0].start_line, 5);
    profile_destroy(profile);
}

static void nodes_may_name_their_parents_and_samples_their_times(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        cpuprofile_decode,
        SPAN_LITERAL("{\"nodes\":[" NODE("1", "(root)") ",{\"id\":2,\"parent\":1," CALL(
            "a") "},"
                 "{\"id\":7,\"parent\":2," CALL("b") "}],\"startTime\":0,\"endTime\":10,"
                                                     "\"samples\":[7,2],\"timestamps\":[1,4]}"));
    assert_stacks(profile, "", "a 6\na;b 3\n");
    profile_destroy(profile);
}

/* The depth of each node is that of its stack, in any order of the nodes. */
static void callees_may_precede_their_callers(void **state)
{
    (void)state;
    static const char text[] =
        "{\"nodes\":[{\"id\":4,\"hitCount\":1,\"callFrame\":{\"functionName\":\"c\"}},"
        "{\"id\":3,\"hitCount\":2,\"children\":[4],\"callFrame\":{\"functionName\":\"b\"}},"
        "{\"id\":5,\"hitCount\":4,\"callFrame\":{\"functionName\":\"d\"}},"
        "{\"id\":2,\"children\":[3,5],\"callFrame\":{\"functionName\":\"a\"}},"
        "{\"id\":1,\"children\":[2],\"callFrame\":{\"functionName\":\"(root)\"}},"
        "{\"id\":6,\"hitCount\":8,\"callFrame\":{\"functionName\":\"alone\"}}]}";
    struct profile *profile = decode_text(cpuprofile_decode, span_text(text));
    assert_stacks(profile, "samples", "a;b 2\na;b;c 1\na;d 4\nalone 8\n");
    profile_destroy(profile);
    const struct profile_limits few = {.stack_entries = 7};
    assert_refused(cpuprofile_decode, text, &few, ERR_TOO_LARGE, "stack entries than the limit, 7");
}

static void without_samples_hits_share_the_time(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        cpuprofile_decode,
        SPAN_LITERAL("{\"nodes\":[{\"id\":1,\"hitCount\":1," CALL(
            "a") "},{\"id\":2,\"hitCount\":2," CALL("b") "}],\"startTime\":0,\"endTime\":100}"));
    assert_stacks(profile, "samples", "a 1\nb 2\n");
    assert_stacks(profile, "time", "a 33\nb 67\n");
    profile_destroy(profile);
}

static void the_old_format_is_a_tree_with_seconds(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        cpuprofile_decode,
        SPAN_LITERAL("{\"head\":{\"functionName\":\"(root)\",\"id\":1,\"children\":[{"
                     "\"functionName\":\"f\",\"url\":\"x.js\",\"lineNumber\":3,\"id\":2,"
                     "\"hitCount\":2,\"children\":[]}]},\"startTime\":1.5,\"endTime\":2.5,"
                     "\"samples\":[2,2],\"timestamps\":[1500000,1600000]}"));
    assert_stacks(profile, "samples", "f 2\n");
    assert_stacks(profile, "time", "f 1000000\n");
    assert_int_equal(profile->functions[0].start_line, 3);
    profile_destroy(profile);
}

static void inconsistent_profiles_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"{\"nodes\":[", "line 1"},
        {"{\"startTime\":1}", "neither nodes nor head"},
        {"{\"nodes\":[{\"id\":1,\"children\":[2]}]}", "child 0 of node 1"},
        {"{\"nodes\":[{\"id\":1},{\"id\":1}]}", "two nodes have the id 1"},
        {"{\"nodes\":[{\"id\":1,\"children\":[2]},{\"id\":2,\"children\":[1]}]}", "own ancestor"},
        {"{\"nodes\":[{\"id\":1,\"children\":[1]}]}", "own ancestor"},
        {"{\"nodes\":[{\"id\":1,\"children\":[3]},{\"id\":2,\"children\":[3]},{\"id\":3}]}",
         "two parents"},
        {"{\"nodes\":[{\"id\":1,\"parent\":9}]}", "the parent of node 1"},
        {"{\"nodes\":[{}]}", "no id"},
        {"{\"nodes\":[{\"id\":1}],\"samples\":[8],\"timeDeltas\":[1]}", "sample 0"},
        {"{\"nodes\":[{\"id\":1}],\"samples\":[1,1],\"timeDeltas\":[1]}", "fewer times"},
        {"{\"nodes\":[{\"id\":1}],\"samples\":[1],\"timeDeltas\":[\"x\"]}",
         "sample 0 is not a time"},
        {"{\"nodes\":[{\"id\":1}],\"samples\":[1,1],\"timeDeltas\":[-15,1e30]}",
         "sample 1 is not a time"},
        {"{\"nodes\":[{\"id\":1}],\"samples\":[1],\"timeDeltas\":[-1e30]}",
         "sample 0 is not a time"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(cpuprofile_decode, cases[i].text, NULL, ERR_INVALID, cases[i].words);
}

static void too_much_json_is_refused_before_it_is_parsed(void **state)
{
    (void)state;
    const struct profile_limits limits = {.json_bytes = 20};
    assert_refused(cpuprofile_decode, "{\"nodes\":[{\"id\":1}],\"x\":1}", &limits, ERR_TOO_LARGE,
                   "limit is 20");
    buf_auto text;
    buf_init(&text, 1 << 20);
    buf_append_text(&text, "{\"nodes\":[");
    for (int i = 0; i < 100000; i++)
        buf_append_text(&text, "{},");
    buf_append_text(&text, "{}]}");
    buf_append_byte(&text, '\0');
    const struct profile_limits tree = {.json_bytes = 1 << 20};
    assert_refused(cpuprofile_decode, (const char *)text.data, &tree, ERR_TOO_LARGE, "MiB");
}

/* Two nodes of one function are one stack, but both must be followed to detect that. */
static void repeated_stacks_count_for_the_limit(void **state)
{
    (void)state;
    static const char text[] = "{\"nodes\":[{\"id\":1,\"hitCount\":1,\"children\":[2,3]},"
                               "{\"id\":2,\"hitCount\":1},{\"id\":3,\"hitCount\":1}]}";
    const struct profile_limits enough = {.stack_entries = 5}, few = {.stack_entries = 4};
    struct profile *profile = NULL;
    struct err err;
    assert_int_equal(cpuprofile_decode(span_text(text), &enough, &profile, &err), ERR_NONE);
    assert_int_equal(profile->sample_count, 2);
    profile_destroy(profile);
    assert_refused(cpuprofile_decode, text, &few, ERR_TOO_LARGE, "stack entries");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_lasts_until_the_next),
        cmocka_unit_test(nodes_may_name_their_parents_and_samples_their_times),
        cmocka_unit_test(callees_may_precede_their_callers),
        cmocka_unit_test(without_samples_hits_share_the_time),
        cmocka_unit_test(the_old_format_is_a_tree_with_seconds),
        cmocka_unit_test(inconsistent_profiles_are_refused),
        cmocka_unit_test(too_much_json_is_refused_before_it_is_parsed),
        cmocka_unit_test(repeated_stacks_count_for_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
