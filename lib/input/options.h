/*
 * options: the options of a program or command as a table with one row per option.
 *
 * A row has the names of the option, the kind of its value, the member of a struct that the value
 * is stored in, and the help text. One table serves the command line (options_parse), --help
 * (options_print_help), a settings file (options_find, options_set), suggestions (suggest_option)
 * and shell completion (options_each):
 *
 *   static const struct option_row rows[] = {
 *       {"all", 'a', NULL, "Record all processes", OPTION_FLAG(struct record, is_all)},
 *       {"limit", 0, "N", "Show at most N rows (20)",
 *        OPTION_NUMBER(struct list, limit, 0, 100, 1)},
 *       {"pid", 'p', "PID", "Record this process; may be repeated", .take = take_process},
 *       {0},
 *   };
 *
 * A row without a kind has a function that checks and stores the value. A table that several
 * commands share is a part of the table of each command. The C library's argp parses the command
 * line and writes the help; only options.c uses it.
 *
 * Threads: parsing uses getopt, which has one state per process; the rest is for any thread.
 */
#ifndef LIB_INPUT_OPTIONS_H
#define LIB_INPUT_OPTIONS_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* The exit status of a program whose command line is wrong. */
enum { OPTIONS_EXIT_USAGE = 2 };

enum option_kind {
    OPTION_KIND_NONE,   /* take stores the value, or there is nothing to store */
    OPTION_KIND_FLAG,   /* bool: true; yes or no where a value is given (in a file) */
    OPTION_KIND_SWITCH, /* bool: the value is yes or no */
    OPTION_KIND_TEXT,   /* const char *: borrowed */
    OPTION_KIND_NUMBER, /* 32 or 64 bits: a decimal number from min to max, times factor */
    OPTION_KIND_WORD,   /* const char *: one of words */
    OPTION_KIND_CHOICE, /* enum or bool: the index of one of words */
    OPTION_KIND_VALUE,  /* enum: the row's own value; the option takes none */
};

struct option_row {
    const char *name;     /* long name; NULL ends the table */
    char letter;          /* short name; 0: none */
    const char *argument; /* name of the value in the help text; NULL: the option takes none */
    const char *help;     /* without a period; NULL in an alias */
    enum option_kind kind;
    size_t offset; /* place and size of the member; the macros below set both */
    size_t bytes;
    uint64_t min, max, factor; /* of a number: bounds before it is multiplied by factor */
    const char *const *words;  /* the possible values; ends with NULL */
    int value;                 /* of OPTION_KIND_VALUE, or for take */
    /*
     * The error for a wrong value, with {name}, {value}, {min}, {max} and {words} ("a, b or c").
     * NULL: "{name} must be a number from {min} to {max}, not {value}" for a number, "{name} must
     * be {words}, not {value}" for words.
     */
    const char *error;
    /* Checks and stores text, which is NULL if the option takes no value or it was left out. */
    enum err_code (*take)(void *values, const struct option_row *row, const char *text,
                          struct err *err);
    int group;              /* the help lists groups in ascending order, -1 last */
    bool is_hidden;         /* a former name: parsed, but not in the help */
    bool is_alias;          /* another name of the row before it; all other members are ignored */
    bool is_value_optional; /* --name or --name=VALUE */
    bool is_not_in_file;    /* only for the command line */
};

/* The member's place in values. The array's size is negative if the type is not the wanted one. */
#define OPTION_PLACE(type, member, wanted)                                                         \
    offsetof(type, member) +                                                                       \
        0 * sizeof(                                                                                \
                char[__builtin_types_compatible_p(typeof(((type *)0)->member), wanted) ? 1 : -1])
#define OPTION_MEMBER(type, member, wanted)                                                        \
    .offset = OPTION_PLACE(type, member, wanted), .bytes = sizeof(((type *)0)->member)
#define OPTION_ANY_MEMBER(type, member)                                                            \
    .offset = offsetof(type, member), .bytes = sizeof(((type *)0)->member)

