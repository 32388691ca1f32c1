/*
 * print_report: reports of a profile as JSON lines, so that tests can compare the library with
 * independent readers and plain arithmetic without a server.
 *
 *   print_report top FILE [option=value …]            {"sample_type","total","total_a","kept",
 *                                                     "functions":[…]}
 *   print_report diff BASE FILE [option=value …]      as top; total is FILE's, total_a is BASE's
 *   print_report merge FILE FILE [option=value …]     as top, of the sum
 *   print_report flame FILE [option=value …]          as lib/profile/report/export_json.h
 *   print_report folded FILE [option=value …]         as lib/profile/report/export_folded.h
 *   print_report labels FILE [option=value …]         as lib/profile/report/export_labels.h, with
 *                                                     all values
 *   print_report diff-labels BASE FILE [option=value …]   the same for two profiles
 *   print_report pprof FILE                           the profile encoded again, uncompressed
 *
 * Options: sample_type, group_by, focus, ignore, hide, show, label, mode, max_nodes.
 */
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/merge.h"
#include "lib/profile/pprof/pprof.h"
#include "lib/profile/report/diff.h"
#include "lib/profile/report/export_folded.h"
#include "lib/profile/report/export_json.h"
#include "lib/profile/report/export_labels.h"
#include "lib/profile/report/filter.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/labels.h"
#include "lib/profile/report/top.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILE_BYTES_MAX = 1 << 29 };

struct options {
    struct view_options view;
    struct filter_rule rules[FILTER_RULES_MAX];
    size_t rule_count;
    enum diff_mode mode;
    uint32_t max_nodes;
};

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    exit(1);
}

static struct profile *read_profile(const char *path)
{
    buf_auto bytes;
    buf_init(&bytes, FILE_BYTES_MAX);
    struct err err = {.message = "cannot be read"};
    FILE *file = fopen(path, "rb");
    if (!file)
        fail(path, &err);
    static uint8_t block[1 << 16];
    for (size_t size; (size = fread(block, 1, sizeof(block), file)) > 0;)
        buf_append(&bytes, block, size);
    fclose(file);
    struct profile *profile = NULL;
    if (format_decode(buf_span(&bytes), NULL, NULL, &profile, &err))
        fail(path, &err);
    return profile;
}

static void read_option(struct options *options, const char *text)
{
    struct span name, value;
    span_split(span_text(text), '=', &name, &value);
    if (span_equal_text(name, "sample_type"))
        options->view.sample_type = value;
    else if (span_equal_text(name, "group_by"))
        options->view.group_by = value;
    else if (span_equal_text(name, "mode"))
        diff_find_mode(value, &options->mode);
    else if (span_equal_text(name, "max_nodes"))
        options->max_nodes = (uint32_t)strtoul((const char *)value.data, NULL, 10);
    for (int i = 0; i < FILTER_ACTION_COUNT && options->rule_count < FILTER_RULES_MAX; i++) {
        enum filter_action action = (enum filter_action)i;
        if (span_equal_text(name, filter_action_name(action)))
            options->rules[options->rule_count++] = (struct filter_rule){action, value};
    }
}

static void print_row(struct buf *json, const struct view *view, const struct top_row *row)
{
    const struct frame *frame = &view->frames[row->frame];
    buf_append_text(json, "{\"name\":");
    buf_append_json(json, frame->name);
    buf_append_text(json, ",\"file\":");
    buf_append_json(json, frame->file);
    if (view->is_diff)
        buf_printf(json, ",\"flat_a\":%lld,\"cum_a\":%lld", (long long)row->flat[VIEW_SIDE_A],
                   (long long)row->cum[VIEW_SIDE_A]);
    buf_printf(json, ",\"flat\":%lld,\"cum\":%lld}", (long long)row->flat[VIEW_SIDE_B],
               (long long)row->cum[VIEW_SIDE_B]);
}

