#include "cli/markdown.h"

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/report.h"
#include "cli/value.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"

#include <inttypes.h>
#include <math.h>

enum { NAME_MAX_BYTES = 160 };

/* ---- texts ---- */

void markdown_append_text(struct buf *output, struct span text)
{
    buf_auto clean;
    buf_init(&clean, MARKDOWN_MAX_BYTES);
    terminal_append_clean(&clean, span_cut_utf8(text, NAME_MAX_BYTES));
    for (size_t i = 0; i < clean.size; i++) {
        if (clean.data[i] == '@') { /* a backslash does not prevent a mention */
            buf_append_text(output, "&#64;");
            continue;
        }
        if (strchr("\\[]`*_<>!|#&~", clean.data[i]))
            buf_append_byte(output, '\\');
        buf_append_byte(output, clean.data[i]);
    }
}

/* A "|" ends a table cell even within code, unless a backslash precedes it. */
static void append_code(struct buf *output, struct span text)
{
    buf_auto clean;
    buf_init(&clean, MARKDOWN_MAX_BYTES);
    terminal_append_clean(&clean, span_cut_utf8(text, NAME_MAX_BYTES));
    buf_append_byte(output, '`');
    for (size_t i = 0; i < clean.size; i++) {
        if (clean.data[i] == '|')
            buf_append_byte(output, '\\');
        buf_append_byte(output, clean.data[i] == '`' ? '\'' : clean.data[i]);
    }
    buf_append_byte(output, '`');
}

static double percent(int64_t part, int64_t total)
{
    return total ? 100 * (double)part / fabs((double)total) : 0;
}

static const struct report_row *top_row(const struct report *report)
{
    return report->row_count && report->rows[0].name.size ? &report->rows[0] : NULL;
}

static void append_type(struct buf *output, const struct report *report)
{
    if (!report->sample_type.size)
        return;
    markdown_append_text(output, report->sample_type);
    buf_append_text(output, ": ");
}

static void print_output(const struct buf *output)
{
    fwrite(output->data, 1, output->size, stdout);
}

/* ---- one profile ---- */

/* "cpu: 1.28 s, most in main.work (45.0 %)" */
static void append_summary(struct buf *output, const struct report *report)
{
    char value[VALUE_TEXT_BYTES];
    const struct report_row *top = top_row(report);
    append_type(output, report);
    buf_append_text(output, value_format((double)report->total, report->unit, value));
    if (!top)
        return;
    buf_append_text(output, ", most in ");
    markdown_append_text(output, top->name);
    buf_printf(output, " (%.1f %%)", percent(top->flat, report->total));
}

static void append_table(struct buf *output, const struct report *report)
{
    char flat[VALUE_TEXT_BYTES], cum[VALUE_TEXT_BYTES];
    buf_append_text(output, "| flat | % | cum | function |\n| ---: | ---: | ---: | :--- |\n");
    for (size_t i = 0; i < report->row_count && i < MARKDOWN_ROWS; i++) {
        const struct report_row *row = &report->rows[i];
        buf_printf(output, "| %s | ", value_format((double)row->flat, report->unit, flat));
        buf_printf(output, "%.1f", percent(row->flat, report->total));
        buf_printf(output, " | %s | ", value_format((double)row->cum, report->unit, cum));
        append_code(output, row->name);
        buf_append_text(output, " |\n");
    }
}

static bool read_top(struct cli *cli, struct client *client, const json_t *share,
                     const char *password, json_t **ret_json, struct report *ret_report)
{
    struct err ignored;
    struct client_request request;
    client_request_init(&request, "GET",
                        arena_printf(cli->arena, "/api/v1/shares/%s/top?limit=%d",
                                     client_text(share, "id", ""), MARKDOWN_ROWS));
    if (password)
        client_request_add(&request, "X-Perfolio-Password", password);
    return !client_send_json(client, &request, ret_json, &ignored) && *ret_json &&
           !report_from_json(*ret_json, cli->arena, ret_report, &ignored) && ret_report->row_count;
}

