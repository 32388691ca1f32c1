#include "tests/unit/test.h"

#include "lib/input/suggest.h"

#include "lib/base/arena.h"
#include "lib/input/options.h"

#include <string.h>

static void assert_suggested(const char *typed, const char *expected)
{
    static const char *const names[] = {"push", "diff",   "query",    "export",
                                        "get",  "delete", "debuginfo"};
    const char *found = suggest_name(typed, names, sizeof(names) / sizeof(*names));
    if (expected)
        assert_string_equal(found, expected);
    else
        assert_null(found);
}

static void finds_the_closest_name(void **state)
{
    (void)state;
    assert_suggested("psuh", "push");
    assert_suggested("PUSH", "push");
    assert_suggested("dif", "diff");
    assert_suggested("qurey", "query");
    assert_suggested("exprot", "export");
    assert_suggested("debug", "debuginfo");
    assert_suggested("deletes", "delete");
    assert_suggested("gett", "get");
    assert_suggested("upload", NULL);
    assert_suggested("", NULL);
    assert_suggested("x", NULL);
}

static void long_names_are_not_compared(void **state)
{
    (void)state;
    char longest[SUGGEST_NAME_BYTES + 2];
    memset(longest, 'a', sizeof(longest));
    longest[SUGGEST_NAME_BYTES] = '\0';
    assert_int_equal(suggest_distance(longest, longest), 0);
    longest[SUGGEST_NAME_BYTES] = 'a';
    longest[SUGGEST_NAME_BYTES + 1] = '\0';
    assert_int_equal(suggest_distance(longest, longest), SUGGEST_NOT_CLOSE);
    assert_int_equal(suggest_distance("push", longest), SUGGEST_NOT_CLOSE);
}

static const struct option_row part_rows[] = {{"limit", 'n', "N", "", OPTION_IGNORED}, {0}};
static const struct option_table part = {.rows = part_rows};
static const struct option_part parts[] = {{&part, 0, NULL, 0}, {0}};
static const struct option_row rows[] = {
    {"title", 't', "TEXT", "", OPTION_IGNORED},
    {"visibility", 0, "WHO", "", OPTION_IGNORED},
    {"visible", 0, NULL, "", OPTION_IGNORED},
    {"off-cpu", 0, "SHARE", "", .is_value_optional = true},
    {0},
};

static void take_nothing(void *values, char **words)
{
    (void)values;
    (void)words;
}

static void assert_option(const char *line, bool is_in_order, const char *typed,
                          const char *expected)
{
    arena_auto arena = arena_create();
    char *argv[8] = {NULL}, *rest = arena_strdup(arena, line);
    int argc = 0;
    const char *found_typed = NULL;
    while ((argv[argc] = strsep(&rest, " ")) != NULL)
        argc++;
    const struct option_table options = {
        .rows = rows, .parts = parts, .take_words = is_in_order ? take_nothing : NULL};
    const char *found = suggest_option(&options, argc, argv, &found_typed);
    if (!expected) {
        assert_null(found);
        return;
    }
    assert_string_equal(found, expected);
    assert_string_equal(found_typed, typed);
}

static void finds_the_closest_option(void **state)
{
    (void)state;
    assert_option("perfolio --visiblity=team file", false, "--visiblity=team", "visibility");
    assert_option("perfolio file --limt 3", false, "--limt", "limit");
    assert_option("perfolio --hepl", false, "--hepl", "help");
    assert_option("perfolio --nonsense", false, NULL, NULL);
}

static void arguments_of_options_are_not_suggested(void **state)
{
    (void)state;
    assert_option("perfolio --title --limt", false, NULL, NULL);
    assert_option("perfolio -t --limt", false, NULL, NULL);
    assert_option("perfolio -n --limt", false, NULL, NULL);
    assert_option("perfolio --off-cpu --limt", false, "--limt", "limit");
    assert_option("perfolio -- --limt", false, NULL, NULL);
    assert_option("perfolio --vis", false, NULL, NULL); /* ambiguous, which argp reports */
    assert_option("perfolio --visibil=team", false, NULL, NULL);
    assert_option("perfolio command --limt", true, NULL, NULL);
    assert_option("perfolio --limt command", true, "--limt", "limit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_closest_name),
        cmocka_unit_test(long_names_are_not_compared),
        cmocka_unit_test(finds_the_closest_option),
        cmocka_unit_test(arguments_of_options_are_not_suggested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
