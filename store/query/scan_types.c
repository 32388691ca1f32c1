/* Errors about profile types: several match, or none of that name exists. */
#include "store/query/scan_internal.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct store_type *)a)->name, ((const struct store_type *)b)->name);
}

/* Lists the types by name, as many as fit into a message. */
static const char *list_types(const struct scan *scan)
{
    enum { LIST_BYTES = ERR_MESSAGE_BYTES / 2 };
    struct store_type *types = arena_new(scan->arena, struct store_type, scan->type_count);
    buf_auto list;
    buf_init(&list, SCAN_TEXT_MAX_BYTES);
    for (uint32_t i = 0; i < scan->type_count; i++)
        types[i] = scan->types[i];
    if (scan->type_count)
        qsort(types, scan->type_count, sizeof(*types), compare_names);
    uint32_t shown = 0;
    for (; shown < scan->type_count; shown++) {
        if (shown && list.size + strlen(types[shown].name) > LIST_BYTES)
            break;
        buf_printf(&list, "%s%s", shown ? ", " : "", types[shown].name);
    }
    if (shown < scan->type_count)
        buf_printf(&list, " and %" PRIu32 " more", scan->type_count - shown);
    return arena_strndup(scan->arena, list.data, list.size);
}

/* Finds the types with a profile before the window's end. The others were found only as neighbours
 * after the window, and have no value in it. */
static bool *find_types_in_window(const struct scan *scan)
{
    bool *are_in_window = arena_new(scan->arena, bool, scan->type_count);
    for (uint32_t i = 0; i < scan->task_count; i++) {
        const struct scan_task *task = &scan->tasks[i];
        are_in_window[scan->series[task->series].type] |=
            task->granule->begin_ns < scan->query->end_ns;
    }
    return are_in_window;
}

/* Finds the types that a selector names whole; all types if there are none. A name of five parts
 * also matches the types of other kinds, such as name + ":delta". */
static bool *find_named_types(const struct scan *scan)
{
    bool *are_named = arena_new(scan->arena, bool, scan->type_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < scan->type_count; i++) {
        for (size_t j = 0; j < scan->state->set.count && !are_named[i]; j++)
            are_named[i] =
                selector_names_type(scan->state->set.selectors[j], span_text(scan->types[i].name));
        count += are_named[i];
    }
    for (uint32_t i = 0; i < scan->type_count; i++)
        are_named[i] |= count == 0;
    return are_named;
}

/* Renumbers the series and types that stay; series that are removed get UINT32_MAX. */
static uint32_t *keep_series(struct scan *scan, const bool *are_kept)
{
    uint32_t *types = arena_new(scan->arena, uint32_t, scan->type_count);
    uint32_t *numbers = arena_new(scan->arena, uint32_t, scan->series_count);
    uint32_t type_count = 0, series_count = 0;
    for (uint32_t i = 0; i < scan->type_count; i++) {
        types[i] = type_count;
        if (are_kept[i])
            scan->types[type_count++] = scan->types[i];
    }
    for (uint32_t i = 0; i < scan->series_count; i++) {
        struct store_series series = scan->series[i];
        numbers[i] = are_kept[series.type] ? series_count : UINT32_MAX;
        series.type = types[series.type];
        if (numbers[i] != UINT32_MAX)
            scan->series[series_count++] = series;
    }
    scan->type_count = type_count;
    scan->series_count = scan->statistics.series_count = series_count;
    return numbers;
}

/* Finds the types to keep. */
typedef bool *find_types(const struct scan *scan);

static void keep_types(struct scan *scan, find_types *find)
{
    const bool *are_kept = find(scan);
    if (!memchr(are_kept, false, scan->type_count))
        return;
    const uint32_t *numbers = keep_series(scan, are_kept);
    uint32_t kept = 0;
    scan->statistics.profile_count = scan->statistics.totals_count = 0;
    scan->first_ns = INT64_MAX;
    scan->last_ns = INT64_MIN;
    for (uint32_t i = 0; i < scan->task_count; i++) {
        struct scan_task *task = &scan->tasks[i];
        task->series = numbers[task->series];
        if (task->series == UINT32_MAX)
            continue;
        scan_count_task(scan, task);
        scan->tasks[kept++] = *task;
    }
    scan->task_count = kept;
}

enum err_code scan_check_types(struct scan *scan)
{
    if (scan->type_count > 1)
        keep_types(scan, find_types_in_window);
    if (scan->type_count > 1)
        keep_types(scan, find_named_types);
    if (scan->type_count <= 1)
        return ERR_NONE;
    return err_set(scan->err, ERR_INVALID,
                   "query: %" PRIu32 " profile types match: name one of them: %s", scan->type_count,
                   list_types(scan));
}

struct explanation {
    const struct store_query *query;
    const char *types; /* types of the window; NULL: the query names one of them */
};

static enum err_code explain_missing_type(struct scan *scan, void *context)
{
    struct explanation *explanation = context;
    const struct store_query *query = explanation->query;
    explanation->types = NULL;
    for (size_t i = 0; i < query->selector_count; i++) {
        struct selector *selector;
        enum err_code code = selector_parse(scan->arena, query->selectors[i], &selector, scan->err);
        if (code)
            return code;
        for (uint32_t j = 0; j < scan->type_count; j++) {
            bool matches;
            code = selector_matches_type(selector, scan->types[j].parts, scan->types[j].kind,
                                         &matches, scan->err);
            if (code || matches)
                return code;
        }
    }
    if (scan->type_count)
        explanation->types = list_types(scan);
    return ERR_NONE;
}

enum err_code scan_explain_nothing(const struct scan_source *source,
                                   const struct store_query *query, struct arena *arena,
                                   struct err *err)
{
    struct explanation explanation = {.query = query};
    struct store_query all = *query;
    all.reach_ns = all.ahead_ns = 0;
    if (!query->selector_count || query->profile)
        return ERR_NONE;
    all.selectors = NULL;
    all.selector_count = 0;
    enum err_code code =
        scan_run(source, &all, SCAN_SERIES, arena, explain_missing_type, &explanation, err);
    if (code || !explanation.types)
        return code;
    return err_set(err, ERR_NOT_FOUND,
                   "query: the window has no profile of that type; there are: %s",
                   explanation.types);
}
