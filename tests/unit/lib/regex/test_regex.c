#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/regex/regex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool matches(const char *pattern, struct span subject)
{
    struct regex *regex;
    struct err err = {0};
    bool is_match = false;
    if (regex_create(span_text(pattern), &regex, &err))
        print_error("%s\n", err.message);
    assert_int_equal(err.code, ERR_NONE);
    assert_int_equal(regex_match(regex, subject, &is_match, &err), ERR_NONE);
    regex_destroy(regex);
    return is_match;
}

static void assert_refused(const char *pattern, const char *words)
{
    struct regex *regex = NULL;
    struct err err = {0};
    assert_int_equal(regex_create(span_text(pattern), &regex, &err), ERR_INVALID);
    if (!strstr(err.message, words))
        print_error("%s: %s\n", pattern, err.message);
    assert_non_null(strstr(err.message, words));
    assert_null(regex);
}

static void matches_anywhere_and_is_case_sensitive(void **state)
{
    (void)state;
    assert_true(matches("park", SPAN_LITERAL("runtime.gopark")));
    assert_false(matches("PARK", SPAN_LITERAL("runtime.gopark")));
    assert_true(matches("(?i)PARK", SPAN_LITERAL("runtime.gopark")));
    assert_true(matches("^runtime\\.(gopark|mcall)$", SPAN_LITERAL("runtime.mcall")));
    assert_false(matches("^runtime$", SPAN_LITERAL("runtime.mcall")));
    assert_true(matches("", SPAN_LITERAL("")));
    assert_true(matches("^$", span_of(NULL, 0)));
}

static void a_dollar_matches_only_the_very_end(void **state)
{
    (void)state;
    assert_false(matches("a$", SPAN_LITERAL("a\n")));
    assert_false(matches("a.b", SPAN_LITERAL("a\nb")));
    assert_true(matches("a.b", SPAN_LITERAL("a\rb")));
}

static void braces_and_brackets_in_names_stand_for_themselves(void **state)
{
    (void)state;
    assert_true(matches("{{closure}}", SPAN_LITERAL("core::ops::{{closure}}::h1")));
    assert_true(matches("\\(\\*T\\)", SPAN_LITERAL("main.(*T).Run")));
    assert_true(matches("a{2}b", SPAN_LITERAL("aab")));
    assert_false(matches("a{2}b", SPAN_LITERAL("a{2}b")));
}

static void invalid_utf8_does_not_match_by_accident(void **state)
{
    (void)state;
    assert_true(matches("caf", SPAN_LITERAL("caf\xe9 noir")));
    assert_true(matches("noir$", SPAN_LITERAL("caf\xe9 noir")));
    assert_false(matches("caf.n", SPAN_LITERAL("caf\xe9n")));
    assert_true(matches("caf\xc3\xa9", SPAN_LITERAL("caf\xc3\xa9")));
    assert_true(matches("^caf.$", SPAN_LITERAL("caf\xc3\xa9")));
}

static void refuses_syntax_that_re2_lacks(void **state)
{
    (void)state;
    assert_refused("(a)\\1", "backreference");
    assert_refused("(?=a)", "look-around");
    assert_refused("(?<!a)b", "look-around");
    assert_refused("(?<name>a)", "not supported");
    assert_refused("(?P<name>a)", "not supported");
    assert_refused("(?>a)", "not supported");
    assert_refused("(?R)", "not supported");
    assert_refused("(?(1)a)", "not supported");
    assert_refused("(?C1)", "not supported");
    assert_refused("(*ACCEPT)a", "verb");
    assert_refused("a(?i)b", "very beginning");
    assert_refused("(?s)a", "not supported");
    assert_refused("a++", "possessive");
    assert_refused("a{1,2}+", "possessive");
    assert_refused("a{,3}", "{0,n}");
    assert_refused("[[:alpha:]]", "named class");
    assert_refused("[]a]", "empty class");
    assert_refused("[^]a]", "empty class");
    assert_refused("[a\\b]", "inside a class");
    assert_refused("[a", "closing bracket");
    assert_refused("\\Qa\\E", "escape");
    assert_refused("\\p{L}", "escape");
    assert_refused("\\Aa", "escape");
    assert_refused("\\v", "escape"); /* one character elsewhere, a character class in PCRE2 */
    assert_refused("\\x{41}", "hexadecimal");
    assert_refused("\\", "backslash");
    assert_refused("*a", "nothing before");
    assert_refused("a|+", "nothing before");
    assert_refused("a**", "nothing before");
    assert_refused("a{2000}", "1000");
    assert_refused("(a", "is wrong");
    assert_refused("a)", "is wrong");
    assert_refused("[b-a]", "is wrong");
    assert_refused("\xff", "UTF-8");
    struct regex *regex;
    struct err err;
    assert_int_equal(regex_create(SPAN_LITERAL("ab\0c"), &regex, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "has a byte that is 0 (at byte 3)"));
}

