#include "store/query/export.h"

#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/raw_name.h"
#include "store/query/export_columns.h"
#include "store/query/frame_resolution.h"
#include "store/query/row_labels.h"
#include "store/query/scan.h"

#include <inttypes.h>
#include <stdlib.h>

/* entry is the number of a value in one row group, epoch the number of that row group
 * (parquet_epoch). The next row group assigns other numbers. epoch 0: not added yet. */
struct known {
    uint32_t epoch;
    uint32_t entry;
};

/* Entries of one list. */
struct list {
    uint32_t *entries;
    uint32_t count;
    uint32_t capacity;
};

/* A frame: its numbers in the columns EXPORT_STACK (name) and EXPORT_FRAMES (frame). */
struct known_frame {
    uint32_t epoch;
    const struct profile_location *location; /* the location of its address */
    uint32_t name;
    uint32_t frame;
};

struct export
{
    enum err_code code;   /* set when a row exceeds a limit; append_row returns it */
    size_t checked_bytes; /* parquet_memory at the last check */
    struct scan *scan;
    struct row_labels *labels;
    struct export_columns columns;
    struct parquet_writer *writer;
    /* The current block's: */
    const struct block *block;
    struct arena *block_arena;
    struct profile tables;           /* with names */
    struct known_frame *of_line;     /* per line of the tables */
    struct known_frame *of_location; /* per location; used for those without lines */
    /* The current series': */
    uint32_t series;
    uint32_t series_epoch;
    uint32_t type[3];                        /* whole name, sample type, unit */
    uint32_t label[STORE_EXPORT_LABELS_MAX]; /* MAP_ABSENT: the series lacks this label */
    /* Per profile of the current granule: time, duration and period. */
    struct known(*of_profile)[3];
    uint32_t profile_capacity;
    /* The current stack's and label set's: */
    uint32_t stack;
    uint32_t stack_epoch; /* 0: none */
    struct list names;
    struct list frames;
    uint32_t label_set;
    uint32_t label_set_epoch;
    struct list own_labels;
    struct list trace_id;
    struct list span_id;
    struct list seen_at;
    struct buf text;
};

static uint32_t number_of(const struct export *export, enum export_column column)
{
    return export_column_number(&export->columns, column);
}

static uint32_t add_text(struct export *export, uint32_t column, struct span text)
{
    return parquet_add(export->writer, column, &(struct parquet_value){.text = text});
}

static uint32_t add_number(struct export *export, enum export_column column, int64_t number)
{
    return parquet_add(export->writer, number_of(export, column),
                       &(struct parquet_value){.number = number});
}

static void push(struct list *list, uint32_t entry)
{
    vec_reserve(list->entries, list->capacity, list->count + 1);
    list->entries[list->count++] = entry;
}

/* ---- a series ---- */

static void add_series(struct export *export)
{
    const uint32_t epoch = parquet_epoch(export->writer);
    if (export->series_epoch == epoch)
        return;
    uint32_t count;
    const struct store_series *series = &scan_series(export->scan, &count)[export->series];
    const struct store_type *type = &scan_types(export->scan, &count)[series->type];
    export->series_epoch = epoch;
    export->type[0] = add_text(export, EXPORT_TYPE, span_text(type->name));
    export->type[1] = add_text(export, EXPORT_SAMPLE_TYPE, type->parts[STORE_TYPE_SAMPLE_TYPE]);
    export->type[2] = add_text(export, EXPORT_SAMPLE_UNIT, type->parts[STORE_TYPE_SAMPLE_UNIT]);
    /* The labels of the series and the columns of labels are both sorted by name. */
    for (uint32_t i = 0, j = 0; i < export->columns.label_count; i++) {
        export->label[i] = MAP_ABSENT;
        if (j < series->label_count &&
            span_equal(series->labels[j].name, export->columns.label_names[i]))
            export->label[i] = add_text(export, export_label_column(i), series->labels[j++].value);
    }
}

