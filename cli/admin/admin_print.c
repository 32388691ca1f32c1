#include "cli/admin/admin_print.h"

#include "cli/admin/admin.h"
#include "cli/admin/admin_table.h"
#include "cli/client.h"
#include "cli/value.h"

#include <stdlib.h>

enum { MAX_CELL_COLUMNS = 48, MAX_CELL_BYTES = 4096 };

static void append_cell(struct buf *cell, const json_t *value)
{
    char time[VALUE_TEXT_BYTES];
    const json_t *item;
    size_t i;
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        bool is_time = strlen(text) >= 20 && text[4] == '-' && text[10] == 'T';
        terminal_append_clean(cell, span_text(is_time ? value_time(text, time) : text));
    } else if (json_is_integer(value)) {
        buf_printf(cell, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_boolean(value)) {
        buf_append_text(cell, json_is_true(value) ? "yes" : "no");
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, item)
        {
            buf_append_text(cell, i ? "," : "");
            append_cell(cell, item);
        }
    } else if (json_is_object(value)) {
        append_cell(cell,
                    json_object_get(value, json_object_get(value, "email") ? "email" : "name"));
    } else {
        buf_append_text(cell, "-");
    }
}

/* Finds a member by name, or by "outer.inner". */
static const json_t *member_of(const json_t *row, const char *name)
{
    struct span outer, inner;
    if (!span_split(span_text(name), '.', &outer, &inner))
        return json_object_get(row, name);
    return json_object_get(json_object_getn(row, (const char *)outer.data, outer.size),
                           (const char *)inner.data);
}

static const json_t *find_list(const json_t *response)
{
    const char *name;
    json_t *member;
    if (json_is_array(response))
        return response;
    json_object_foreach((json_t *)(uintptr_t)response, name, member)
    {
        if (json_is_array(member))
            return member;
    }
    return NULL;
}

static const char *heading_of(const char *column)
{
    const char *dot = strchr(column, '.');
    return dot ? dot + 1 : column;
}

static void print_columns(const struct cli *cli, const struct admin_call *call, const json_t *list)
{
    int widths[ADMIN_MAX_COLUMNS] = {0};
    buf_auto cell;
    buf_init(&cell, MAX_CELL_BYTES);
    size_t i;
    const json_t *row;
    for (int column = 0; column < ADMIN_MAX_COLUMNS && call->columns[column]; column++) {
        widths[column] = (int)strlen(heading_of(call->columns[column]));
        json_array_foreach(list, i, row)
        {
            buf_clear(&cell);
            append_cell(&cell, member_of(row, call->columns[column]));
            int width = terminal_width(buf_span(&cell));
            widths[column] = width > widths[column] ? width : widths[column];
        }
        if (cli->terminal.is_output_terminal && widths[column] > MAX_CELL_COLUMNS)
            widths[column] = MAX_CELL_COLUMNS;
    }
    fputs(terminal_style(&cli->terminal, stdout, STYLE_BOLD), stdout);
    for (int column = 0; column < ADMIN_MAX_COLUMNS && call->columns[column]; column++)
        printf("%s%-*s", column ? "  " : "", widths[column], heading_of(call->columns[column]));
    printf("%s\n", terminal_style(&cli->terminal, stdout, STYLE_RESET));
    json_array_foreach(list, i, row)
    {
        for (int column = 0; column < ADMIN_MAX_COLUMNS && call->columns[column]; column++) {
            buf_clear(&cell);
            append_cell(&cell, member_of(row, call->columns[column]));
            fputs(column ? "  " : "", stdout);
            bool is_last = column + 1 == ADMIN_MAX_COLUMNS || !call->columns[column + 1];
            int width = terminal_width(buf_span(&cell));
            terminal_print_cell(stdout, buf_span(&cell),
                                is_last && width < widths[column] ? width : widths[column]);
        }
        putchar('\n');
    }
}

/* Prints one member per line; members of an inner object as "outer.inner". */
static void print_members(struct span prefix, const json_t *object)
{
    const char *name;
    json_t *member;
    buf_auto cell;
    buf_init(&cell, MAX_CELL_BYTES);
    json_object_foreach((json_t *)(uintptr_t)object, name, member)
    {
        buf_clear(&cell);
        terminal_append_clean(&cell, prefix);
        buf_append_text(&cell, prefix.size ? "." : "");
        terminal_append_clean(&cell, span_text(name));
        if (json_is_object(member)) {
            print_members(buf_span(&cell), member);
            continue;
        }
        printf("%-26.*s  ", SPAN_PRINT(buf_span(&cell)));
        buf_clear(&cell);
        append_cell(&cell, member);
        printf("%.*s\n", SPAN_PRINT(buf_span(&cell)));
    }
}

void admin_print_response(const struct admin *admin, const struct admin_call *call,
                          const json_t *response)
{
    struct cli *cli = admin->cli;
    const json_t *list = call->columns[0] ? find_list(response) : NULL;
    const json_t *result = call->result ? json_object_get(response, call->result) : NULL;
    if (admin->is_json && response) {
        json_dumpf(response, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
        putchar('\n');
    } else if (list) {
        print_columns(cli, call, list);
    } else if (result && json_is_string(result)) {
        terminal_print_clean(stdout, span_text(json_string_value(result)));
        putchar('\n');
    } else if (result && json_is_integer(result)) {
        printf("%" JSON_INTEGER_FORMAT "\n", json_integer_value(result));
    } else if (response && strcmp(call->method, "GET") == 0) {
        print_members(span_text(""), response);
    } else {
        terminal_note(&cli->terminal, "done");
    }
    if (list && client_text(response, "next_cursor", NULL))
        terminal_note(&cli->terminal, "there are more than these");
}
