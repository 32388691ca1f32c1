#include "cli/report.h"

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/value.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/report/top.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_NAME_BYTES = 64 << 10, VALUE_COLUMNS = 12, PERCENT_COLUMNS = 7 };

/* Whether all values of a row were rounded to 0. A function without any value is in no report. */
static bool is_rounded_to_0(const struct report *report, const struct report_row *row)
{
    return report->is_normalised && !row->flat && !row->cum && !row->base_flat && !row->base_cum;
}

static struct report_row row_of(const struct view *view, const struct top_row *row)
{
    const struct frame *frame = &view->frames[row->frame];
    return (struct report_row){
        .name = frame->name,
        .file = frame->file,
        .line = frame->line,
        .flat = row->flat[VIEW_SIDE_B],
        .cum = row->cum[VIEW_SIDE_B],
        .base_flat = row->flat[VIEW_SIDE_A],
        .base_cum = row->cum[VIEW_SIDE_A],
    };
}

void report_from_view(const struct view *view, uint64_t limit, struct arena *arena,
                      struct report *ret_report)
{
    const struct top *top = top_create(arena, view);
    size_t count = !limit || limit > top->row_count ? top->row_count : (size_t)limit;
    struct report report = {
        .is_diff = view->is_diff,
        .is_normalised = view->is_normalised,
        .is_by_line = view->group == VIEW_BY_LINE,
        .group_by = view->group_by,
        .sample_type = view_sample_type(view),
        .sample_type_index = view->value_type,
        .unit = view_unit(view),
        .total = view->total[VIEW_SIDE_B],
        .base_total = view->total[VIEW_SIDE_A],
        .rows = arena_new(arena, struct report_row, count),
        .row_count = count,
        .function_count = top->row_count,
    };
    for (size_t i = 0; i < top->row_count; i++) {
        const struct report_row row = row_of(view, &top->rows[i]);
        report.rounded_count += is_rounded_to_0(&report, &row);
        if (i < count)
            report.rows[i] = row;
    }
    *ret_report = report;
}

static struct span text_member(const json_t *json, const char *name)
{
    const json_t *member = json_object_get(json, name);
    return json_is_string(member) ? span_of(json_string_value(member), json_string_length(member))
                                  : span_of(NULL, 0);
}

static int64_t number_member(const json_t *json, const char *name)
{
    const json_t *member = json_object_get(json, name);
    double real = json_real_value(member);
    if (!json_is_real(member))
        return json_integer_value(member);
    return real >= 0x1p63 ? INT64_MAX : real < -0x1p63 ? INT64_MIN : (int64_t)real;
}

/* Reads a count; a negative number in a response counts as 0. */
static int64_t count_member(const json_t *json, const char *name)
{
    int64_t count = number_member(json, name);
    return count < 0 ? 0 : count;
}

enum err_code report_from_json(const json_t *json, struct arena *arena, struct report *ret_report,
                               struct err *err)
{
    const json_t *functions = json_object_get(json, "functions"), *function;
    size_t count = json_array_size(functions), i;
    bool is_diff = json_object_get(json, "total_b");
    if (!json_is_array(functions))
        return err_set(err, ERR_NETWORK, "the response of the server contains no functions");
    struct report report = {
        .is_diff = is_diff,
        .is_normalised = strncmp(client_text(json, "mode", ""), "normali", 7) == 0,
        .is_by_line = strcmp(client_text(json, "group_by", ""), "line") == 0,
        .group_by = text_member(json, "group_by"),
        .sample_type = text_member(json, "sample_type"),
        .sample_type_index = (uint32_t)count_member(json, "sample_type_index"),
        .unit = text_member(json, "unit"),
        .total = number_member(json, is_diff ? "total_b" : "total"),
        .base_total = number_member(json, "total_a"),
        .rows = arena_new(arena, struct report_row, count),
        .row_count = count,
        .function_count = (uint64_t)count_member(json, "function_count"),
    };
    if (report.function_count < count)
        report.function_count = count;
    json_array_foreach(functions, i, function)
    {
        report.rows[i] = (struct report_row){
            .name = text_member(function, "name"),
            .file = text_member(function, "file"),
            .line = number_member(function, "line"),
            .flat = number_member(function, is_diff ? "flat_b" : "flat"),
            .cum = number_member(function, is_diff ? "cum_b" : "cum"),
            .base_flat = number_member(function, "flat_a"),
            .base_cum = number_member(function, "cum_a"),
        };
        report.rounded_count += is_rounded_to_0(&report, &report.rows[i]);
    }
    *ret_report = report;
    return ERR_NONE;
}

