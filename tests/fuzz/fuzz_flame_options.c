/*
 * Options of a viewer's request for a profile with all features. Lines: sample type, grouping,
 * focus, ignore, hide, show, maximum number of nodes, two label rules, a label.
 */
#include "tests/fuzz/fuzz.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/formats/perf_script.h"
#include "lib/profile/report/callers.h"
#include "lib/profile/report/export_json.h"
#include "lib/profile/report/export_labels.h"
#include "lib/profile/report/filter.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/labels.h"
#include "lib/profile/report/top.h"

static const char perf_text[] = "app 1/2 1.000001: 100 cycles: \n"
                                "\t  10 hot+0x2 (/bin/app)\n"
                                "\t  10 inner (inlined)\n"
                                "\t  20 outer (/bin/app)\n"
                                "\t  src/outer.c:12\n"
                                "\t  30 main (/bin/app)\n"
                                "\n"
                                "app 1/3 1.000002: 50 cycles: \n"
                                "\tffffffff81000010 entry ([kernel.kallsyms])\n"
                                "\t  40 [unknown] (/lib/libc.so.6)\n"
                                "\t  20 outer (/bin/app)\n"
                                "\t  20 outer (/bin/app)\n"
                                "\t  30 main (/bin/app)\n"
                                "\n"
                                "other 7/7 1.000003: 3 misses: \n"
                                "\t  99 [unknown] ([unknown])\n";

static const struct profile *subject(void)
{
    static struct profile *profile;
    struct err err;
    if (!profile)
        fuzz_check(perf_script_decode(span_text(perf_text), NULL, &profile, &err) == ERR_NONE);
    return profile;
}

static void report(struct arena *arena, const struct view *view, uint32_t max_nodes)
{
    struct err err;
    const struct flame *flame;
    const struct callers *callers;
    fuzz_check(flame_create(arena, view, max_nodes, &flame, &err) == ERR_NONE);
    fuzz_check(flame->node_cum[0] == view->kept[VIEW_SIDE_B]);
    const struct top *top = top_create(arena, view);
    for (uint32_t i = 0; i < top->row_count; i++)
        fuzz_check(callers_create(arena, view, view->frames[top->rows[i].frame].name, &callers,
                                  &err) == ERR_NONE);
    buf_auto output;
    buf_init(&output, 1 << 20);
    fuzz_check(export_json(flame, 3, (struct span){0}, &output, &err) == ERR_NONE);
}

static void report_labels(struct arena *arena, const struct view *view, struct span key)
{
    struct err err;
    const struct labels *labels;
    enum err_code code = labels_create(arena, view, key, &labels, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        return;
    }
    fuzz_check(labels->kept.total[VIEW_SIDE_B] == view->kept[VIEW_SIDE_B]);
    buf_auto output;
    buf_init(&output, 1 << 20);
    fuzz_check(export_labels(labels, 1, &output, &err) == ERR_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = span_of(data, size), lines[10];
    for (size_t i = 0; i < 10; i++) {
        lines[i] = span_of(NULL, 0);
        span_take_line(&rest, &lines[i]);
    }
    arena_auto arena = arena_create();
    const struct filter_rule rules[] = {{FILTER_FOCUS, lines[2]}, {FILTER_IGNORE, lines[3]},
                                        {FILTER_HIDE, lines[4]},  {FILTER_SHOW, lines[5]},
                                        {FILTER_LABEL, lines[7]}, {FILTER_LABEL, lines[8]}};
    struct view_options options = {.sample_type = lines[0], .group_by = lines[1]};
    const struct view *view;
    struct err err;
    enum err_code code = filter_create(arena, rules, 6, &options.filter, &err);
    if (!code)
        code = view_create(arena, subject(), &options, &view, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        return 0;
    }
    uint64_t max_nodes = 0;
    if (!span_parse_u64(lines[6], &max_nodes) || max_nodes > UINT32_MAX)
        max_nodes = 0;
    report(arena, view, (uint32_t)max_nodes);
    report_labels(arena, view, lines[9]);
    return 0;
}
