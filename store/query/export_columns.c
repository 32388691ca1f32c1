#include "store/query/export_columns.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "store/query/scan.h"

#include <ctype.h>
#include <stdlib.h>

enum { NAME_MAX_BYTES = 1 << 20 };

static const struct parquet_column fixed[EXPORT_FIXED_COUNT] = {
    [EXPORT_TIME] = {SPAN_LITERAL("time"), PARQUET_ONE, {{"", PARQUET_TIME_NS}}, 1},
    [EXPORT_DURATION] = {SPAN_LITERAL("duration_ns"), PARQUET_ONE, {{"", PARQUET_I64}}, 1},
    [EXPORT_PERIOD] = {SPAN_LITERAL("period"), PARQUET_ONE, {{"", PARQUET_I64}}, 1},
    [EXPORT_TYPE] = {SPAN_LITERAL("profile_type"), PARQUET_ONE, {{"", PARQUET_TEXT}}, 1},
    [EXPORT_SAMPLE_TYPE] = {SPAN_LITERAL("sample_type"), PARQUET_ONE, {{"", PARQUET_TEXT}}, 1},
    [EXPORT_SAMPLE_UNIT] = {SPAN_LITERAL("sample_unit"), PARQUET_ONE, {{"", PARQUET_TEXT}}, 1},
    [EXPORT_VALUE] = {SPAN_LITERAL("value"), PARQUET_ONE, {{"", PARQUET_I64}}, 1},
    [EXPORT_STACK] = {SPAN_LITERAL("stack"), PARQUET_LIST, {{"", PARQUET_TEXT}}, 1},
    [EXPORT_FRAMES] = {SPAN_LITERAL("frames"),
                       PARQUET_LIST_OF_STRUCTS,
                       {[EXPORT_FUNCTION] = {"function", PARQUET_TEXT},
                        [EXPORT_FILE] = {"file", PARQUET_TEXT},
                        [EXPORT_LINE] = {"line", PARQUET_I64},
                        [EXPORT_ADDRESS] = {"address", PARQUET_U64},
                        [EXPORT_BUILD_ID] = {"build_id", PARQUET_TEXT},
                        [EXPORT_BINARY] = {"binary", PARQUET_TEXT}},
                       EXPORT_FRAME_FIELDS},
    [EXPORT_TRACE_ID] = {SPAN_LITERAL("trace_id"), PARQUET_OPTIONAL, {{"", PARQUET_TEXT}}, 1},
    [EXPORT_SPAN_ID] = {SPAN_LITERAL("span_id"), PARQUET_OPTIONAL, {{"", PARQUET_TEXT}}, 1},
    [EXPORT_SAMPLE_LABELS] = {SPAN_LITERAL("sample_labels"),
                              PARQUET_MAP,
                              {{"key", PARQUET_TEXT}, {"value", PARQUET_TEXT}},
                              2},
    [EXPORT_SEEN_AT] = {SPAN_LITERAL("seen_at"), PARQUET_LIST, {{"", PARQUET_TIME_NS}}, 1},
};

static int compare_names(const void *a, const void *b)
{
    return span_compare(*(const struct span *)a, *(const struct span *)b);
}

/* Lists the label names of all series, sorted. */
static enum err_code find_labels(const struct scan *scan, struct export_columns *columns,
                                 struct err *err)
{
    struct map_bytes known = {0};
    struct span *names = arena_new(scan_arena(scan), struct span, STORE_EXPORT_LABELS_MAX);
    uint32_t count = 0, series_count;
    const struct store_series *series = scan_series(scan, &series_count);
    for (uint32_t i = 0; i < series_count; i++) {
        for (uint32_t j = 0; j < series[i].label_count; j++) {
            const struct span name = series[i].labels[j].name;
            if (map_bytes_add(&known, name, count) != count)
                continue;
            if (count < STORE_EXPORT_LABELS_MAX)
                names[count] = name;
            count++;
        }
    }
    map_bytes_fini(&known);
    if (count > STORE_EXPORT_LABELS_MAX)
        return err_set(err, ERR_TOO_LARGE,
                       "the series have %u different names of labels, of which each would be a "
                       "column: there may be %d: select fewer series",
                       count, STORE_EXPORT_LABELS_MAX);
    if (count)
        qsort(names, count, sizeof(*names), compare_names);
    columns->label_names = names;
    columns->label_count = count;
    return ERR_NONE;
}

/* A column name in lower case, so that names that differ only by case are found. */
static struct span fold_name(struct arena *arena, struct span name)
{
    char *folded = arena_strndup(arena, name.data, name.size);
    for (size_t i = 0; i < name.size; i++)
        folded[i] = (char)tolower(folded[i]);
    return span_of(folded, name.size);
}

static struct span name_column(struct arena *arena, struct span label, struct map_bytes *taken)
{
    buf_auto text;
    buf_init(&text, NAME_MAX_BYTES);
    buf_append_text(&text, "label_");
    for (size_t i = 0; i < label.size; i++) {
        const uint8_t byte = label.data[i];
        buf_append_byte(&text, byte < 0x80 && isalnum(byte) ? byte : '_');
    }
    const size_t size = text.size;
    struct span name = fold_name(arena, buf_span(&text));
    for (uint32_t number = 2; map_bytes_find(taken, name) != MAP_ABSENT; number++) {
        text.size = size;
        buf_printf(&text, "_%u", number);
        name = fold_name(arena, buf_span(&text));
    }
    map_bytes_add(taken, name, 0);
    return span_of(arena_strndup(arena, text.data, text.size), text.size);
}

enum err_code export_columns_make(const struct scan *scan, struct export_columns *ret_columns,
                                  struct err *err)
{
    struct export_columns columns = {0};
    struct map_bytes taken = {0};
    enum err_code code = find_labels(scan, &columns, err);
    if (code)
        return code;
    columns.count = EXPORT_FIXED_COUNT + columns.label_count;
    columns.columns = arena_new(scan_arena(scan), struct parquet_column, columns.count);
    for (uint32_t i = 0; i < EXPORT_FIXED_COUNT; i++)
        columns.columns[export_column_number(&columns, (enum export_column)i)] = fixed[i];
    for (uint32_t i = 0; i < columns.label_count; i++)
        columns.columns[export_label_column(i)] = (struct parquet_column){
            .name = name_column(scan_arena(scan), columns.label_names[i], &taken),
            .shape = PARQUET_OPTIONAL,
            .fields = {{"", PARQUET_TEXT}},
            .field_count = 1,
        };
    map_bytes_fini(&taken);
    *ret_columns = columns;
    return ERR_NONE;
}