static double percent(double part, int64_t total)
{
    return total ? 100 * part / fabs((double)total) : 0;
}

/* printf pads by bytes, and "µs" has more bytes than columns. */
static void print_right(const char *text, int columns)
{
    int width = terminal_width(span_text(text));
    printf("%*s%s", width < columns ? columns - width : 0, "", text);
}

static void print_value(double value, struct span unit)
{
    char text[VALUE_TEXT_BYTES];
    if (value == 0)
        print_right("·", VALUE_COLUMNS);
    else
        print_right(value_format(value, unit, text), VALUE_COLUMNS);
}

static void print_percent(double value, bool is_signed)
{
    char text[32];
    if (fabs(value) >= 9999.5)
        snprintf(text, sizeof(text), is_signed ? "%+.0e%%" : "%.0e%%", value);
    else if (fabs(value) >= 999.95) /* as wide as a number with a decimal place */
        snprintf(text, sizeof(text), is_signed ? "%+.0f%%" : "%.0f%%", value);
    else
        snprintf(text, sizeof(text), is_signed ? "%+.1f%%" : "%.1f%%", value);
    print_right(text, PERCENT_COLUMNS + is_signed);
}

/* Appends " file.c:12", without folders, which distinguishes rows of one name when grouped by
 * line. */
static void append_location(const struct report_row *row, struct buf *text)
{
    struct span file = row->file;
    const uint8_t *slash = file.size ? memrchr(file.data, '/', file.size) : NULL;
    if (slash)
        file = span_of(slash + 1, file.size - (size_t)(slash + 1 - file.data));
    if (!row->line)
        return;
    buf_append_byte(text, ' ');
    terminal_append_clean(text, file);
    buf_printf(text, ":%" PRId64, row->line);
}

/* Prints the name, and on a terminal also the file if it fits. */
static void print_name(const struct cli *cli, const struct report *report,
                       const struct report_row *row, int used)
{
    const struct terminal *terminal = &cli->terminal;
    buf_auto name, file;
    buf_init(&name, MAX_NAME_BYTES);
    buf_init(&file, MAX_NAME_BYTES);
    terminal_append_clean(&name, row->name.size ? row->name : SPAN_LITERAL("(no name)"));
    if (report->is_by_line)
        append_location(row, &name);
    else
        terminal_append_clean(&file, row->file);
    int space = terminal->columns - used;
    space = space < 20 ? 20 : space;
    int width = terminal_width(buf_span(&name));
    terminal_print_cell(stdout, buf_span(&name), width < space ? width : space);
    space -= width + 2;
    int file_width = terminal_width(buf_span(&file));
    if (terminal->is_output_terminal && file.size && space >= file_width)
        printf("  %s%.*s%s", terminal_style(terminal, stdout, STYLE_DIM),
               SPAN_PRINT(buf_span(&file)), terminal_style(terminal, stdout, STYLE_RESET));
    putchar('\n');
}

/* Prints the names of the columns; the last one is the grouping. */
static void print_columns(const struct cli *cli, const char *text, const struct report *report)
{
    struct span group = report->group_by;
    const bool is_label = view_find_label(report->group_by, &group);
    fputs(terminal_style(&cli->terminal, stdout, STYLE_BOLD), stdout);
    fputs(text, stdout);
    terminal_print_clean(stdout, report->group_by.size ? group : SPAN_LITERAL("function"));
    fputs(is_label ? ", function" : "", stdout);
    printf("%s\n", terminal_style(&cli->terminal, stdout, STYLE_RESET));
}