static void print_top(struct arena *arena, const struct view *view)
{
    const struct top *top = top_create(arena, view);
    buf_auto json;
    buf_init(&json, FILE_BYTES_MAX);
    buf_append_text(&json, "{\"sample_type\":");
    buf_append_json(&json, view_sample_type(view));
    buf_printf(&json, ",\"total\":%lld,\"total_a\":%lld,\"kept\":%lld,\"functions\":[",
               (long long)view->total[VIEW_SIDE_B], (long long)view->total[VIEW_SIDE_A],
               (long long)view->kept[VIEW_SIDE_B]);
    for (uint32_t i = 0; i < top->row_count; i++) {
        buf_append_text(&json, i ? ",\n" : "\n");
        print_row(&json, view, &top->rows[i]);
    }
    buf_append_text(&json, "]}\n");
    fwrite(json.data, 1, json.size, stdout);
}

static void print_flame(struct arena *arena, const struct view *view, uint32_t max_nodes)
{
    buf_auto json;
    buf_init(&json, FILE_BYTES_MAX);
    const struct flame *flame;
    struct err err;
    if (flame_create(arena, view, max_nodes, &flame, &err) ||
        export_json(flame, 0, (struct span){0}, &json, &err))
        fail("flame", &err);
    fwrite(json.data, 1, json.size, stdout);
}

static void print_folded(const struct view *view)
{
    buf_auto text;
    buf_init(&text, FILE_BYTES_MAX);
    struct err err;
    if (export_folded(view, &text, &err))
        fail("folded", &err);
    fwrite(text.data, 1, text.size, stdout);
}

static void print_labels(struct arena *arena, const struct view *view)
{
    buf_auto json;
    buf_init(&json, FILE_BYTES_MAX);
    const struct labels *labels;
    struct err err;
    if (labels_create(arena, view, span_of(NULL, 0), &labels, &err) ||
        export_labels(labels, 0, &json, &err))
        fail("labels", &err);
    fwrite(json.data, 1, json.size, stdout);
}

static void print_pprof(const struct profile *profile)
{
    buf_auto raw;
    buf_init(&raw, FILE_BYTES_MAX);
    struct err err;
    if (pprof_encode(profile, &raw, &err))
        fail("encode", &err);
    fwrite(raw.data, 1, raw.size, stdout);
}

static struct profile *read_sum(const struct profile *a, const struct profile *b)
{
    struct profile *sum;
    struct err err;
    if (merge_profiles((const struct profile *[]){a, b}, 2, NULL, &sum, &err))
        fail("merge", &err);
    return sum;
}

static void print_view(const char *command, struct arena *arena, const struct profile *a,
                       const struct profile *b, const struct options *options)
{
    const struct view *view;
    struct err err;
    bool is_labels = strcmp(command, "labels") == 0 || strcmp(command, "diff-labels") == 0;
    bool is_diff = strncmp(command, "diff", 4) == 0;
    if (is_diff ? diff_view_create(arena, a, b, options->mode, &options->view, &view, &err)
                : view_create(arena, a, &options->view, &view, &err))
        fail("view", &err);
    if (is_labels)
        print_labels(arena, view);
    else if (strcmp(command, "flame") == 0)
        print_flame(arena, view, options->max_nodes);
    else if (strcmp(command, "folded") == 0)
        print_folded(view);
    else
        print_top(arena, view);
}

int main(int count, char **arguments)
{
    arena_auto arena = arena_create();
    const char *command = count > 2 ? arguments[1] : "";
    bool is_merge = strcmp(command, "merge") == 0;
    bool has_two = is_merge || strncmp(command, "diff", 4) == 0;
    int first_option = has_two ? 4 : 3;
    if (count < first_option)
        return 2;
    struct options options = {0};
    for (int i = first_option; i < count; i++)
        read_option(&options, arguments[i]);
    struct err err;
    if (filter_create(arena, options.rules, options.rule_count, &options.view.filter, &err))
        fail("filter", &err);
    struct profile *a = read_profile(arguments[2]);
    struct profile *b = has_two ? read_profile(arguments[3]) : NULL;
    struct profile *sum = is_merge ? read_sum(a, b) : NULL;
    if (strcmp(command, "pprof") == 0)
        print_pprof(a);
    else
        print_view(command, arena, sum ? sum : a, b, &options);
    profile_destroy(a);
    profile_destroy(b);
    profile_destroy(sum);
    return 0;
}
