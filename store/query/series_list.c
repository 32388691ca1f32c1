#include "store/query/series_list.h"

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "store/block/block_read.h"
#include "store/block/selector.h"
#include "store/query/row_labels.h"
#include "store/query/scan.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX_BYTES = 4 << 20 };

struct job {
    struct store_series_list list;
    bool may_be_of_samples; /* samples may have labels that selectors require */
};

/* ---- series ---- */

struct named_type {
    struct store_type type;
    uint32_t number; /* in the scan */
};

struct named_series {
    struct store_series series;
    const char *text;
};

static int compare_types(const void *a, const void *b)
{
    const struct named_type *x = a, *y = b;
    return strcmp(x->type.name, y->type.name);
}

/* Sorts types by name; type_numbers: the new index per type of the scan. */
static void order_types(const struct scan *scan, struct store_series_list *list,
                        uint32_t *type_numbers)
{
    uint32_t count;
    const struct store_type *scanned = scan_types(scan, &count);
    struct named_type *order = mem_new(struct named_type, count + (size_t)1);
    struct store_type *types = arena_new(scan_arena(scan), struct store_type, count);
    for (uint32_t i = 0; i < count; i++)
        order[i] = (struct named_type){.type = scanned[i], .number = i};
    qsort(order, count, sizeof(*order), compare_types);
    for (uint32_t i = 0; i < count; i++) {
        types[i] = order[i].type;
        type_numbers[order[i].number] = i;
    }
    mem_free(order);
    list->types = types;
    list->type_count = count;
}

/* Appends a value in the syntax of store/block/selector.h. */
static void append_quoted(struct buf *text, struct span value)
{
    buf_append_byte(text, '"');
    for (size_t i = 0; i < value.size; i++) {
        const uint8_t byte = value.data[i];
        if (byte == '"' || byte == '\\')
            buf_append_byte(text, '\\');
        if (byte == '\n')
            buf_append_text(text, "\\n");
        else if (byte == 0)
            buf_append_text(text, "\\x00");
        else
            buf_append_byte(text, byte);
    }
    buf_append_byte(text, '"');
}

/* The type leads, or is among the labels where it has to be quoted. */
static void append_type(const char *name, struct buf *text)
{
    const bool is_quoted = !*name || strpbrk(name, SELECTOR_QUOTED_SIGNS "{ ");
    if (!is_quoted)
        buf_append_text(text, name);
    buf_append_byte(text, '{');
    if (!is_quoted)
        return;
    buf_append_text(text, "__profile_type__=");
    append_quoted(text, span_text(name));
}

static const char *make_text(const struct scan *scan, const struct store_series *series,
                             struct buf *text)
{
    uint32_t type_count;
    buf_clear(text);
    append_type(scan_types(scan, &type_count)[series->type].name, text);
    for (uint32_t i = 0; i < series->label_count; i++) {
        if (text->data[text->size - 1] != '{')
            buf_append_byte(text, ',');
        buf_append_span(text, series->labels[i].name);
        buf_append_byte(text, '=');
        append_quoted(text, series->labels[i].value);
    }
    buf_append_byte(text, '}');
    return arena_strndup(scan_arena(scan), text->data, text->size);
}

static int compare_series(const void *a, const void *b)
{
    const struct named_series *x = a, *y = b;
    return strcmp(x->text, y->text);
}