static void an_error_contains_the_position(void **state)
{
    (void)state;
    assert_refused("abc(?=d)", "'abc(?=d)'");
    assert_refused("abc(?=d)", "byte 4");
}

static void refuses_a_pattern_that_is_too_long(void **state)
{
    (void)state;
    static char pattern[REGEX_PATTERN_BYTES + 2];
    memset(pattern, 'a', REGEX_PATTERN_BYTES + 1);
    assert_refused(pattern, "longer");
}

static void nested_repeats_cannot_grow_without_bound(void **state)
{
    (void)state;
    assert_refused("(((a{1000}){1000}){1000}){1000}", "is wrong");
}

/* The cost of a hostile pattern is bounded per match and for all matches of one object. */
static void an_expensive_match_is_aborted(void **state)
{
    (void)state;
    static uint8_t subject[40];
    memset(subject, 'a', sizeof(subject));
    struct regex *regex;
    struct err err = {0};
    bool is_match;
    assert_int_equal(regex_create(SPAN_LITERAL("(a+)+$b"), &regex, &err), ERR_NONE);
    int64_t start = clock_thread_cpu_ns();
    enum err_code code = regex_match(regex, span_of(subject, sizeof(subject)), &is_match, &err);
    assert_true(code == ERR_INVALID || (code == ERR_NONE && !is_match));
    assert_true(clock_thread_cpu_ns() - start < CLOCK_NS_PER_S);
    regex_destroy(regex);

    assert_int_equal(regex_create(SPAN_LITERAL("^(a+)+[bx]"), &regex, &err), ERR_NONE);
    code = ERR_NONE;
    start = clock_thread_cpu_ns();
    for (int i = 0; i < 1000000 && !code; i++)
        code = regex_match(regex, span_of(subject, 15), &is_match, &err);
    assert_int_equal(code, ERR_INVALID);
    assert_non_null(strstr(err.message, "too long"));
    assert_true(clock_thread_cpu_ns() - start < 60 * CLOCK_NS_PER_S);
    regex_destroy(regex);
}

static bool matches_by_dfa(const char *pattern, struct span subject)
{
    struct regex *regex;
    struct err err = {0};
    bool is_match = false;
    assert_int_equal(regex_create(span_text(pattern), &regex, &err), ERR_NONE);
    regex_use_dfa_fallback(regex);
    const int64_t start = clock_thread_cpu_ns();
    assert_int_equal(regex_match(regex, subject, &is_match, &err), ERR_NONE);
    assert_true(clock_thread_cpu_ns() - start < 20 * CLOCK_NS_PER_S);
    regex_destroy(regex);
    return is_match;
}

static uint32_t states(const char *pattern)
{
    struct regex *regex;
    struct err err = {0};
    assert_int_equal(regex_create(span_text(pattern), &regex, &err), ERR_NONE);
    const uint32_t found = regex_states(regex, REGEX_MEAN_BYTES);
    regex_destroy(regex);
    return found;
}

/* "a?" in front of 115 alternatives of 60 characters, which may then begin at many positions. */
static uint32_t states_after(const char *begin, int count)
{
    static char pattern[REGEX_PATTERN_BYTES + 1];
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += (size_t)sprintf(pattern + size, "%s", begin);
    for (int i = 0; i < 115; i++)
        size += (size_t)sprintf(pattern + size, "%c%060d", i ? '|' : '(', i);
    sprintf(pattern + size, ")");
    return states(pattern);
}

