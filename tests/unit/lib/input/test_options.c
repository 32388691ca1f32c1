#include "tests/unit/test.h"

#include "lib/input/options.h"

#include "lib/base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum color { COLOR_RED, COLOR_GREEN, COLOR_BLUE };

struct part_values {
    bool is_quiet;
    const char *last;
};

struct values {
    bool is_all;
    bool is_sent;
    const char *title;
    const char *format;
    uint32_t hz;
    int64_t wait_ns;
    enum color color;
    enum color output;
    bool is_kernel;
    double fraction;
    const char *words[4];
    int word_count;
    char **rest;
    struct part_values part;
};

static enum err_code take_fraction(void *values, const struct option_row *row, const char *text,
                                   struct err *err)
{
    struct values *target = values;
    target->fraction = text ? strtod(text, NULL) : row->value;
    return target->fraction > 1 ? options_refuse(row, text, err) : ERR_NONE;
}

static const char *const formats[] = {"raw", "json", NULL};
static const char *const colors[] = {"red", "green", "blue", NULL};
static const char *const places[] = {"user", "kernel", NULL};

static const struct option_row part_rows[] = {
    {"quiet", 'q', NULL, "Print errors only", OPTION_FLAG(struct part_values, is_quiet)},
    {0},
};

static enum err_code take_last(void *values, const char *text, struct err *err)
{
    struct part_values *part = values;
    if (strcmp(text, "wrong") == 0)
        return err_set(err, ERR_INVALID, "%s is wrong", text);
    part->last = text;
    return ERR_NONE;
}

static const struct option_table part_table = {.rows = part_rows, .take_argument = take_last};

static const struct option_row rows[] = {
    {"all", 'a', NULL, "All of them", OPTION_FLAG(struct values, is_all)},
    {"sent", 0, "YES|NO", "Whether it is sent", OPTION_SWITCH(struct values, is_sent)},
    {"title", 't', "TEXT", "The title", OPTION_TEXT(struct values, title)},
    {"format", 0, "FORMAT", "raw or json", OPTION_WORD(struct values, format, formats),
     .error = "--format is {words}, not {value}"},
    {"frequency", 'F', "HZ", "Samples per second", OPTION_NUMBER(struct values, hz, 1, 1000, 1)},
    {"wait", 0, "US", "Shortest wait", OPTION_NUMBER(struct values, wait_ns, 0, 1 << 30, 1000)},
    {"pause", 0, "US", "Former name of --wait",
     OPTION_NUMBER(struct values, wait_ns, 0, 1 << 30, 1000), .is_hidden = true},
    {"color", 0, "COLOR", "red, green or blue", OPTION_CHOICE(struct values, color, colors)},
    {"colour", .is_alias = true},
    {"blue", 0, NULL, "Blue output", OPTION_VALUE(struct values, output, COLOR_BLUE)},
    {"where", 0, "PLACE", "user or kernel", OPTION_CHOICE(struct values, is_kernel, places)},
    {"share", 0, "FRACTION", "A fraction", .take = take_fraction, .value = 1,
     .is_value_optional = true, .error = "{name} is at most 1"},
    {"old", 0, NULL, "Has no effect", OPTION_IGNORED, .group = 1},
    {0},
};
static const struct option_part parts[] = {
    {&part_table, offsetof(struct values, part), "Output:", 1}, {0}};

static enum err_code check_values(void *values, struct err *err)
{
    const struct values *target = values;
    return target->is_all && target->title
               ? err_set(err, ERR_INVALID, "--all and --title cannot be combined")
               : ERR_NONE;
}

static const struct option_table table = {.rows = rows,
                                          .parts = parts,
                                          .arguments = "WORD...",
                                          .text = "Does a thing.\vAnd says so.",
                                          .check = check_values,
                                          .error_prefix = "--"};

static void take_words(void *values, char **words)
{
    ((struct values *)values)->rest = words;
}

static const struct option_table command_table = {.rows = rows, .take_words = take_words};

/* Splits line at blanks; *words lives as long as line. */
static int split_words(char *line, char *words[24])
{
    int count = 0;
    while ((words[count] = strsep(&line, " ")) != NULL)
        count++;
    return count;
}

static void values_are_stored_in_their_members(void **state)
{
    (void)state;
    struct values values = {0};
    char line[] = "x -at title --sent=yes --format json -F 99 --wait=5 --color blue --blue "
                  "--where=kernel --share -q one";
    char *words[24];
    const int count = split_words(line, words);
    const struct option_table unchecked = {.rows = rows, .parts = parts};
    options_parse(&unchecked, count, words, &values);
    assert_true(values.is_all && values.is_sent && values.is_kernel && values.part.is_quiet);
    assert_string_equal(values.title, "title");
    assert_string_equal(values.format, "json");
    assert_int_equal(values.hz, 99);
    assert_int_equal(values.wait_ns, 5000);
    assert_int_equal(values.color, COLOR_BLUE);
    assert_int_equal(values.output, COLOR_BLUE);
    assert_true(values.fraction >= 1 && values.fraction <= 1);
    assert_string_equal(values.part.last, "one");
}

static void former_names_and_aliases_are_parsed(void **state)
{
    (void)state;
    struct values values = {0};
    char line[] = "x --pause=3 --colour=green --old --share=0.5";
    char *words[24];
    const int count = split_words(line, words);
    options_parse(&table, count, words, &values);
    assert_int_equal(values.wait_ns, 3000);
    assert_int_equal(values.color, COLOR_GREEN);
    assert_true(values.fraction > 0.4 && values.fraction < 0.6);
}