/* Prints how many functions the table leaves out: those that round to 0, and those beyond its
 * limit. */
static void print_count(const struct cli *cli, const struct report *report, uint64_t row_count)
{
    char count[VALUE_TEXT_BYTES], all[VALUE_TEXT_BYTES];
    const char *dim = terminal_style(&cli->terminal, stdout, STYLE_DIM);
    const char *reset = terminal_style(&cli->terminal, stdout, STYLE_RESET);
    if (report->rounded_count)
        printf("%s%s more %s to 0%s\n", dim, value_count((int64_t)report->rounded_count, count),
               report->rounded_count == 1 ? "function that rounds" : "functions that round", reset);
    if (row_count + report->rounded_count < report->function_count)
        printf("%s%s of %s rows; --limit 0 shows all%s\n", dim,
               value_count((int64_t)row_count, count),
               value_count((int64_t)report->function_count, all), reset);
}

/* Prints the type like profile_append_type_name; names and units may be any bytes. */
static void print_type(const struct report *report)
{
    if (report->sample_type.size) {
        terminal_print_clean(stdout, report->sample_type);
    } else {
        printf("type %" PRIu32, report->sample_type_index);
        fputs(report->unit.size ? " (" : "", stdout);
        terminal_print_clean(stdout, report->unit);
        fputs(report->unit.size ? ")" : "", stdout);
    }
    fputs(": ", stdout);
}

static void print_top(const struct cli *cli, const struct report *report)
{
    const struct terminal *terminal = &cli->terminal;
    const char *reset = terminal_style(terminal, stdout, STYLE_RESET);
    char total[VALUE_TEXT_BYTES];
    double sum = 0;
    print_type(report);
    printf("%s\n", value_format((double)report->total, report->unit, total));
    print_columns(cli, "        flat  flat%   sum%         cum   cum%  ", report);
    for (size_t i = 0; i < report->row_count; i++) {
        const struct report_row *row = &report->rows[i];
        double flat = percent((double)row->flat, report->total);
        sum += (double)row->flat;
        bool is_hot = flat >= 2;
        if (is_hot)
            fputs(terminal_style(terminal, stdout, flat >= 10 ? STYLE_RED : STYLE_YELLOW), stdout);
        print_value((double)row->flat, report->unit);
        print_percent(flat, false);
        if (is_hot)
            fputs(reset, stdout);
        print_percent(percent(sum, report->total), false);
        print_value((double)row->cum, report->unit);
        print_percent(percent((double)row->cum, report->total), false);
        fputs("  ", stdout);
        print_name(cli, report, row, 2 * VALUE_COLUMNS + 3 * PERCENT_COLUMNS + 2);
    }
    print_count(cli, report, report->row_count);
}

/* Prints the percentage of a change; nothing for a change or a total of 0. */
static void print_change(double delta, int64_t total)
{
    if (delta == 0 || total == 0)
        print_right("·", PERCENT_COLUMNS + 1);
    else
        print_percent(percent(delta, total), true);
}

static void print_delta(const struct cli *cli, int64_t from, int64_t to,
                        const struct report *report)
{
    char text[VALUE_TEXT_BYTES];
    double delta = (double)to - (double)from;
    enum style style = delta > 0 ? STYLE_RED : STYLE_GREEN;
    if (delta != 0)
        fputs(terminal_style(&cli->terminal, stdout, style), stdout);
    print_right(delta != 0 ? value_format_delta(delta, report->unit, text) : "·",
                VALUE_COLUMNS + 1);
    print_change(delta, report->base_total);
    if (delta != 0)
        fputs(terminal_style(&cli->terminal, stdout, STYLE_RESET), stdout);
}