/* The kind and place of a row's value. */
#define OPTION_IGNORED .kind = OPTION_KIND_NONE
#define OPTION_FLAG(type, member) .kind = OPTION_KIND_FLAG, OPTION_MEMBER(type, member, bool)
#define OPTION_SWITCH(type, member) .kind = OPTION_KIND_SWITCH, OPTION_MEMBER(type, member, bool)
#define OPTION_TEXT(type, member)                                                                  \
    .kind = OPTION_KIND_TEXT, OPTION_MEMBER(type, member, const char *)
#define OPTION_NUMBER(type, member, min_, max_, factor_)                                           \
    .kind = OPTION_KIND_NUMBER, .min = (min_), .max = (max_), .factor = (factor_),                 \
    OPTION_ANY_MEMBER(type, member)
#define OPTION_WORD(type, member, words_)                                                          \
    .kind = OPTION_KIND_WORD, .words = (words_), OPTION_MEMBER(type, member, const char *)
#define OPTION_CHOICE(type, member, words_)                                                        \
    .kind = OPTION_KIND_CHOICE, .words = (words_), OPTION_ANY_MEMBER(type, member)
#define OPTION_VALUE(type, member, value_)                                                         \
    .kind = OPTION_KIND_VALUE, .value = (value_), OPTION_ANY_MEMBER(type, member)

/* A table inside another one. */
struct option_part {
    const struct option_table *table; /* NULL ends the list */
    size_t offset;                    /* of the part's values in those of the table */
    const char *heading;              /* in the help; NULL: none */
    int group;                        /* as in a row */
};

/* check, take_argument and take_words may be NULL. An error of theirs is a wrong command line. */
struct option_table {
    const struct option_row *rows;   /* NULL: none */
    const struct option_part *parts; /* NULL: none */
    const char *arguments;           /* for the usage line, one line per form; NULL: none */
    const char *text; /* the help before the options and, behind '\v', after them; NULL: none */
    /* Called for each argument that is no option; NULL: a part takes them, or none is allowed. */
    enum err_code (*take_argument)(void *values, const char *text, struct err *err);
    /* Instead of take_argument: called once with all such arguments, NULL-terminated. They are a
     * command, whose own options follow "--". */
    void (*take_words)(void *values, char **words);
    /* Called after the last argument, for parts first. */
    enum err_code (*check)(void *values, struct err *err);
    /* Put before the errors of rows on the command line: "--" if they begin with the name of the
     * option, as they do in a file. NULL: nothing. */
    const char *error_prefix;
    bool has_own_help; /* --help and --usage are rows */
};

/*
 * Parses argv[1] and the following into values; ends the process after --help or --usage, and with
 * OPTIONS_EXIT_USAGE and a message after an error. argv[0] is the name in these messages.
 */
void options_parse(const struct option_table *table, int argc, char **argv, void *values);

/* The value of the last option called name in argv, whatever other arguments are wrong; NULL: argv
 * has none. */
const char *options_last_value(const struct option_table *table, int argc, char **argv,
                               const char *name);

/* The row of that name, without those of parts; NULL: there is none. */
const struct option_row *options_find(const struct option_table *table, const char *name);

/*
 * Checks text and stores it in values; text (which must live as long as values) is NULL if the
 * option has no value. Errors: ERR_INVALID, and the codes of row->take.
 */
enum err_code options_set(const struct option_row *row, void *values, const char *text,
                          struct err *err) MUST_USE;
/* Sets ERR_INVALID with the row's error for a wrong text. */
enum err_code options_refuse(const struct option_row *row, const char *text, struct err *err);

/* Prints what --help prints; program is the name in it. */
void options_print_help(const struct option_table *table, const char *program);
/* Prints only the list of options. */
void options_print_list(const struct option_table *table);

/* Calls visit for each row of the table and its parts, also for aliases, but not for hidden rows.
 */
void options_each(const struct option_table *table,
                  void (*visit)(void *context, const struct option_row *row), void *context);

#endif
