#include "tests/unit/test.h"

#include "agent/labels/label_set.h"
#include "agent/labels/relabel.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <stdio.h>
#include <string.h>

/* "a=1 b=2" */
static void fill(struct label_set *set, struct arena *arena, const char *text)
{
    struct span rest = span_text(text), one, name, value;
    label_set_init(set, arena);
    while (rest.size) {
        span_split(rest, ' ', &one, &rest);
        span_split(one, '=', &name, &value);
        label_set_put(set, name, value);
    }
}

/* The labels after the rules as "name=value", or "dropped". */
static const char *result_of(struct arena *arena, const char *rules_text, const char *labels_text)
{
    struct relabel_rules *rules;
    struct label_set set;
    struct err err = {0};
    if (relabel_read(span_text(rules_text), arena, &rules, &err))
        fail_msg("%s", err.message);
    fill(&set, arena, labels_text);
    if (!relabel_apply(rules, &set))
        return "dropped";
    const char *text = "";
    for (uint32_t i = 0; i < set.count; i++)
        text = arena_printf(arena, "%s%s%.*s=%.*s", text, i ? " " : "",
                            SPAN_PRINT(set.labels[i].name), SPAN_PRINT(set.labels[i].value));
    return text;
}

static void each_action_does_what_prometheus_does(void **state)
{
    static const struct {
        const char *rules;
        const char *labels;
        const char *expected;
    } cases[] = {
        /* replace: the regex must match the whole text; $1; values joined by the separator */
        {"- source_labels: [a]\n  target_label: d\n  regex: f(.*)\n  replacement: ch${1}-ch${1}",
         "a=foo b=bar", "a=foo b=bar d=choo-choo"},
        {"- source_labels: [a, b]\n  target_label: d\n  regex: f(.*);(.*)r\n"
         "  replacement: b${1}${2}m",
         "a=foo b=bar c=baz", "a=foo b=bar c=baz d=boobam"},
        {"- source_labels: [a]\n  regex: oo\n  target_label: d", "a=foo", "a=foo"},
        {"- target_label: d\n  replacement: x", "a=1", "a=1 d=x"},
        {"- source_labels: [missing]\n  target_label: a", "a=1", ""},
        {"- source_labels: [missing]\n  target_label: a\n  regex: (.+)", "a=1", "a=1"},
        {"- source_labels: [a]\n  separator: '|'\n  target_label: b", "a=1", "a=1 b=1"},
        {"- source_labels: [a, b]\n  separator: '|'\n  target_label: c", "a=1 b=2",
         "a=1 b=2 c=1|2"},
        /* $1x means the group "1x", which does not exist; $$ is a dollar; other $ are literal */
        {"- source_labels: [a]\n  target_label: b\n  replacement: $1x", "a=1", "a=1"},
        {"- source_labels: [a]\n  target_label: b\n  replacement: ${1}x", "a=1", "a=1 b=1x"},
        {"- source_labels: [a]\n  target_label: b\n  replacement: '$$1-$-${1-$01'", "a=1",
         "a=1 b=$1-$-${1-"},
        {"- source_labels: [a]\n  target_label: b\n  replacement: $9z$9", "a=1 b=2", "a=1"},
        {"- source_labels: [a]\n  regex: (x)?(1)\n  target_label: b\n  replacement: $1$2", "a=1",
         "a=1 b=1"},
        /* a resulting name that is not valid: no change */
        {"- source_labels: [a]\n  target_label: ${1}\n  replacement: v", "a=-", "a=-"},
        {"- source_labels: [a]\n  target_label: ${1}_x\n  replacement: v", "a=k", "a=k k_x=v"},
        {"- source_labels: [a]\n  target_label: b\n  regex: (?i)FOO|bar", "a=foo", "a=foo"},
        {"- source_labels: [a]\n  target_label: b\n  regex: (?i)(FOO|bar)", "a=foo", "a=foo b=foo"},
        {"- source_labels: [a]\n  target_label: b\n  regex: (f|fo|foo)", "a=foo", "a=foo b=foo"},
        /* keep and drop */
        {"- source_labels: [a]\n  action: keep\n  regex: fo+", "a=foo", "a=foo"},
        {"- source_labels: [a]\n  action: keep\n  regex: o+", "a=foo", "dropped"},
        {"- source_labels: [a]\n  action: drop\n  regex: fo+", "a=foo", "dropped"},
        {"- source_labels: [a]\n  action: Drop\n  regex: o+", "a=foo", "a=foo"},
        {"- action: drop\n  regex: ''", "a=foo", "dropped"},
        {"- source_labels: [a]\n  action: keepequal\n  target_label: b", "a=1 b=1", "a=1 b=1"},
        {"- source_labels: [a]\n  action: keepequal\n  target_label: b", "a=1 b=2", "dropped"},
        {"- source_labels: [a]\n  action: dropequal\n  target_label: b", "a=1 b=1", "dropped"},
        {"- source_labels: [a]\n  action: dropequal\n  target_label: b", "a=1 b=2", "a=1 b=2"},
        /* the last eight bytes of the MD5 of "baz" and "foo\nbar"; the results are those of
         * Prometheus */
        {"- source_labels: [c]\n  target_label: d\n  action: hashmod\n  modulus: 1000", "c=baz",
         "c=baz d=976"},
        {"- source_labels: [a]\n  action: lowercase\n  target_label: a", "a=FoO\xc3\x84\xd0\x96",
         "a=foo\xc3\xa4\xd0\xb6"},
        {"- source_labels: [a]\n  action: uppercase\n  target_label: b", "a=foo\xc3\xa4",
         "a=foo\xc3\xa4 b=FOO\xc3\x84"},
        {"- action: labelmap\n  regex: __meta_(.+)", "__meta_a=1 b=2", "__meta_a=1 b=2 a=1"},
        {"- action: labelmap\n  regex: (b.*)\n  replacement: bar_${1}", "a=foo b1=bar b2=baz",
         "a=foo b1=bar b2=baz bar_b1=bar bar_b2=baz"},
        {"- action: labeldrop\n  regex: (b.*)", "a=foo b1=bar b2=baz", "a=foo"},
        {"- action: labelkeep\n  regex: (b.*)", "a=foo b1=bar b2=baz", "b1=bar b2=baz"},
        /* rules are applied in order, each to the result of the previous ones */
        {"- source_labels: [a]\n  target_label: b\n- source_labels: [b]\n  target_label: c\n"
         "- action: labeldrop\n  regex: a|b",
         "a=1", "c=1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        arena_auto arena = arena_create();
        assert_string_equal(result_of(arena, cases[i].rules, cases[i].labels), cases[i].expected);
    }
}

static void a_dot_matches_line_feeds_too(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    assert_string_equal(result_of(arena,
                                  "- source_labels: [a]\n  target_label: b\n"
                                  "  action: hashmod\n  modulus: 1000\n"
                                  "- source_labels: [a]\n  action: keep\n  regex: foo.bar",
                                  "a=foo\nbar"),
                        "a=foo\nbar b=734");
}

static void rules_may_be_formatted_freely(void **state)
{
    static const char *const texts[] = {
        "relabel_configs:\n- source_labels: [__meta_a]\n  target_label: x\n",
        ("---\n# c\nrelabel_configs: # d\n\n  - source_labels:\n    - __meta_a\n"
         "    target_label: x # e\n"),
        "\"relabel_configs\":\n- \"source_labels\":\n  - \"__meta_a\"\n  'target_label': \"x\"\n",
        "- target_label: 'x'\r\n  source_labels: [ '__meta_a' ]\r\n",
        "-\n  target_label: x\n  source_labels:\n    - __meta_a # so\n",
        "- source_labels: [__meta_a]\n  regex: '(.*)'\n  replacement: \"$1\"\n  target_label: x",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        arena_auto arena = arena_create();
        assert_string_equal(result_of(arena, texts[i], "__meta_a=it"), "__meta_a=it x=it");
    }
    arena_auto arena = arena_create();
    assert_string_equal(result_of(arena, "relabel_configs: []\n", "a=1"), "a=1");
    assert_string_equal(result_of(arena, "", "a=1"), "a=1");
    assert_string_equal(result_of(arena, "- target_label: x\n  replacement: 'it''s #1'", "a=1"),
                        "a=1 x=it's #1");
}

static void an_invalid_rule_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"scrape_configs:\n", "line 1: only one relabel_configs"},
        {"- target_label: x\n  action: explode\n", "line 2: there is no such action"},
        {"- target_label: x\n  colour: red\n", "line 2: there is no such key"},
        {"- target_label: x\n   regex: a\n", "line 2: the keys of a rule begin in one column"},
        {"- target_label: x\n\tregex: a\n", "line 2: YAML is indented"},
        {"- target_label: x\n  regex: (?=a)\n", "look-around"},
        {"- target_label: x\n  regex: a(\n", "line 2"},
        {"- target_label: x\n  regex: 'a\n", "a quote is not closed"},
        {"- target_label: x\n  regex: |\n    a\n", "this kind of YAML"},
        {"- target_label: x\n  regex: &a b\n", "this kind of YAML"},
        {"- {action: drop}\n", "no such key"},
        {"- action: replace\n", "needs a target_label"},
        {"- action: hashmod\n  target_label: x\n", "needs a modulus"},
        {"- action: hashmod\n  target_label: x\n  modulus: many\n", "modulus is a number"},
        {"- action: lowercase\n  target_label: ${1}\n", "no name of a label"},
        {"- action: lowercase\n  target_label: x\n  replacement: y\n", "has no replacement"},
        {"- action: labeldrop\n  source_labels: [a]\n", "a regex alone"},
        {"- action: keepequal\n  target_label: x\n  regex: a\n", "target_label alone"},
        {"- source_labels: a\n", "is a list"},
        {"- source_labels: [a-b]\n", "no name of a label"},
        {"- target_label: a-b\n", "no name of a label"},
        {"nonsense\n", "this is no \"key: value\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        arena_auto arena = arena_create();
        struct relabel_rules *rules;
        struct err err = {0};
        assert_int_equal(relabel_read(span_text(cases[i].text), arena, &rules, &err), ERR_INVALID);
        if (!strstr(err.message, cases[i].words))
            fail_msg("%s: %s", cases[i].text, err.message);
    }
}

