#include "lib/input/suggest.h"

#include "lib/base/arena.h"
#include "lib/input/options.h"

#include <getopt.h>
#include <string.h>

enum { MIN_PREFIX_BYTES = 3 };

static char lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte + ('a' - 'A')) : byte;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Computes the distance with three rows of the usual table; the third is needed for swaps. */
static int count_edits(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int rows[3][SUGGEST_NAME_BYTES + 1];
    int *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_size; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= a_size; i++) {
        row[0] = (int)i;
        for (size_t j = 1; j <= b_size; j++) {
            const int cost = lower(a[i - 1]) != lower(b[j - 1]);
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + cost);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
        int *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[b_size];
}

int suggest_distance(const char *typed, const char *name)
{
    const size_t typed_size = strnlen(typed, SUGGEST_NAME_BYTES + 1);
    const size_t name_size = strnlen(name, SUGGEST_NAME_BYTES + 1);
    if (typed_size > SUGGEST_NAME_BYTES || name_size > SUGGEST_NAME_BYTES || !typed_size)
        return SUGGEST_NOT_CLOSE;
    const int edits = count_edits(typed, typed_size, name, name_size);
    const int most = typed_size < 6 ? 1 : (int)typed_size / 3;
    if (edits <= most)
        return edits;
    const size_t shorter = typed_size < name_size ? typed_size : name_size;
    /* A name with the typed one as prefix, or the reverse, ranks after all names that are close by
     * their edits. */
    return shorter >= MIN_PREFIX_BYTES && strncmp(typed, name, shorter) == 0
               ? SUGGEST_NAME_BYTES + edits
               : SUGGEST_NOT_CLOSE;
}

const char *suggest_name(const char *typed, const char *const *names, size_t count)
{
    const char *found = NULL;
    int nearest = SUGGEST_NOT_CLOSE;
    for (size_t i = 0; i < count; i++) {
        const int distance = suggest_distance(typed, names[i]);
        if (distance < nearest) {
            nearest = distance;
            found = names[i];
        }
    }
    return found;
}

/* ---- options ---- */

enum { OPTIONS_MAX = 256 };

/* The rows of a table in the form that getopt_long takes. */
struct getopt_table {
    struct option options[OPTIONS_MAX + 3]; /* plus help, usage and the terminator */
    const char *names[OPTIONS_MAX + 2];
    char letters[3 * OPTIONS_MAX + 8];
    size_t count;
    size_t letter_bytes;
};

static int argument_of(const struct option_row *row)
{
    if (!row->argument)
        return no_argument;
    return row->is_value_optional ? optional_argument : required_argument;
}

static void add_option(struct getopt_table *table, const char *name, char letter, int argument)
{
    table->names[table->count] = name;
    table->options[table->count++] = (struct option){.name = name, .has_arg = argument};
    if (!letter)
        return;
    table->letters[table->letter_bytes++] = letter;
    /* One colon: an argument is required; two: it is optional. */
    for (int i = 0; i < argument; i++)
        table->letters[table->letter_bytes++] = ':';
}

static void add_options(struct getopt_table *table, const struct option_table *options)
{
    int argument = no_argument;
    for (const struct option_row *row = options->rows; row && row->name; row++) {
        if (!row->is_alias)
            argument = argument_of(row);
        if (table->count < OPTIONS_MAX)
            add_option(table, row->name, row->letter, argument);
    }
    for (const struct option_part *part = options->parts; part && part->table; part++)
        add_options(table, part->table);
}

/* "--name=value" without its value; NULL when the argument is not a long option. */
static char *copy_option_name(struct arena *arena, const char *argument)
{
    if (!argument || strncmp(argument, "--", 2) != 0 || !argument[2])
        return NULL;
    return arena_strndup(arena, argument + 2, strcspn(argument + 2, "="));
}

/* getopt_long also rejects an abbreviation that matches several names. */
static bool is_abbreviation(const struct getopt_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++) {
        if (strncmp(table->names[i], name, strlen(name)) == 0)
            return true;
    }
    return false;
}

static const char *scan(const struct getopt_table *table, int argc, char **argv,
                        struct arena *arena, const char **ret_typed)
{
    opterr = 0;
    optind = 0; /* restarts the scan in glibc */
    for (int key; (key = getopt_long(argc, argv, table->letters, table->options, NULL)) != -1;) {
        if (key != '?' || optopt)
            continue;
        const char *argument = argv[optind - 1];
        const char *name = copy_option_name(arena, argument);
        const char *known = name && !is_abbreviation(table, name)
                                ? suggest_name(name, table->names, table->count)
                                : NULL;
        if (known) {
            *ret_typed = argument;
            return known;
        }
    }
    return NULL;
}

const char *suggest_option(const struct option_table *options, int argc, char *const *argv,
                           const char **ret_typed)
{
    arena_auto arena = arena_create();
    struct getopt_table *table = arena_new(arena, struct getopt_table, 1);
    char **arguments = arena_new(arena, char *, (size_t)argc + 1); /* getopt_long permutes them */
    memcpy(arguments, argv, (size_t)argc * sizeof(*arguments));
    if (options->take_words) /* the option may be one of that command */
        table->letters[table->letter_bytes++] = '+';
    table->letters[table->letter_bytes++] = ':';
    add_options(table, options);
    add_option(table, "help", '?', no_argument);
    add_option(table, "usage", 0, no_argument);
    const char *known = scan(table, argc, arguments, arena, ret_typed);
    opterr = 1;
    optind = 1;
    return known;
}
