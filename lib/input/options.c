#include "lib/input/options.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <argp.h>
#include <string.h>

/* Keys of rows without a letter: above all characters, below ARGP_KEY_END. */
enum { FIRST_KEY = 0x200 };

/* ---- values ---- */

static void append_words(struct buf *text, const char *const *words)
{
    for (size_t i = 0; words && words[i]; i++)
        buf_printf(text, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

/* Appends the value of a placeholder of row->error, such as {min}; field is its name. */
static void append_field(struct buf *message, const struct option_row *row, struct span field,
                         const char *text)
{
    if (span_equal(field, SPAN_LITERAL("name")))
        buf_append_text(message, row->name);
    else if (span_equal(field, SPAN_LITERAL("value")))
        buf_append_text(message, text);
    else if (span_equal(field, SPAN_LITERAL("min")))
        buf_printf(message, "%llu", (unsigned long long)row->min);
    else if (span_equal(field, SPAN_LITERAL("max")))
        buf_printf(message, "%llu", (unsigned long long)row->max);
    else if (span_equal(field, SPAN_LITERAL("words")))
        append_words(message, row->words);
}

static const char *default_error(enum option_kind kind)
{
    if (kind == OPTION_KIND_NUMBER)
        return "{name} must be a number from {min} to {max}, not {value}";
    return kind == OPTION_KIND_FLAG || kind == OPTION_KIND_SWITCH
               ? "{name} must be yes or no, not {value}"
               : "{name} must be {words}, not {value}";
}

enum err_code options_refuse(const struct option_row *row, const char *text, struct err *err)
{
    buf_auto message;
    buf_init(&message, ERR_MESSAGE_BYTES + strlen(text));
    struct span rest = span_text(row->error ? row->error : default_error(row->kind));
    while (rest.size) {
        struct span plain, field = {0};
        if (span_split(rest, '{', &plain, &rest))
            span_split(rest, '}', &field, &rest);
        buf_append(&message, plain.data, plain.size);
        append_field(&message, row, field, text);
    }
    return err_set(err, ERR_INVALID, "%.*s", SPAN_PRINT(buf_span(&message)));
}

/* The index of text in words; -1: it is none of them. */
static int find_word(const char *const *words, const char *text)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0)
            return i;
    }
    return -1;
}

/* Stores number in a member of any size. memcpy, because only the place of the member is known. */
static void store_number(const struct option_row *row, void *values, uint64_t number)
{
    uint8_t *member = (uint8_t *)values + row->offset;
    const uint32_t small = (uint32_t)number;
    const bool is_true = number != 0;
    if (row->bytes == sizeof(is_true))
        memcpy(member, &is_true, sizeof(is_true));
    else if (row->bytes == sizeof(small))
        memcpy(member, &small, sizeof(small));
    else
        memcpy(member, &number, sizeof(number));
}

static void store_text(const struct option_row *row, void *values, const char *text)
{
    memcpy((uint8_t *)values + row->offset, &text, sizeof(text));
}

static enum err_code set_switch(const struct option_row *row, void *values, const char *text,
                                struct err *err)
{
    const bool is_yes = strcmp(text, "yes") == 0;
    if (!is_yes && strcmp(text, "no") != 0)
        return options_refuse(row, text, err);
    store_number(row, values, is_yes);
    return ERR_NONE;
}

static enum err_code set_number(const struct option_row *row, void *values, const char *text,
                                struct err *err)
{
    uint64_t number;
    if (!span_parse_u64(span_text(text), &number) || number < row->min || number > row->max)
        return options_refuse(row, text, err);
    store_number(row, values, number * row->factor);
    return ERR_NONE;
}

static enum err_code set_word(const struct option_row *row, void *values, const char *text,
                              struct err *err)
{
    const int index = find_word(row->words, text);
    if (index < 0)
        return options_refuse(row, text, err);
    if (row->kind == OPTION_KIND_WORD)
        store_text(row, values, row->words[index]);
    else
        store_number(row, values, (uint64_t)index);
    return ERR_NONE;
}

enum err_code options_set(const struct option_row *row, void *values, const char *text,
                          struct err *err)
{
    switch (row->kind) {
    case OPTION_KIND_FLAG:
        return set_switch(row, values, text ? text : "yes", err);
    case OPTION_KIND_SWITCH:
        return set_switch(row, values, text, err);
    case OPTION_KIND_TEXT:
        store_text(row, values, text);
        return ERR_NONE;
    case OPTION_KIND_NUMBER:
        return set_number(row, values, text, err);
    case OPTION_KIND_WORD:
    case OPTION_KIND_CHOICE:
        return set_word(row, values, text, err);
    case OPTION_KIND_VALUE:
        store_number(row, values, (uint64_t)row->value);
        return ERR_NONE;
    case OPTION_KIND_NONE:
        break;
    }
    return row->take ? row->take(values, row, text, err) : ERR_NONE;
}

/* ---- tables ---- */