static void states_that_can_be_active_together_are_counted(void **state)
{
    (void)state;
    assert_int_equal(states("abc|def"), 0);
    assert_int_equal(states("(foo|bar).*"), 1);
    assert_int_equal(states(".*"), 1);
    assert_int_equal(states(".*foo.*"), 1 + 3 + 1);
    assert_int_equal(states("\\b.*\\bfoo$|^.*"), 1 + 3 + 1);
    assert_int_equal(states(".*[xy]\\d\\x41"), 1 + 3);
    assert_int_equal(states(".*\xc3\xa9"), 1 + 1);
    assert_int_equal(states("https?://(foo|bar)"), 0);
    /* After ".*" each position of the subject may be the start of "foo". */
    assert_int_equal(states(".*(foo|bar|foz)"), 1 + 1 + 9);
    assert_int_equal(states("(.*(foo|bar|foz))+"), 1 + 1 + 1 + 9);
    assert_int_equal(states("(?i)x?(ab)*"), 1 + 2);
    assert_int_equal(states("a{3}b{2,}c*"), 1 + 1);
    assert_int_equal(states("a{1000}"), 1);
    assert_int_equal(states("(a{10}b)*"), 3);
    assert_int_equal(states(".*a{1000}"), 1001);
    assert_in_range(states(".{1,1000}x{1,1000}"), 900, 1000);
    assert_int_equal(states("[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}"), 0);
    assert_int_equal(states("web-.*|api-.*|cron-worker-.*|database-.*"), 4);
    assert_in_range(states("((a{1,100}){1,100})"), 10000, 10300);
    assert_in_range(states("(.{1,50}){1,50}"), 2500, 2600);
    assert_int_equal(states("(((((((((a+)+)+)+)+)+)+)+)+)+"), 10);
    assert_in_range(states_after("", 1), 0, 30);
    assert_in_range(states_after("a?", 64), 600, 3000);
    assert_in_range(states_after("(|a|aa|aaa|aaaa|aaaaa|aaaaaa|aaaaaaa)", 4), 300, 3000);
    /* Items that begin after the first positions count for longer subjects. */
    struct regex *late;
    struct err err = {0};
    assert_int_equal(regex_create(SPAN_LITERAL("(.{1000}){3}.{1,1000}abcdefgh"), &late, &err),
                     ERR_NONE);
    assert_int_equal(regex_states(late, REGEX_MEAN_BYTES), 2);
    assert_in_range(regex_states(late, REGEX_MEAN_BYTES + 1), 9, 12);
    regex_destroy(late);
    char stars[2 * 4000 + 1] = "";
    for (size_t i = 0; i < sizeof(stars) - 1; i++)
        stars[i] = ".*"[i % 2];
    assert_int_equal(states(stars), 4000);
}

/* Patterns that need exponential or cubic time to find that nothing matches. */
static void with_the_dfa_fallback_no_match_is_aborted(void **state)
{
    (void)state;
    static uint8_t letters[2048], foos[2041], broken[2048];
    memset(letters, 'a', sizeof(letters) - 1);
    letters[sizeof(letters) - 1] = '!';
    for (size_t i = 0; i < sizeof(foos); i++)
        foos[i] = (uint8_t)(i + 1 == sizeof(foos) ? 'r' : "foo"[i % 3]);
    memcpy(broken, letters, sizeof(broken));
    broken[1000] = 0xff;
    const struct span subject = span_of(letters, sizeof(letters));
    assert_false(matches_by_dfa("^(?:(a|a)+)$", subject));
    assert_true(matches_by_dfa("^(?:(a|a)+b?!)$", subject));
    assert_true(matches_by_dfa("^(?:(a|b|ab|aa|aaa)*!!|(a|a)*!)$", subject));
    assert_false(matches_by_dfa("^(?:(a*)*)$", subject));
    assert_false(matches_by_dfa("^(?:.*foo.*bar.*)$", span_of(foos, sizeof(foos))));
    assert_false(matches_by_dfa("^(?:(a?){400}a{400})$", subject));
    assert_false(matches_by_dfa("^(?:(a|a)+.(a|a)+!)$", span_of(broken, sizeof(broken))));
    assert_true(matches_by_dfa("^(?:(a|a)+b|(a|a)+)", span_of(broken, 1000)));
    assert_true(matches_by_dfa("(?:(a|a)+c|(a|a)+!)$", span_of(broken, sizeof(broken))));
    assert_false(matches_by_dfa("^(?:(a|a)+)$", span_of(broken, 1001)));
    assert_true(matches_by_dfa("^$", SPAN_LITERAL("")));
}

/* The minimum of several runs in CPU time, because the system may be busy. */
static int64_t cost_of(const char *pattern, struct span subject)
{
    int64_t least_ns = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        const int64_t start = clock_thread_cpu_ns();
        assert_false(matches_by_dfa(pattern, subject));
        const int64_t used_ns = clock_thread_cpu_ns() - start;
        least_ns = used_ns < least_ns ? used_ns : least_ns;
    }
    return least_ns;
}