static void the_words_of_a_command_are_taken_together(void **state)
{
    (void)state;
    struct values values = {0};
    char line[] = "x -a -- command -a --title=x";
    char *words[24];
    const int count = split_words(line, words);
    options_parse(&command_table, count, words, &values);
    assert_true(values.is_all);
    assert_null(values.title);
    assert_string_equal(values.rest[0], "command");
    assert_string_equal(values.rest[2], "--title=x");
    assert_null(values.rest[3]);
}

static void assert_refused(const char *name, const char *text, const char *message)
{
    struct values values = {0};
    struct err err;
    assert_int_equal(options_set(options_find(&table, name), &values, text, &err), ERR_INVALID);
    assert_string_equal(err.message, message);
}

static void wrong_values_are_refused_with_the_error_of_the_row(void **state)
{
    (void)state;
    assert_refused("frequency", "0", "frequency must be a number from 1 to 1000, not 0");
    assert_refused("frequency", "1001", "frequency must be a number from 1 to 1000, not 1001");
    assert_refused("frequency", "9x", "frequency must be a number from 1 to 1000, not 9x");
    assert_refused("color", "pink", "color must be red, green or blue, not pink");
    assert_refused("where", "{max}", "where must be user or kernel, not {max}");
    assert_refused("sent", "maybe", "sent must be yes or no, not maybe");
    assert_refused("all", "maybe", "all must be yes or no, not maybe");
    assert_refused("format", "xml", "--format is raw or json, not xml");
    assert_refused("share", "2", "share is at most 1");
}

static void a_file_may_unset_a_flag(void **state)
{
    (void)state;
    struct values values = {.is_all = true};
    struct err err;
    const struct option_row *row = options_find(&table, "all");
    assert_int_equal(options_set(row, &values, "no", &err), ERR_NONE);
    assert_false(values.is_all);
    assert_int_equal(options_set(row, &values, "yes", &err), ERR_NONE);
    assert_true(values.is_all);
    assert_null(options_find(&table, "quiet")); /* of the part */
    assert_null(options_find(&table, "nothing"));
}

static void the_last_value_is_found_beside_anything_else(void **state)
{
    (void)state;
    char line[] = "x --title=a word -F nonsense --title b";
    char *words[24];
    const int count = split_words(line, words);
    assert_string_equal(options_last_value(&table, count, words, "title"), "b");
    assert_null(options_last_value(&table, count, words, "format"));
}

/* Parses in a child process; returns its status and what it printed. */
static int parse_in_child(const char *arguments, char output[4096])
{
    int pipes[2];
    char line[256];
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct values values = {0};
        char *words[24];
        dup2(pipes[1], STDOUT_FILENO);
        dup2(pipes[1], STDERR_FILENO);
        snprintf(line, sizeof(line), "%s", arguments);
        const int count = split_words(line, words);
        options_parse(&table, count, words, &values);
        fflush(stdout);
        _exit(77);
    }
    close(pipes[1]);
    size_t size = 0;
    for (ssize_t got; (got = read(pipes[0], output + size, 4095 - size)) > 0;)
        size += (size_t)got;
    output[size] = '\0';
    close(pipes[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void assert_usage_error(const char *arguments, const char *message)
{
    char output[4096];
    assert_int_equal(parse_in_child(arguments, output), OPTIONS_EXIT_USAGE);
    assert_non_null(strstr(output, message));
}

static void a_wrong_command_line_ends_the_process(void **state)
{
    (void)state;
    assert_usage_error("x -F 0", "x: --frequency must be a number from 1 to 1000, not 0\n");
    assert_usage_error("x -a -t y", "x: --all and --title cannot be combined\n");
    assert_usage_error("x wrong", "x: wrong is wrong\n");
    assert_usage_error("x --nonsense", "unrecognized option '--nonsense'");
}

static void help_lists_all_rows_except_former_names(void **state)
{
    (void)state;
    char output[4096];
    assert_int_equal(parse_in_child("x --help", output), 0);
    assert_non_null(strstr(output, "Usage: x [OPTION...] WORD...\nDoes a thing.\n"));
    assert_non_null(strstr(output, "  -F, --frequency=HZ"));
    assert_non_null(strstr(output, "--color=COLOR, --colour=COLOR"));
    assert_non_null(strstr(output, "--share[=FRACTION]"));
    assert_non_null(strstr(output, " Output:\n  -q, --quiet"));
    assert_non_null(strstr(output, "And says so."));
    assert_null(strstr(output, "--pause"));
}

static void count_row(void *context, const struct option_row *row)
{
    assert_string_not_equal(row->name, "pause");
    ++*(size_t *)context;
}

static void each_visits_rows_and_parts(void **state)
{
    (void)state;
    size_t count = 0;
    options_each(&table, count_row, &count);
    assert_int_equal(count, sizeof(rows) / sizeof(*rows) - 2 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_stored_in_their_members),
        cmocka_unit_test(former_names_and_aliases_are_parsed),
        cmocka_unit_test(the_words_of_a_command_are_taken_together),
        cmocka_unit_test(wrong_values_are_refused_with_the_error_of_the_row),
        cmocka_unit_test(a_file_may_unset_a_flag),
        cmocka_unit_test(the_last_value_is_found_beside_anything_else),
        cmocka_unit_test(a_wrong_command_line_ends_the_process),
        cmocka_unit_test(help_lists_all_rows_except_former_names),
        cmocka_unit_test(each_visits_rows_and_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