const struct option_row *options_find(const struct option_table *table, const char *name)
{
    for (const struct option_row *row = table->rows; row && row->name; row++) {
        if (strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

void options_each(const struct option_table *table,
                  void (*visit)(void *context, const struct option_row *row), void *context)
{
    for (const struct option_row *row = table->rows; row && row->name; row++) {
        if (!row->is_hidden)
            visit(context, row);
    }
    for (const struct option_part *part = table->parts; part && part->table; part++)
        options_each(part->table, visit, context);
}

/* ---- argp ---- */

/* A table in the form that argp takes. The node is the input of argp's parser. */
struct node {
    const struct option_table *table;
    void *values;
    struct node *parts; /* in the order of table->parts */
    struct argp argp;
};

static const struct option_row *row_of_key(const struct option_table *table, int key)
{
    for (const struct option_row *row = table->rows; row && row->name; row++) {
        if (key == (row->letter ? row->letter : FIRST_KEY + (int)(row - table->rows)))
            return row;
    }
    return NULL;
}

static error_t begin_node(struct node *node, struct argp_state *state)
{
    for (size_t i = 0; node->argp.children && node->argp.children[i].argp; i++)
        state->child_inputs[i] = &node->parts[i];
    return 0;
}

/* Ends the process with the message if there is an error. */
static error_t end_on_error(const struct argp_state *state, const char *prefix, enum err_code code,
                            const struct err *err)
{
    if (code)
        argp_error(state, "%s%s", prefix ? prefix : "", err->message);
    return 0;
}

static error_t parse_key(int key, char *text, struct argp_state *state)
{
    struct node *node = state->input;
    const struct option_table *table = node->table;
    struct err err;
    if (key == ARGP_KEY_INIT)
        return begin_node(node, state);
    if (key == ARGP_KEY_ARG && table->take_argument)
        return end_on_error(state, NULL, table->take_argument(node->values, text, &err), &err);
    if (key == ARGP_KEY_END && table->check)
        return end_on_error(state, NULL, table->check(node->values, &err), &err);
    if (key == ARGP_KEY_ARGS && table->take_words) {
        table->take_words(node->values, state->argv + state->next);
        return 0;
    }
    const struct option_row *row = row_of_key(table, key);
    if (!row)
        return ARGP_ERR_UNKNOWN;
    return end_on_error(state, table->error_prefix, options_set(row, node->values, text, &err),
                        &err);
}

static size_t count_rows(const struct option_table *table)
{
    size_t count = 0;
    while (table->rows && table->rows[count].name)
        count++;
    return count;
}

static size_t count_parts(const struct option_table *table)
{
    size_t count = 0;
    while (table->parts && table->parts[count].table)
        count++;
    return count;
}

static struct argp_option make_option(const struct option_row *row, size_t index)
{
    if (row->is_alias)
        return (struct argp_option){.name = row->name, .flags = OPTION_ALIAS};
    return (struct argp_option){
        .name = row->name,
        .key = row->letter ? row->letter : FIRST_KEY + (int)index,
        .arg = row->argument,
        .flags = (row->is_hidden ? OPTION_HIDDEN : 0) |
                 (row->is_value_optional ? OPTION_ARG_OPTIONAL : 0),
        .doc = row->help,
        .group = row->group,
    };
}

static void build_node(struct arena *arena, const struct option_table *table, void *values,
                       argp_parser_t parser, struct node *ret_node)
{
    const size_t row_count = count_rows(table), part_count = count_parts(table);
    struct argp_option *options = arena_new(arena, struct argp_option, row_count + 1);
    struct argp_child *children = arena_new(arena, struct argp_child, part_count + 1);
    struct node *parts = arena_new(arena, struct node, part_count + 1);
    for (size_t i = 0; i < row_count; i++)
        options[i] = make_option(&table->rows[i], i);
    for (size_t i = 0; i < part_count; i++) {
        const struct option_part *part = &table->parts[i];
        void *part_values = values ? (uint8_t *)values + part->offset : NULL; /* for help only */
        build_node(arena, part->table, part_values, parser, &parts[i]);
        children[i] = (struct argp_child){&parts[i].argp, 0, part->heading, part->group};
    }
    *ret_node = (struct node){
        .table = table,
        .values = values,
        .parts = parts,
        .argp = {.options = row_count ? options : NULL, /* argp leaks memory for an empty array */
                 .parser = parser,
                 .args_doc = table->arguments,
                 .doc = table->text,
                 .children = children},
    };
}

void options_parse(const struct option_table *table, int argc, char **argv, void *values)
{
    arena_auto arena = arena_create();
    struct node node;
    build_node(arena, table, values, parse_key, &node);
    argp_err_exit_status = OPTIONS_EXIT_USAGE;
    argp_parse(&node.argp, argc, argv, table->has_own_help ? ARGP_NO_HELP : 0, NULL, &node);
}

struct last_value {
    const struct option_row *row;
    const struct option_table *table;
    const char *text;
};

static error_t find_value(int key, char *text, struct argp_state *state)
{
    struct last_value *value = state->input; /* NULL for parts */
    if (value && row_of_key(value->table, key) == value->row)
        value->text = text;
    return 0;
}

const char *options_last_value(const struct option_table *table, int argc, char **argv,
                               const char *name)
{
    arena_auto arena = arena_create();
    struct node node;
    struct last_value value = {.row = options_find(table, name), .table = table};
    build_node(arena, table, NULL, find_value, &node);
    argp_parse(&node.argp, argc, argv, ARGP_SILENT, NULL, &value);
    return value.text;
}

static void print_help(const struct option_table *table, const char *program, unsigned what)
{
    arena_auto arena = arena_create();
    struct node node;
    build_node(arena, table, NULL, parse_key, &node);
    argp_help(&node.argp, stdout, what, arena_strdup(arena, program));
}

void options_print_help(const struct option_table *table, const char *program)
{
    print_help(table, program, ARGP_HELP_STD_HELP & ~(unsigned)ARGP_HELP_EXIT_OK);
}

void options_print_list(const struct option_table *table)
{
    print_help(table, "", ARGP_HELP_LONG);
}