static void append_series(struct export *export)
{
    struct parquet_writer *writer = export->writer;
    parquet_append(writer, EXPORT_TYPE, &export->type[0], 1);
    parquet_append(writer, EXPORT_SAMPLE_TYPE, &export->type[1], 1);
    parquet_append(writer, EXPORT_SAMPLE_UNIT, &export->type[2], 1);
    for (uint32_t i = 0; i < export->columns.label_count; i++)
        parquet_append(writer, export_label_column(i), &export->label[i],
                       export->label[i] != MAP_ABSENT);
}

/* ---- a profile ---- */

static void append_profile(struct export *export, const struct block_profile *profile,
                           struct known known[3])
{
    static const enum export_column columns[3] = {EXPORT_TIME, EXPORT_DURATION, EXPORT_PERIOD};
    const int64_t numbers[3] = {profile->time_ns, profile->duration_ns, profile->period};
    const uint32_t epoch = parquet_epoch(export->writer);
    for (int i = 0; i < 3; i++) {
        if (known[i].epoch != epoch)
            known[i] = (struct known){epoch, add_number(export, columns[i], numbers[i])};
        parquet_append(export->writer, columns[i], &known[i].entry, 1);
    }
}

/* ---- a stack ---- */

static enum err_code check_limits(const struct export *export, size_t bytes)
{
    return scan_check_limits(export->scan, bytes + parquet_memory(export->writer) +
                                               row_labels_memory(export->labels));
}

static enum err_code check_names(void *context, size_t bytes, struct err *err)
{
    const struct export *export = context;
    const enum err_code code = check_limits(export, bytes);
    if (code && err != scan_err(export->scan))
        *err = *scan_err(export->scan);
    return code;
}

static enum err_code begin_block(struct export *export, const struct block *block)
{
    struct scan *scan = export->scan;
    const struct names_memory memory = {.context = export, .check = check_names};
    if (export->block == block)
        return ERR_NONE;
    arena_destroy(export->block_arena);
    export->block_arena = arena_create();
    export->block = block;
    export->stack_epoch = export->label_set_epoch = 0;
    enum err_code code = frame_resolution_resolve(
        scan_resolver(scan), scan_query(scan)->tenant_id, &memory, block_dictionary(block)->tables,
        export->block_arena, &export->tables, scan_symbolization(scan), scan_err(scan));
    if (code)
        return code;
    export->of_line = arena_new(export->block_arena, struct known_frame, export->tables.line_count);
    export->of_location =
        arena_new(export->block_arena, struct known_frame, export->tables.location_count);
    return ERR_NONE;
}

/* Names a location without a function as reports do (lib/profile/report/view.h). */
static struct span name_raw(struct export *export, const struct profile_location *location,
                            struct span path)
{
    char text[RAW_NAME_BYTES];
    const struct span name = raw_name_write(&export->tables, location, text),
                      base = raw_name_base(path);
    if (name.size == 0 && base.size == 0)
        return SPAN_LITERAL("<unknown>");
    buf_clear(&export->text);
    if (name.size)
        buf_append_span(&export->text, name);
    else
        buf_printf(&export->text, "[%.*s]", SPAN_PRINT(base));
    return buf_span(&export->text);
}

/* line NULL: the location has no line. */
static void add_frame(struct export *export, const struct profile_location *location,
                      const struct profile_line *line, struct known_frame *known)
{
    const struct profile *tables = &export->tables;
    const struct span *strings = tables->strings;
    struct parquet_value values[EXPORT_FRAME_FIELDS] = {
        [EXPORT_ADDRESS] = {.number = (int64_t)location->address}};
    if (location->mapping != PROFILE_NONE) {
        const struct profile_mapping *mapping = &tables->mappings[location->mapping];
        values[EXPORT_BUILD_ID].text = strings[mapping->build_id];
        values[EXPORT_BINARY].text = strings[mapping->filename];
    }
    if (line && line->function != PROFILE_NONE) {
        const struct profile_function *function = &tables->functions[line->function];
        values[EXPORT_FUNCTION].text =
            strings[function->name ? function->name : function->system_name];
        values[EXPORT_FILE].text = strings[function->filename];
    }
    if (line)
        values[EXPORT_LINE].number = line->line;
    struct span name = values[EXPORT_FUNCTION].text;
    if (!name.size)
        name = name_raw(export, location, values[EXPORT_BINARY].text);
    known->name = add_text(export, number_of(export, EXPORT_STACK), name);
    known->frame = parquet_add(export->writer, number_of(export, EXPORT_FRAMES), values);
    known->location = location;
    known->epoch = parquet_epoch(export->writer);
}