/* The "](" that ends the text of the first link; the title in it may have escaped brackets. NULL:
 * there is none. */
static const char *find_title_end(const char *line)
{
    bool is_escaped = false;
    for (const char *at = line; *at; at++) {
        if (!is_escaped && at[0] == ']' && at[1] == '(')
            return at;
        is_escaped = !is_escaped && *at == '\\';
    }
    return NULL;
}

void markdown_print_share(struct cli *cli, struct client *client, const json_t *share,
                          const char *password)
{
    json_auto_t *json = NULL;
    struct report report;
    buf_auto output;
    buf_init(&output, MARKDOWN_MAX_BYTES);
    const char *line = client_text(share, "markdown", client_text(share, "url", ""));
    const char *title_end = find_title_end(line);
    if (!title_end || !read_top(cli, client, share, password, &json, &report)) {
        terminal_print_clean(stdout, span_text(line));
        putchar('\n');
        return;
    }
    terminal_append_clean(&output, span_of(line, (size_t)(title_end - line)));
    buf_append_text(&output, ", ");
    append_summary(&output, &report);
    terminal_append_clean(&output, span_text(title_end));
    buf_append_text(&output, "\n\n");
    append_table(&output, &report);
    print_output(&output);
}

/* ---- a comparison ---- */

/* "cpu: 1.28 s → 1.40 s (+9.4 %), most in main.work (+100.00 ms)" */
static void append_change(struct buf *output, const struct report *report)
{
    char from[VALUE_TEXT_BYTES], to[VALUE_TEXT_BYTES], delta[VALUE_TEXT_BYTES];
    const struct report_row *top = top_row(report);
    append_type(output, report);
    buf_printf(output, "%s → %s", value_format((double)report->base_total, report->unit, from),
               value_format((double)report->total, report->unit, to));
    if (report->base_total)
        buf_printf(output, " (%+.1f %%)",
                   100 * ((double)report->total - (double)report->base_total) /
                       fabs((double)report->base_total));
    if (report->is_normalised)
        buf_append_text(output, ", after scaled to before's total");
    if (!top || top->flat == top->base_flat)
        return;
    buf_append_text(output, ", most in ");
    markdown_append_text(output, top->name);
    buf_printf(output, " (%s)",
               value_format_delta((double)top->flat - (double)top->base_flat, report->unit, delta));
}

/* Leaves out functions without a flat value on both sides; functions that they call have it. */
static void append_change_table(struct buf *output, const struct report *report)
{
    char from[VALUE_TEXT_BYTES], to[VALUE_TEXT_BYTES], delta[VALUE_TEXT_BYTES];
    bool has_any = false;
    for (size_t i = 0; i < report->row_count && i < MARKDOWN_ROWS; i++) {
        const struct report_row *row = &report->rows[i];
        const double change = (double)row->flat - (double)row->base_flat;
        if (!row->flat && !row->base_flat)
            continue;
        buf_append_text(output, has_any ? ""
                                        : "| before | after | change | function |\n"
                                          "| ---: | ---: | ---: | :--- |\n");
        has_any = true;
        buf_printf(output, "| %s | %s | %s | ",
                   value_format((double)row->base_flat, report->unit, from),
                   value_format((double)row->flat, report->unit, to),
                   value_format_delta(change, report->unit, delta));
        append_code(output, row->name);
        buf_append_text(output, " |\n");
    }
}

void markdown_print_diff(const struct report *report, const char *url, bool has_picture)
{
    buf_auto output;
    buf_init(&output, MARKDOWN_MAX_BYTES);
    const size_t page_bytes = strcspn(url, "?");
    buf_append_text(&output, has_picture ? "[![" : "[");
    append_change(&output, report);
    if (has_picture)
        buf_printf(&output, "](%.*s/og.png%s)", (int)page_bytes, url, url + page_bytes);
    buf_printf(&output, "](%s)\n\n", url);
    append_change_table(&output, report);
    print_output(&output);
}