/* A subject that is twelve times as long costs about twelve times as much, not 144 times. */
static void the_dfa_fallback_is_linear_in_the_subject(void **state)
{
    (void)state;
    enum { SHORT = 1000, LONG = 12000 };
    static const char *const patterns[] = {
        "(a+)+b",           "([a-z]+)*!",   "(x+a+|a+)+y",   "((a+)+)+b",    "(?i)(A+)+b",
        "(a{2,})*b",        "([ab]{3,})+b", "(\\w+\\s*)*z",  "(a|a)+b",      "(a*)*b",
        "(.|a)*(.|a)*b",    "(a|aa)+b",     "(\\w{2,}?.)+b", "((a|b)+x?)+c", "(a+a+a+)+b",
        "(\xc3\xa9+|a+)*b", "(a|ab|aab)*c", ".+.+.+.+b",     "(\\d+|a+?)+b", "(\\x61+)+b",
    };
    static uint8_t bytes[LONG];
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        char whole[100];
        int64_t cost[2];
        const bool ignores = strncmp(patterns[i], "(?i)", 4) == 0;
        snprintf(whole, sizeof(whole), "%s^(?:%s)$", ignores ? "(?i)" : "",
                 patterns[i] + (ignores ? 4 : 0));
        for (int j = 0; j < 2; j++) {
            const size_t size = j ? LONG : SHORT;
            memset(bytes, 'a', size);
            memcpy(bytes + size - 7, "!cbxyz?", 7); /* the subject contains what a match needs */
            cost[j] = cost_of(whole, span_of(bytes, size));
        }
        if (cost[1] > 40 * cost[0] + 20 * CLOCK_NS_PER_MS)
            fail_msg("%s: %lld ns, then %lld", whole, (long long)cost[0], (long long)cost[1]);
    }
}

/* A random atom with a random quantifier. */
static void put_part(unsigned random, struct buf *pattern)
{
    static const char *const atoms[] = {"x",    "\xc3\xa9", "[xy]",  "\\w",  ".",
                                        "(xy)", "(x|y)",    "\\x79", "[^x]", "{"};
    static const char *const repeats[] = {"",   "+",    "*",      "?",     "{2}", "{2,}",
                                          "+?", "{1,}", "{1,3}?", "{2,}?", "*?",  "{0,}"};
    buf_append_text(pattern, atoms[random % 10]);
    buf_append_text(pattern, repeats[random / 10 % 12]);
}

static void the_dfa_fallback_finds_the_same_matches(void **state)
{
    (void)state;
    const int rounds = test_rounds(3000);
    static const char *const letters[] = {"x", "y", "\xc3\xa9", "{", "\n"};
    static const char prefix[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; /* 30: (a|a)+b exceeds the limit */
    unsigned seed = 1;
    int match_count = 0;
    for (int round = 0; round < rounds; round++) {
        buf_auto part, plain, dfa_pattern, subject;
        buf_init(&part, 1000);
        buf_init(&plain, 1000);
        buf_init(&dfa_pattern, 1000);
        buf_init(&subject, 1000);
        for (int i = 0; i < 3; i++)
            put_part((unsigned)rand_r(&seed), &part);
        buf_printf(&plain, "^(?:%.*s)$", SPAN_PRINT(buf_span(&part)));
        buf_printf(&dfa_pattern, "^(?:(a|a)+b|%s%.*s)$", prefix, SPAN_PRINT(buf_span(&part)));
        buf_append_text(&subject, prefix);
        for (int count = rand_r(&seed) % 7; count > 0; count--)
            buf_append_text(&subject, letters[rand_r(&seed) % 5]);
        buf_append_byte(&plain, 0);
        buf_append_byte(&dfa_pattern, 0);
        struct regex *regex;
        struct err err;
        bool is_match;
        const size_t skipped = sizeof(prefix) - 1;
        assert_int_equal(regex_create(span_text((char *)plain.data), &regex, &err), ERR_NONE);
        assert_int_equal(regex_match(regex, span_of(subject.data + skipped, subject.size - skipped),
                                     &is_match, &err),
                         ERR_NONE);
        regex_destroy(regex);
        match_count += is_match;
        if (matches_by_dfa((char *)dfa_pattern.data, buf_span(&subject)) != is_match)
            fail_msg("%s on %.*s", (char *)dfa_pattern.data, SPAN_PRINT(buf_span(&subject)));
    }
    assert_true(match_count > rounds / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_anywhere_and_is_case_sensitive),
        cmocka_unit_test(a_dollar_matches_only_the_very_end),
        cmocka_unit_test(braces_and_brackets_in_names_stand_for_themselves),
        cmocka_unit_test(invalid_utf8_does_not_match_by_accident),
        cmocka_unit_test(refuses_syntax_that_re2_lacks),
        cmocka_unit_test(an_error_contains_the_position),
        cmocka_unit_test(refuses_a_pattern_that_is_too_long),
        cmocka_unit_test(nested_repeats_cannot_grow_without_bound),
        cmocka_unit_test(states_that_can_be_active_together_are_counted),
        cmocka_unit_test(an_expensive_match_is_aborted),
        cmocka_unit_test(with_the_dfa_fallback_no_match_is_aborted),
        cmocka_unit_test(the_dfa_fallback_is_linear_in_the_subject),
        cmocka_unit_test(the_dfa_fallback_finds_the_same_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