/* A row may have thousands of frames, each with texts of 16 KiB. */
static void check_growth(struct export *export)
{
    enum { UNCHECKED_BYTES = 16 << 20 };
    const size_t bytes = parquet_memory(export->writer);
    if (bytes > export->checked_bytes && bytes - export->checked_bytes < UNCHECKED_BYTES)
        return;
    export->checked_bytes = bytes;
    if (!export->code)
        export->code = check_limits(export, arena_bytes(export->block_arena));
}

static void push_frame(struct export *export, const struct profile_location *location,
                       const struct profile_line *line, struct known_frame *known)
{
    if (known->epoch != parquet_epoch(export->writer) || known->location != location) {
        check_growth(export);
        if (export->code)
            return;
        add_frame(export, location, line, known);
    }
    push(&export->names, known->name);
    push(&export->frames, known->frame);
}

static void push_location(struct export *export, uint32_t number)
{
    const struct profile_location *location = &export->tables.locations[number];
    if (!location->line_count)
        push_frame(export, location, NULL, &export->of_location[number]);
    for (uint32_t i = 0; i < location->line_count; i++) {
        const uint32_t line = location->first_line + i;
        push_frame(export, location, &export->tables.lines[line], &export->of_line[line]);
    }
}

static void append_stack(struct export *export, uint32_t stack)
{
    const struct stacks *stacks = &block_dictionary(export->block)->stacks;
    const uint32_t epoch = parquet_epoch(export->writer);
    if (export->stack_epoch != epoch || export->stack != stack) {
        export->names.count = export->frames.count = 0;
        for (struct stack_position position = stacks->ends[stack]; position.node != STACKS_ROOT;
             position = stacks_caller(stacks, position))
            push_location(export, stacks->frames[position.node]);
        export->stack = stack;
        export->stack_epoch = epoch;
    }
    parquet_append(export->writer, number_of(export, EXPORT_STACK), export->names.entries,
                   export->names.count);
    parquet_append(export->writer, number_of(export, EXPORT_FRAMES), export->frames.entries,
                   export->frames.count);
}

/* ---- labels of a row ---- */

static void add_own_label(struct export *export, const struct profile_label *label)
{
    const struct span *strings = block_dictionary(export->block)->tables->strings;
    struct parquet_value values[2] = {{.text = strings[label->key]},
                                      {.text = strings[label->text]}};
    if (label->is_numeric) {
        buf_clear(&export->text);
        buf_printf(&export->text, "%" PRId64 "%s", label->number, label->unit ? " " : "");
        buf_append_span(&export->text, strings[label->unit]);
        values[1].text = buf_span(&export->text);
    }
    push(&export->own_labels,
         parquet_add(export->writer, number_of(export, EXPORT_SAMPLE_LABELS), values));
}

static void add_id(struct export *export, enum export_column column, const uint8_t *id, size_t size,
                   struct list *list)
{
    static const uint8_t none[16];
    char hex[2 * DIGEST_BYTES + 1];
    list->count = 0;
    if (memcmp(id, none, size) == 0)
        return;
    digest_hex(span_of(id, size), hex);
    push(list, add_text(export, number_of(export, column), span_text(hex)));
}

static void add_label_set(struct export *export, uint32_t number)
{
    const struct dictionary *dictionary = block_dictionary(export->block);
    const struct batch_label_set *set = &dictionary->label_sets[number];
    const uint32_t epoch = parquet_epoch(export->writer);
    if (export->label_set_epoch == epoch && export->label_set == number)
        return;
    export->label_set_epoch = epoch;
    export->label_set = number;
    export->own_labels.count = 0;
    struct map_u64 keys = {0}; /* a map has each key once: the first one counts */
    for (uint32_t i = 0; i < set->label_count; i++) {
        const struct profile_label *label = &dictionary->sample_labels[set->first_label + i];
        if (map_u64_add(&keys, label->key, i) == i)
            add_own_label(export, label);
    }
    map_u64_fini(&keys);
    add_id(export, EXPORT_TRACE_ID, set->link.trace_id, sizeof(set->link.trace_id),
           &export->trace_id);
    add_id(export, EXPORT_SPAN_ID, set->link.span_id, sizeof(set->link.span_id), &export->span_id);
}