/* The texts may be several times as long as the labels, whose memory was checked before. */
static enum err_code order_series(const struct scan *scan, struct store_series_list *list,
                                  const uint32_t *type_numbers)
{
    enum { CHECK_EVERY = 256 };
    enum err_code code = ERR_NONE;
    uint32_t count;
    const struct store_series *scanned = scan_series(scan, &count);
    struct named_series *order = mem_new(struct named_series, count + (size_t)1);
    struct store_series *series = arena_new(scan_arena(scan), struct store_series, count);
    const char **texts = arena_new(scan_arena(scan), const char *, count);
    buf_auto text;
    buf_init(&text, TEXT_MAX_BYTES);
    for (uint32_t i = 0; i < count && !code; i++) {
        order[i].series = scanned[i];
        order[i].text = make_text(scan, &scanned[i], &text);
        if (i % CHECK_EVERY == 0)
            code = scan_check_limits(scan, count * sizeof(*order));
    }
    if (!code)
        qsort(order, count, sizeof(*order), compare_series);
    for (uint32_t i = 0; i < count && !code; i++) {
        series[i] = order[i].series;
        series[i].type = type_numbers[series[i].type];
        texts[i] = order[i].text;
    }
    mem_free(order);
    list->series = series;
    list->texts = texts;
    list->series_count = count;
    return code;
}

static enum err_code make_list(struct scan *scan, void *context)
{
    struct job *job = context;
    uint32_t type_count;
    scan_types(scan, &type_count);
    uint32_t *type_numbers = arena_new(scan_arena(scan), uint32_t, type_count);
    order_types(scan, &job->list, type_numbers);
    job->list.statistics = *scan_statistics(scan);
    job->may_be_of_samples = scan_may_be_of_samples(scan);
    return order_series(scan, &job->list, type_numbers);
}

/* ---- series whose samples match ---- */

static enum err_code match_rows(struct scan *scan, struct row_labels *labels,
                                struct scan_task *task, bool *ret_has)
{
    const uint32_t *bytes = task->granule->extent_bytes;
    struct block_rows rows;
    enum err_code code = scan_open_stacks(scan, task);
    if (code || task->is_broken)
        return code;
    row_labels_begin(labels, task->block, task->granule); /* the block was opened again */
    code = scan_read_rows(scan, task, true, &rows);
    for (uint32_t i = 0; !code && !*ret_has && i < rows.row_count; i++)
        *ret_has = rows.ordinals[i] >= task->first && rows.ordinals[i] < task->end &&
                   row_labels_stays(row_labels_group(labels, rows.label_sets[i]));
    return scan_note_read(scan, task, 0, bytes[BLOCK_ROWS] + bytes[BLOCK_DETAILS], code);
}

static enum err_code match_task(struct scan *scan, struct row_labels *labels,
                                struct scan_task *task, bool *ret_has)
{
    row_labels_begin(labels, task->block, task->granule);
    if (!task->has_totals_only && row_labels_wants_rows(labels, task->granule))
        return match_rows(scan, labels, task, ret_has);
    *ret_has = row_labels_stays(row_labels_group(labels, 0));
    return ERR_NONE;
}

static enum err_code find_series(struct scan *scan, bool *are_found)
{
    enum err_code code = ERR_NONE;
    struct row_labels *labels = row_labels_create(scan_arena(scan), NULL, scan_row_selectors(scan),
                                                  NULL, 0, ROW_LABELS_EXACT);
    uint32_t task_count;
    struct scan_task *tasks = scan_tasks(scan, &task_count);
    for (uint32_t i = 0; i < task_count && !code; i++) {
        struct scan_task *task = &tasks[i];
        if (!are_found[task->series])
            code = match_task(scan, labels, task, &are_found[task->series]);
        if (!code)
            code = scan_check_limits(scan, row_labels_memory(labels));
    }
    if (!code)
        code = row_labels_check(labels, scan_err(scan));
    row_labels_destroy(labels);
    return code;
}

static enum err_code list_series_of_samples(struct scan *scan, void *context)
{
    uint32_t series_count;
    scan_series(scan, &series_count);
    bool *are_found = arena_new(scan_arena(scan), bool, series_count);
    enum err_code code = find_series(scan, are_found);
    if (code)
        return code;
    scan_keep_series(scan, are_found);
    return make_list(scan, context);
}