static void print_diff_rows(const struct cli *cli, const struct report *report)
{
    uint64_t row_count = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        const struct report_row *row = &report->rows[i];
        if (is_rounded_to_0(report, row))
            continue;
        row_count++;
        print_value((double)row->base_flat, report->unit);
        print_value((double)row->flat, report->unit);
        print_delta(cli, row->base_flat, row->flat, report);
        print_delta(cli, row->base_cum, row->cum, report);
        fputs("  ", stdout);
        print_name(cli, report, row, 4 * VALUE_COLUMNS + 2 * PERCENT_COLUMNS + 6);
    }
    print_count(cli, report, row_count);
}

static void print_diff(const struct cli *cli, const struct report *report)
{
    char a[VALUE_TEXT_BYTES], b[VALUE_TEXT_BYTES], delta[VALUE_TEXT_BYTES];
    double change = (double)report->total - (double)report->base_total;
    print_type(report);
    printf("%s → %s (%s", value_format((double)report->base_total, report->unit, a),
           value_format((double)report->total, report->unit, b),
           value_format_delta(change, report->unit, delta));
    if (report->base_total)
        printf(", %+.1f%%", percent(change, report->base_total));
    printf(")%s\n", report->is_normalised ? ", B scaled to A's total" : "");
    print_columns(cli, "      flat A      flat B   flat B − A       %    cum B − A       %  ",
                  report);
    print_diff_rows(cli, report);
}

void report_print_table(const struct cli *cli, const struct report *report)
{
    if (report->is_diff)
        print_diff(cli, report);
    else
        print_top(cli, report);
}

static void append_member(struct buf *text, const char *name, struct span value)
{
    buf_printf(text, "\"%s\":", name);
    buf_append_json(text, value);
}

static void append_row(struct buf *text, const struct report *report, const struct report_row *row)
{
    buf_append_text(text, "{");
    append_member(text, "name", row->name);
    buf_append_text(text, ",");
    append_member(text, "file", row->file);
    if (row->line)
        buf_printf(text, ",\"line\":%" PRId64, row->line);
    if (report->is_diff)
        buf_printf(text,
                   ",\"flat_a\":%" PRId64 ",\"flat_b\":%" PRId64 ",\"flat_delta\":%" PRId64
                   ",\"cum_a\":%" PRId64 ",\"cum_b\":%" PRId64 ",\"cum_delta\":%" PRId64 "}",
                   row->base_flat, row->flat,
                   top_delta((const int64_t[]){row->flat, row->base_flat}), row->base_cum, row->cum,
                   top_delta((const int64_t[]){row->cum, row->base_cum}));
    else
        buf_printf(text, ",\"flat\":%" PRId64 ",\"cum\":%" PRId64 "}", row->flat, row->cum);
}

void report_print_json(const struct report *report)
{
    buf_auto text;
    buf_init(&text, SIZE_MAX / 2);
    buf_append_text(&text, "{");
    append_member(&text, "sample_type", report->sample_type);
    buf_append_text(&text, ",");
    append_member(&text, "unit", report->unit);
    buf_printf(&text, ",\"sample_type_index\":%" PRIu32, report->sample_type_index);
    if (report->is_diff)
        buf_printf(&text, ",\"mode\":\"%s\",\"total_a\":%" PRId64 ",\"total_b\":%" PRId64,
                   report->is_normalised ? "normalised" : "absolute", report->base_total,
                   report->total);
    else
        buf_printf(&text, ",\"total\":%" PRId64, report->total);
    buf_append_text(&text, ",\"functions\":[");
    for (size_t i = 0; i < report->row_count; i++) {
        buf_append_text(&text, i ? "," : "");
        append_row(&text, report, &report->rows[i]);
    }
    buf_printf(&text, "],\"function_count\":%" PRIu64 ",\"truncated\":%s}", report->function_count,
               report->row_count < report->function_count ? "true" : "false");
    buf_append_text(&text, "\n");
    terminal_print_text(stdout, buf_span(&text));
}