static void append_label_set(struct export *export, uint32_t number)
{
    struct parquet_writer *writer = export->writer;
    add_label_set(export, number);
    parquet_append(writer, number_of(export, EXPORT_TRACE_ID), export->trace_id.entries,
                   export->trace_id.count);
    parquet_append(writer, number_of(export, EXPORT_SPAN_ID), export->span_id.entries,
                   export->span_id.count);
    parquet_append(writer, number_of(export, EXPORT_SAMPLE_LABELS), export->own_labels.entries,
                   export->own_labels.count);
}

/* ---- rows ---- */

static enum err_code append_row(struct export *export, const struct block_rows *rows, uint32_t row,
                                uint64_t first_timestamp)
{
    const uint32_t ordinal = rows->ordinals[row];
    const uint32_t timestamps = rows->timestamp_counts ? rows->timestamp_counts[row] : 0;
    add_series(export);
    append_series(export);
    append_profile(export, &rows->profiles[ordinal], export->of_profile[ordinal]);
    append_stack(export, rows->stacks[row]);
    append_label_set(export, rows->label_sets ? rows->label_sets[row] : 0);
    const uint32_t value = add_number(export, EXPORT_VALUE, rows->values[row]);
    parquet_append(export->writer, number_of(export, EXPORT_VALUE), &value, 1);
    export->seen_at.count = 0;
    for (uint32_t i = 0; i < timestamps; i++)
        push(&export->seen_at,
             add_number(export, EXPORT_SEEN_AT, rows->timestamps[first_timestamp + i]));
    parquet_append(export->writer, number_of(export, EXPORT_SEEN_AT), export->seen_at.entries,
                   export->seen_at.count);
    if (export->code)
        return export->code;
    return parquet_end_row(export->writer, scan_err(export->scan));
}

/* The number of values of the row that was appended last, by which limits are checked. */
static size_t count_values(const struct export *export)
{
    return 1 + export->names.count + export->frames.count + export->own_labels.count +
           export->seen_at.count;
}

/* A row may have thousands of frames, so the limits are checked by the number of values. */
static enum err_code append_rows(struct export *export, const struct scan_task *task,
                                 const struct block_rows *rows)
{
    enum { CHECK_VALUES = 1 << 16, CHECK_ROWS = 1 << 12 };
    uint64_t timestamp = 0, row_count = 0;
    size_t unchecked = CHECK_VALUES;
    enum err_code code = ERR_NONE;
    if (export->profile_capacity < rows->profile_count) {
        export->profile_capacity = rows->profile_count;
        mem_free(export->of_profile);
        export->of_profile = mem_alloc(rows->profile_count, sizeof(*export->of_profile));
    }
    memset(export->of_profile, 0, rows->profile_count * sizeof(*export->of_profile));
    for (uint32_t i = 0; i < rows->row_count && !code; i++) {
        const uint64_t first_timestamp = timestamp;
        const uint32_t set = rows->label_sets ? rows->label_sets[i] : 0;
        timestamp += rows->timestamp_counts ? rows->timestamp_counts[i] : 0;
        if (unchecked >= CHECK_VALUES || i % CHECK_ROWS == 0) {
            unchecked = 0;
            code = check_limits(export, arena_bytes(export->block_arena));
        }
        if (!code && rows->ordinals[i] >= task->first && rows->ordinals[i] < task->end &&
            row_labels_stays(row_labels_group(export->labels, set))) {
            code = append_row(export, rows, i, first_timestamp);
            row_count++;
            unchecked += count_values(export);
        }
    }
    scan_count_rows(export->scan, row_count);
    return code;
}