static void a_set_has_each_label_once_and_none_without_a_value(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct label_set set;
    fill(&set, arena, "a=1 a=2 b= c.d/e=3 9x=4");
    assert_int_equal(set.count, 3);
    assert_true(span_equal_text(label_set_get(&set, SPAN_LITERAL("a")), "2"));
    assert_true(span_equal_text(label_set_get(&set, SPAN_LITERAL("c_d_e")), "3"));
    assert_true(span_equal_text(label_set_get(&set, SPAN_LITERAL("_x")), "4"));
    for (int i = 0; i < 2 * LABEL_SET_MAX; i++)
        label_set_put(&set, span_text(arena_printf(arena, "n%d", i)), SPAN_LITERAL("v"));
    assert_int_equal(set.count, LABEL_SET_MAX);
    assert_int_equal(set.left_out, LABEL_SET_MAX + 3);
    label_set_put(&set, SPAN_LITERAL("a"), SPAN_LITERAL("\xff!"));
    assert_true(span_equal_text(label_set_get(&set, SPAN_LITERAL("a")), "?!"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_action_does_what_prometheus_does),
        cmocka_unit_test(a_dot_matches_line_feeds_too),
        cmocka_unit_test(rules_may_be_formatted_freely),
        cmocka_unit_test(an_invalid_rule_is_refused_with_its_line),
        cmocka_unit_test(a_set_has_each_label_once_and_none_without_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