enum err_code series_list_make(const struct scan_source *source, struct arena *arena,
                               const struct store_query *query, struct store_series_list *ret_list,
                               struct err *err)
{
    struct job job = {.may_be_of_samples = false};
    struct arena *run = arena_create();
    enum err_code code = scan_run(source, query, SCAN_SERIES, run, make_list, &job, err);
    if (code || job.may_be_of_samples)
        arena_destroy(run);
    else
        arena_adopt(arena, run);
    if (code)
        return code;
    if (job.may_be_of_samples)
        code = scan_run(source, query, SCAN_TASKS, arena, list_series_of_samples, &job, err);
    if (code)
        return code;
    *ret_list = job.list;
    return ERR_NONE;
}

/* ---- names and values ---- */

static int compare_spans(const void *a, const void *b)
{
    return span_compare(*(const struct span *)a, *(const struct span *)b);
}

/* Lists the keys of a map, sorted. */
static void list_keys(struct arena *arena, const struct map_bytes *map,
                      const struct span **ret_texts, uint32_t *ret_count)
{
    struct span *texts = arena_new(arena, struct span, map->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].value != MAP_ABSENT)
            texts[count++] = map->slots[i].key;
    }
    if (count)
        qsort(texts, count, sizeof(*texts), compare_spans);
    *ret_texts = texts;
    *ret_count = count;
}

void series_list_label_names(struct arena *arena, const struct store_series_list *list,
                             const struct span **ret_names, uint32_t *ret_count)
{
    struct map_bytes names = {0};
    for (uint32_t i = 0; i < list->series_count; i++) {
        const struct store_series *series = &list->series[i];
        for (uint32_t k = 0; k < series->label_count; k++)
            map_bytes_add(&names, series->labels[k].name, 0);
    }
    list_keys(arena, &names, ret_names, ret_count);
    map_bytes_fini(&names);
}

void series_list_label_values(struct arena *arena, const struct store_series_list *list,
                              struct span label, const struct span **ret_values,
                              uint32_t *ret_count)
{
    struct map_bytes values = {0};
    const bool is_type = span_equal_text(label, "__profile_type__");
    for (uint32_t i = 0; is_type && i < list->type_count; i++)
        map_bytes_add(&values, span_text(list->types[i].name), 0);
    for (uint32_t i = 0; i < list->series_count; i++) {
        const struct store_series *series = &list->series[i];
        for (uint32_t k = 0; k < series->label_count; k++) {
            if (span_equal(series->labels[k].name, label))
                map_bytes_add(&values, series->labels[k].value, 0);
        }
    }
    list_keys(arena, &values, ret_values, ret_count);
    map_bytes_fini(&values);
}

static bool is_among(struct span name, const struct span *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (span_equal(names[i], name))
            return true;
    }
    return false;
}

enum err_code series_list_find_absent_label(const struct scan_source *source, struct arena *arena,
                                            const struct store_query *query, struct span *ret_name,
                                            struct err *err)
{
    struct span required[SELECTOR_MAX_MATCHERS];
    struct selector *selector;
    struct store_series_list list;
    const struct span *names;
    uint32_t name_count;
    *ret_name = SPAN_LITERAL("");
    if (!query->selector_count)
        return ERR_NONE;
    enum err_code code = selector_parse(arena, query->selectors[0], &selector, err);
    const uint32_t required_count = code ? 0 : selector_required_labels(selector, required);
    if (!required_count)
        return code;
    struct job job = {.may_be_of_samples = false};
    struct arena *run = arena_create();
    code = scan_run(source, query, SCAN_SERIES, run, make_list, &job, err);
    arena_destroy(run);
    if (code || job.may_be_of_samples)
        return code;
    struct store_query of_all = *query;
    of_all.selectors = NULL;
    of_all.selector_count = 0;
    code = series_list_make(source, arena, &of_all, &list, err);
    if (code)
        return code;
    series_list_label_names(arena, &list, &names, &name_count);
    for (uint32_t i = 0; i < required_count && !ret_name->size; i++) {
        if (!is_among(required[i], names, name_count))
            *ret_name = required[i];
    }
    return ERR_NONE;
}
