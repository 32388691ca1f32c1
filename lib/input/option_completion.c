#include "lib/input/option_completion.h"

#include "lib/input/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The source of the completions of an option's value. */
enum value_source { SOURCE_NONE, SOURCE_FILES, SOURCE_FOLDERS, SOURCE_WORDS };

static const char *const switch_words[] = {"yes", "no", NULL};

static const char *const *words_of(const struct option_row *row)
{
    return row->kind == OPTION_KIND_SWITCH ? switch_words : row->words;
}

static enum value_source source_of(const struct option_row *row)
{
    if (!row->argument)
        return SOURCE_NONE;
    if (strcmp(row->argument, "FILE") == 0)
        return SOURCE_FILES;
    if (strcmp(row->argument, "FOLDER") == 0)
        return SOURCE_FOLDERS;
    return words_of(row) ? SOURCE_WORDS : SOURCE_NONE;
}

static void print_words(const struct option_row *row)
{
    const char *const *words = words_of(row);
    for (size_t i = 0; words[i]; i++)
        printf("%s%s", i ? " " : "", words[i]);
}

/* ---- bash ---- */

static void print_name(void *context, const struct option_row *row)
{
    (void)context;
    printf(" --%s", row->name);
}

void option_completion_print_names(const struct option_table *table)
{
    options_each(table, print_name, NULL);
}

/* A case for all options with values from one source. */
struct shared_case {
    enum value_source source;
    size_t count;
};

static void print_pattern(void *context, const struct option_row *row)
{
    struct shared_case *shared = context;
    if (source_of(row) == shared->source)
        printf("%s--%s", shared->count++ ? " | " : "    ", row->name);
}

static void print_paths(const struct option_table *table, enum value_source source, char action)
{
    struct shared_case shared = {.source = source};
    options_each(table, print_pattern, &shared);
    if (shared.count)
        printf(")\n        mapfile -t COMPREPLY < <(compgen -%c -- \"$word\")\n        return\n"
               "        ;;\n",
               action);
}

static void print_words_case(void *context, const struct option_row *row)
{
    (void)context;
    if (source_of(row) != SOURCE_WORDS)
        return;
    printf("    --%s)\n        mapfile -t COMPREPLY < <(compgen -W '", row->name);
    print_words(row);
    puts("' -- \"$word\")\n        return\n        ;;");
}

void option_completion_print_cases(const struct option_table *table)
{
    print_paths(table, SOURCE_FILES, 'f');
    print_paths(table, SOURCE_FOLDERS, 'd');
    options_each(table, print_words_case, NULL);
}

/* ---- zsh ---- */

/* Prints a description inside '…[…]…'. */
static void print_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (*text == ']' || *text == '\\')
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void print_zsh_option(void *indent, const struct option_row *row)
{
    if (!row->help)
        return;
    printf("%s'*--%s%s[", (const char *)indent, row->name, row->argument ? "=" : "");
    print_zsh_text(row->help);
    fputs("]", stdout);
    if (row->argument)
        printf(":%s:", row->argument);
    switch (source_of(row)) {
    case SOURCE_FILES:
        fputs("_files", stdout);
        break;
    case SOURCE_FOLDERS:
        fputs("_files -/", stdout);
        break;
    case SOURCE_WORDS:
        putchar('(');
        print_words(row);
        putchar(')');
        break;
    case SOURCE_NONE:
        break;
    }
    puts("' \\");
}

void option_completion_print_zsh(const struct option_table *table, const char *indent)
{
    options_each(table, print_zsh_option, (void *)(uintptr_t)indent);
}

/* ---- fish ---- */

struct fish {
    const char *program;
    const char *condition;
};

/* Prints a description inside '…'. */
static void print_fish_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
}

static void print_fish_value(const struct option_row *row)
{
    switch (source_of(row)) {
    case SOURCE_FILES:
        fputs(" -r -F", stdout);
        break;
    case SOURCE_FOLDERS:
        fputs(" -x -a '(__fish_complete_directories)'", stdout);
        break;
    case SOURCE_WORDS:
        fputs(" -x -a '", stdout);
        print_words(row);
        putchar('\'');
        break;
    case SOURCE_NONE:
        fputs(row->argument ? " -x" : "", stdout);
        break;
    }
}

static void print_fish_option(void *context, const struct option_row *row)
{
    const struct fish *fish = context;
    if (!row->help)
        return;
    printf("complete -c %s", fish->program);
    if (fish->condition)
        printf(" -n '%s'", fish->condition);
    printf(" -l %s", row->name);
    if (isalnum((unsigned char)row->letter))
        printf(" -s %c", row->letter);
    print_fish_value(row);
    fputs(" -d '", stdout);
    print_fish_text(row->help);
    puts("'");
}

void option_completion_print_fish(const struct option_table *table, const char *program,
                                  const char *condition)
{
    struct fish fish = {.program = program, .condition = condition};
    options_each(table, print_fish_option, &fish);
}
