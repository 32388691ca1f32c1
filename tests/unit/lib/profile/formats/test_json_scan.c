#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "lib/profile/formats/json_scan.h"

static void an_object_is_distinguished_from_a_stack_in_braces(void **state)
{
    (void)state;
    assert_true(json_scan_is_object(SPAN_LITERAL(" \n{ \"a\": 1}")));
    assert_true(json_scan_is_object(SPAN_LITERAL("{}")));
    assert_false(json_scan_is_object(SPAN_LITERAL("{main};run 1")));
    assert_false(json_scan_is_object(SPAN_LITERAL("{")));
    assert_false(json_scan_is_object(SPAN_LITERAL("[1]")));
    assert_false(json_scan_is_object(SPAN_LITERAL("")));
}

static void only_members_of_the_top_level_count(void **state)
{
    (void)state;
    struct span text = SPAN_LITERAL("{\"a\":{\"b\":1,\"c\":[{\"d\":2}]},\"e \\\"f\\\"\":\"g\","
                                    "\"h\" : 3} {\"i\":1}");
    assert_true(json_scan_has_member(text, "a"));
    assert_true(json_scan_has_member(text, "h"));
    assert_false(json_scan_has_member(text, "b"));
    assert_false(json_scan_has_member(text, "d"));
    assert_false(json_scan_has_member(text, "g")); /* a value */
    assert_false(json_scan_has_member(text, "i")); /* behind the end */
    assert_true(json_scan_has_member(text, "e \\\"f\\\""));
}

static void several_members_are_found_in_one_pass(void **state)
{
    (void)state;
    static const char *const names[] = {"a", NULL, "x", "h", "a"};
    struct span text = SPAN_LITERAL("{\"a\":{\"x\":1},\"h\":3}");
    assert_int_equal(json_scan_find_members(text, names, 5), 1 << 0 | 1 << 3 | 1 << 4);
    assert_int_equal(json_scan_find_members(text, names, 0), 0);
}

static void truncated_text_has_no_member(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"", "{\"a", "{\"a\"", "{\"a\\", "{\"b\":\"\\\"", "{}}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(json_scan_has_member(span_text(texts[i]), "a"));
}

static void the_cost_of_a_tree_is_bounded(void **state)
{
    (void)state;
    struct err err;
    struct span plain = SPAN_LITERAL("{\"a\":\"[{[{[{[{,,,,,,,,,,,,,,\"}");
    struct span dense = SPAN_LITERAL("[{},{},{},{},{},{},{},{},{},{}]");
    assert_int_equal(json_scan_check(plain, 100, &err),
                     ERR_NONE); /* brackets within a string are text */
    assert_int_equal(json_scan_check(plain, plain.size - 1, &err), ERR_TOO_LARGE);
    assert_int_equal(json_scan_check(dense, 100, &err), ERR_TOO_LARGE);
    assert_int_equal(json_scan_check(dense, 1000, &err), ERR_NONE);
    struct span texts = SPAN_LITERAL("[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"]");
    struct span lists = SPAN_LITERAL("[[],[],[],[],[],[],[],[],[],[]]");
    struct span keys = SPAN_LITERAL("{\"a\":1,\"b\" :2,\"c\":3,\"d\":4}");
    assert_int_equal(json_scan_check(texts, 100, &err), ERR_TOO_LARGE);
    assert_int_equal(json_scan_check(lists, 140, &err), ERR_TOO_LARGE);
    assert_int_equal(json_scan_check(keys, 100, &err), ERR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_is_distinguished_from_a_stack_in_braces),
        cmocka_unit_test(only_members_of_the_top_level_count),
        cmocka_unit_test(several_members_are_found_in_one_pass),
        cmocka_unit_test(truncated_text_has_no_member),
        cmocka_unit_test(the_cost_of_a_tree_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