static enum err_code add_task(struct export *export, struct scan_task *task)
{
    struct scan *scan = export->scan;
    const uint32_t *bytes = task->granule->extent_bytes;
    struct block_rows rows;
    enum err_code code = begin_block(export, task->block);
    if (code)
        return code;
    row_labels_begin(export->labels, task->block, task->granule);
    code = scan_read_rows(scan, task, true, &rows);
    const bool is_read = !code;
    code = scan_note_read(scan, task, 0,
                          bytes[BLOCK_PROFILES] + bytes[BLOCK_TOTALS] + bytes[BLOCK_ROWS] +
                              bytes[BLOCK_DETAILS],
                          code);
    if (code || !is_read)
        return code;
    if (export->series != task->series)
        export->series_epoch = 0;
    export->series = task->series;
    return append_rows(export, task, &rows);
}

/* ---- from beginning to end ---- */

struct job {
    const struct store_export_sink *sink;
    struct store_statistics *statistics;
};

static enum err_code write_all(struct export *export)
{
    struct scan *scan = export->scan;
    const struct parquet_note notes[] = {
        {"perfolio.query",
         scan_query(scan)->selector_count ? scan_query(scan)->selectors[0] : SPAN_LITERAL("{}")},
        {"perfolio.start_ns",
         span_text(arena_printf(scan_arena(scan), "%" PRId64, scan_query(scan)->start_ns))},
        {"perfolio.end_ns",
         span_text(arena_printf(scan_arena(scan), "%" PRId64, scan_query(scan)->end_ns))},
    };
    enum err_code code = ERR_NONE;
    uint32_t task_count;
    struct scan_task *tasks = scan_tasks(scan, &task_count);
    for (uint32_t i = 0; i < task_count && !code; i++)
        code = add_task(export, &tasks[i]);
    if (code)
        return code;
    code = row_labels_check(export->labels, scan_err(scan));
    if (code)
        return code;
    return parquet_finish(export->writer, notes, sizeof(notes) / sizeof(*notes), scan_err(scan));
}

static void export_fini(struct export *export)
{
    struct list *const lists[] = {&export->names,    &export->frames,  &export->own_labels,
                                  &export->trace_id, &export->span_id, &export->seen_at};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        mem_free(lists[i]->entries);
    mem_free(export->of_profile);
    parquet_writer_destroy(export->writer);
    row_labels_destroy(export->labels);
    arena_destroy(export->block_arena);
    buf_fini(&export->text);
}

static enum err_code write_export(struct scan *scan, void *context)
{
    enum { TEXT_MAX_BYTES = 1 << 24 };
    const struct job *job = context;
    struct export export = {.scan = scan};
    enum err_code code = scan_open_all_stacks(scan, false);
    if (!code)
        code = job->sink->begin(job->sink->context, scan_err(scan));
    if (!code)
        code = export_columns_make(scan, &export.columns, scan_err(scan));
    if (code)
        return code;
    buf_init(&export.text, TEXT_MAX_BYTES);
    export.labels = row_labels_create(scan_arena(scan), scan_query(scan)->label_filter,
                                      scan_row_selectors(scan), NULL, 0, ROW_LABELS_EXACT);
    export.writer = parquet_writer_create(
        export.columns.columns, export.columns.count, (struct parquet_limits){0},
        (struct parquet_sink){.append = job->sink->append, .context = job->sink->context});
    code = write_all(&export);
    *job->statistics = *scan_statistics(scan);
    export_fini(&export);
    return code;
}

enum err_code export_write(const struct scan_source *source, struct arena *arena,
                           const struct store_query *query, const struct store_export_sink *sink,
                           struct store_statistics *ret_statistics, struct err *err)
{
    struct store_statistics statistics = {0};
    struct job job = {.sink = sink, .statistics = &statistics};
    struct store_query export_query = *query;
    export_query.wants_single_profiles = true;
    enum err_code code =
        scan_run(source, &export_query, SCAN_TASKS, arena, write_export, &job, err);
    if (code)
        return code;
    if (!statistics.profile_count && !statistics.broken_count)
        code = scan_explain_nothing(source, query, arena, err);
    if (code)
        return code;
    *ret_statistics = statistics;
    return ERR_NONE;
}
