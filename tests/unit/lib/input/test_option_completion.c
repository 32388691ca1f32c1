#include "tests/unit/test.h"

#include "lib/input/option_completion.h"

#include "lib/input/options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct values {
    const char *file;
    const char *folder;
    const char *format;
    bool is_sent;
    bool is_all;
};

static const char *const formats[] = {"raw", "json", NULL};

static const struct option_row rows[] = {
    {"file", 'o', "FILE", "The user's file", OPTION_TEXT(struct values, file)},
    {"folder", 0, "FOLDER", "At [::1]:PORT", OPTION_TEXT(struct values, folder)},
    {"format", 0, "FORMAT", "raw or json", OPTION_WORD(struct values, format, formats)},
    {"sent", 0, "YES|NO", "Whether", OPTION_SWITCH(struct values, is_sent)},
    {"all", 0, NULL, "All", OPTION_FLAG(struct values, is_all)},
    {"every", .is_alias = true},
    {"old", 0, NULL, "Former name", OPTION_FLAG(struct values, is_all), .is_hidden = true},
    {0},
};
static const struct option_table table = {.rows = rows};

static void print_names(void)
{
    option_completion_print_names(&table);
}

static void print_cases(void)
{
    option_completion_print_cases(&table);
}

static void print_zsh(void)
{
    option_completion_print_zsh(&table, "  ");
}

static void print_fish(void)
{
    option_completion_print_fish(&table, "x", "seen y");
}

/* Checks what print writes on standard output; a pipe has space for all of it. */
static void assert_printed(void (*print)(void), const char *expected)
{
    char output[4096];
    int pipes[2];
    fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    assert_int_equal(pipe(pipes), 0);
    dup2(pipes[1], STDOUT_FILENO);
    print();
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(pipes[1]);
    const ssize_t size = read(pipes[0], output, sizeof(output) - 1);
    close(pipes[0]);
    assert_true(size >= 0);
    output[size] = '\0';
    assert_string_equal(output, expected);
}

static void bash_completes_names_and_values(void **state)
{
    (void)state;
    assert_printed(print_names, " --file --folder --format --sent --all --every");
    assert_printed(print_cases, "    --file)\n"
                                "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
                                "        return\n        ;;\n"
                                "    --folder)\n"
                                "        mapfile -t COMPREPLY < <(compgen -d -- \"$word\")\n"
                                "        return\n        ;;\n"
                                "    --format)\n"
                                "        mapfile -t COMPREPLY < <(compgen -W 'raw json' -- "
                                "\"$word\")\n"
                                "        return\n        ;;\n"
                                "    --sent)\n"
                                "        mapfile -t COMPREPLY < <(compgen -W 'yes no' -- "
                                "\"$word\")\n"
                                "        return\n        ;;\n");
}

static void zsh_texts_are_quoted(void **state)
{
    (void)state;
    assert_printed(print_zsh, "  '*--file=[The user'\\''s file]:FILE:_files' \\\n"
                              "  '*--folder=[At [::1\\]:PORT]:FOLDER:_files -/' \\\n"
                              "  '*--format=[raw or json]:FORMAT:(raw json)' \\\n"
                              "  '*--sent=[Whether]:YES|NO:(yes no)' \\\n"
                              "  '*--all[All]' \\\n");
}

static void fish_texts_are_quoted(void **state)
{
    (void)state;
    assert_printed(print_fish,
                   "complete -c x -n 'seen y' -l file -s o -r -F -d 'The user\\'s file'\n"
                   "complete -c x -n 'seen y' -l folder -x -a '(__fish_complete_directories)' -d "
                   "'At [::1]:PORT'\n"
                   "complete -c x -n 'seen y' -l format -x -a 'raw json' -d 'raw or json'\n"
                   "complete -c x -n 'seen y' -l sent -x -a 'yes no' -d 'Whether'\n"
                   "complete -c x -n 'seen y' -l all -d 'All'\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bash_completes_names_and_values),
        cmocka_unit_test(zsh_texts_are_quoted),
        cmocka_unit_test(fish_texts_are_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
