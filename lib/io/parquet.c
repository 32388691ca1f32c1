#include "lib/io/parquet.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/span_utf8.h"
#include "lib/base/vec.h"
#include "lib/io/parquet_page.h"

#include <assert.h>

enum {
    FORMAT_VERSION = 2,
    FOOTER_MAX_BYTES = 1 << 30,
    TYPE_I64 = 2,
    TYPE_BYTES = 6,
    REQUIRED = 0,
    OPTIONAL = 1,
    REPEATED = 2,
    CONVERTED_TEXT = 0,
    CONVERTED_MAP = 1,
    CONVERTED_LIST = 3,
    CONVERTED_U64 = 14,
    LOGICAL_TEXT = 1,
    LOGICAL_MAP = 2,
    LOGICAL_LIST = 3,
    LOGICAL_TIME = 8,
    LOGICAL_NUMBER = 10,
    UNIT_NS = 3,
    CODEC_ZSTD = 6,
    NONE = -1
};

/* The entries of the current row group in one column. */
struct pending {
    struct parquet_column column;
    struct arena *texts; /* owns the texts of entries */
    struct map_bytes by_bytes;
    struct map_u64 by_number; /* for columns of one number */
    struct parquet_value *entries;
    uint32_t *numbers; /* entries of all rows, one after the other */
    uint32_t *counts;  /* per row */
    uint32_t entry_count;
    uint32_t entry_capacity;
    uint32_t number_count;
    uint32_t number_capacity;
    uint32_t row_count;
    uint32_t row_capacity;
    struct buf key;
};

enum { PAGE_BYTES = 8 << 20, DICTIONARY_BYTES = 256 << 20 };

struct parquet_writer {
    struct parquet_sink sink;
    struct parquet_limits limits;
    struct pending *columns;
    uint32_t column_count;
    uint32_t leaf_count;
    uint32_t epoch;
    uint32_t group_count;
    uint64_t row_count; /* rows of all groups that were written */
    uint64_t offset;
    uint64_t number_count; /* entries of all rows of the current group */
    uint64_t value_bytes;
    struct arena *arena; /* the names of columns */
    struct buf groups;   /* one RowGroup after the other */
};

static bool is_list(enum parquet_shape shape)
{
    return shape == PARQUET_LIST || shape == PARQUET_LIST_OF_STRUCTS || shape == PARQUET_MAP;
}

/* ---- texts ---- */

/* Size of the UTF-8 character at `at`; 0: invalid. */
static size_t character_size(struct span text, size_t at)
{
    const size_t left = text.size - at;
    for (size_t size = 1; size <= 4 && size <= left; size++) {
        if (span_is_utf8(span_of(text.data + at, size)))
            return size;
    }
    return 0;
}

static struct span keep_text(struct arena *arena, struct span text)
{
    buf_auto clean;
    buf_init(&clean, UINT32_MAX);
    if (!span_is_utf8(text)) {
        for (size_t at = 0; at < text.size;) {
            const size_t size = character_size(text, at);
            if (size)
                buf_append(&clean, text.data + at, size);
            else
                buf_append_text(&clean, "\xef\xbf\xbd");
            at += size ? size : 1;
        }
        text = buf_span(&clean);
    }
    return span_of(arena_strndup(arena, text.data, text.size), text.size);
}

struct parquet_writer *parquet_writer_create(const struct parquet_column *columns,
                                             uint32_t column_count, struct parquet_limits limits,
                                             struct parquet_sink sink)
{
    struct parquet_writer *writer = mem_new(struct parquet_writer, 1);
    *writer = (struct parquet_writer){
        .sink = sink,
        .limits = {.page_bytes = limits.page_bytes ? limits.page_bytes : PAGE_BYTES,
                   .dictionary_bytes =
                       limits.dictionary_bytes ? limits.dictionary_bytes : DICTIONARY_BYTES},
        .column_count = column_count,
        .epoch = 1,
        .arena = arena_create()};
    writer->columns = mem_new(struct pending, column_count);
    buf_init(&writer->groups, FOOTER_MAX_BYTES);
    for (uint32_t i = 0; i < column_count; i++) {
        struct pending *pending = &writer->columns[i];
        pending->column = columns[i];
        pending->column.name = keep_text(writer->arena, columns[i].name);
        pending->texts = arena_create();
        buf_init(&pending->key, UINT32_MAX);
        writer->leaf_count += columns[i].field_count;
    }
    return writer;
}

static void forget_entries(struct pending *pending)
{
    map_bytes_fini(&pending->by_bytes);
    map_u64_fini(&pending->by_number);
    arena_destroy(pending->texts);
    pending->texts = NULL;
    pending->by_bytes = (struct map_bytes){0};
    pending->by_number = (struct map_u64){0};
    pending->entry_count = pending->number_count = pending->row_count = 0;
}

void parquet_writer_destroy(struct parquet_writer *writer)
{
    if (!writer)
        return;
    for (uint32_t i = 0; i < writer->column_count; i++) {
        struct pending *pending = &writer->columns[i];
        forget_entries(pending);
        mem_free(pending->entries);
        mem_free(pending->numbers);
        mem_free(pending->counts);
        buf_fini(&pending->key);
    }
    mem_free(writer->columns);
    buf_fini(&writer->groups);
    arena_destroy(writer->arena);
    mem_free(writer);
}

uint32_t parquet_epoch(const struct parquet_writer *writer)
{
    return writer->epoch;
}

size_t parquet_memory(const struct parquet_writer *writer)
{
    return writer->number_count * sizeof(uint32_t) + writer->value_bytes + writer->groups.capacity;
}

/* ---- entries ---- */

static uint32_t find_entry(struct pending *pending, const struct parquet_value *values)
{
    const uint32_t field_count = pending->column.field_count;
    if (field_count == 1 && pending->column.fields[0].type != PARQUET_TEXT)
        return map_u64_add(&pending->by_number, (uint64_t)values->number, pending->entry_count);
    buf_clear(&pending->key);
    for (uint32_t i = 0; i < field_count; i++) {
        buf_append_u64(&pending->key, pending->column.fields[i].type == PARQUET_TEXT
                                          ? values[i].text.size
                                          : (uint64_t)values[i].number);
        if (pending->column.fields[i].type == PARQUET_TEXT)
            buf_append_span(&pending->key, values[i].text);
    }
    const uint32_t known = map_bytes_find(&pending->by_bytes, buf_span(&pending->key));
    if (known != MAP_ABSENT)
        return known;
    const struct span key = span_of(
        arena_strndup(pending->texts, pending->key.data, pending->key.size), pending->key.size);
    return map_bytes_add(&pending->by_bytes, key, pending->entry_count);
}

uint32_t parquet_add(struct parquet_writer *writer, uint32_t column,
                     const struct parquet_value *values)
{
    struct pending *pending = &writer->columns[column];
    const uint32_t field_count = pending->column.field_count;
    if (!pending->texts)
        pending->texts = arena_create();
    const uint32_t entry = find_entry(pending, values);
    if (entry != pending->entry_count)
        return entry;
    if (entry == pending->entry_capacity) {
        const size_t size = field_count * sizeof(*pending->entries);
        const size_t grown = vec_grow_capacity(entry, entry + 1, size, UINT32_MAX);
        pending->entries = mem_resize(pending->entries, grown, size);
        pending->entry_capacity = (uint32_t)grown;
    }
    struct parquet_value *kept = &pending->entries[(size_t)entry * field_count];
    for (uint32_t i = 0; i < field_count; i++) {
        kept[i] = (struct parquet_value){.number = values[i].number};
        if (pending->column.fields[i].type == PARQUET_TEXT)
            kept[i].text = keep_text(pending->texts, values[i].text);
        writer->value_bytes += sizeof(*kept) + kept[i].text.size;
    }
    writer->value_bytes += pending->key.size;
    return pending->entry_count++;
}

void parquet_append(struct parquet_writer *writer, uint32_t column, const uint32_t *entries,
                    uint32_t count)
{
    struct pending *pending = &writer->columns[column];
    assert(is_list(pending->column.shape) ||
           (count <= 1 && (count || pending->column.shape == PARQUET_OPTIONAL)));
    vec_reserve(pending->numbers, pending->number_capacity, pending->number_count + count);
    vec_reserve(pending->counts, pending->row_capacity, pending->row_count + 1);
    if (count)
        memcpy(pending->numbers + pending->number_count, entries, count * sizeof(*entries));
    pending->number_count += count;
    pending->counts[pending->row_count++] = count;
    writer->number_count += count;
}

/* ---- a row group ---- */

/* Computes the levels in arena: one per value, null and empty list. */
static struct parquet_levels make_levels(const struct pending *pending, struct arena *arena)
{
    struct parquet_levels levels = {.count = pending->row_count};
    if (pending->column.shape == PARQUET_ONE)
        return levels;
    const size_t most = pending->number_count + (size_t)pending->row_count;
    uint32_t *definition = arena_new_raw(arena, uint32_t, most);
    uint32_t *repetition = arena_new_raw(arena, uint32_t, most);
    levels.count = 0;
    for (uint32_t row = 0; row < pending->row_count; row++) {
        const uint32_t count = pending->counts[row];
        repetition[levels.count] = 0;
        definition[levels.count++] = count > 0;
        for (uint32_t i = 1; i < count; i++) {
            repetition[levels.count] = 1;
            definition[levels.count++] = 1;
        }
    }
    levels.definition = definition;
    if (is_list(pending->column.shape))
        levels.repetition = repetition;
    return levels;
}

static const char *const list_path[] = {"list", "element"};
static const char *const map_path[] = {"key_value"};

/* The names from the root to the leaf. */
static uint32_t find_path(const struct parquet_column *column, uint32_t field, struct span path[4])
{
    uint32_t count = 0;
    path[count++] = column->name;
    if (column->shape == PARQUET_MAP)
        path[count++] = span_text(map_path[0]);
    for (int i = 0; i < 2 && is_list(column->shape) && column->shape != PARQUET_MAP; i++)
        path[count++] = span_text(list_path[i]);
    if (column->shape == PARQUET_MAP || column->shape == PARQUET_LIST_OF_STRUCTS)
        path[count++] = span_text(column->fields[field].name);
    return count;
}

static void describe_chunk(const struct pending *pending, uint32_t field,
                           const struct parquet_chunk *chunk, struct thrift *thrift)
{
    struct span path[4];
    const enum parquet_type type = pending->column.fields[field].type;
    const uint32_t path_count = find_path(&pending->column, field, path);
    thrift_element(thrift);
    thrift_i64(thrift, 2, (int64_t)chunk->offset);
    thrift_begin(thrift, 3);
    thrift_i32(thrift, 1, type == PARQUET_TEXT ? TYPE_BYTES : TYPE_I64);
    thrift_list(thrift, 2, THRIFT_I32, 3);
    thrift_list_i32(thrift, 0); /* PLAIN */
    thrift_list_i32(thrift, 3); /* RLE */
    thrift_list_i32(thrift, 8); /* RLE_DICTIONARY */
    thrift_list(thrift, 3, THRIFT_TEXT, path_count);
    for (uint32_t i = 0; i < path_count; i++)
        thrift_list_text(thrift, path[i]);
    thrift_i32(thrift, 4, CODEC_ZSTD);
    thrift_i64(thrift, 5, chunk->value_count);
    thrift_i64(thrift, 6, (int64_t)chunk->flat_bytes);
    thrift_i64(thrift, 7, (int64_t)chunk->stored_bytes);
    thrift_i64(thrift, 9, (int64_t)chunk->data_offset);
    if (chunk->has_dictionary)
        thrift_i64(thrift, 11, (int64_t)chunk->offset);
    if (!is_list(pending->column.shape))
        parquet_page_describe(type, chunk, thrift);
    thrift_end(thrift);
    thrift_end(thrift);
}

static enum err_code append_to_sink(struct parquet_writer *writer, struct span bytes,
                                    struct err *err)
{
    writer->offset += bytes.size;
    return writer->sink.append(writer->sink.context, bytes, err);
}

static enum err_code append_page(void *context, struct span bytes, struct err *err)
{
    return append_to_sink(context, bytes, err);
}

static enum err_code write_column(struct parquet_writer *writer, const struct pending *pending,
                                  struct thrift *group, uint64_t *flat_bytes,
                                  uint64_t *stored_bytes, struct err *err)
{
    arena_auto arena = arena_create();
    const struct parquet_levels levels = make_levels(pending, arena);
    const struct parquet_sink sink = {.append = append_page, .context = writer};
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < pending->column.field_count && !code; i++) {
        const struct parquet_leaf leaf = {.type = pending->column.fields[i].type,
                                          .has_statistics = !is_list(pending->column.shape),
                                          .levels = levels,
                                          .entries = pending->entries ? pending->entries + i : NULL,
                                          .stride = pending->column.field_count,
                                          .entry_count = pending->entry_count,
                                          .numbers = pending->numbers,
                                          .number_count = pending->number_count};
        struct parquet_chunk chunk;
        code = parquet_page_write(&leaf, &writer->limits, writer->offset, &sink, &chunk, err);
        if (code)
            return code;
        describe_chunk(pending, i, &chunk, group);
        *flat_bytes += chunk.flat_bytes;
        *stored_bytes += chunk.stored_bytes;
    }
    return code;
}

static enum err_code begin_file(struct parquet_writer *writer, struct err *err)
{
    return writer->offset ? ERR_NONE : append_to_sink(writer, SPAN_LITERAL("PAR1"), err);
}

static enum err_code write_group(struct parquet_writer *writer, struct err *err)
{
    const uint32_t rows = writer->columns[0].row_count;
    uint64_t flat_bytes = 0, stored_bytes = 0;
    struct thrift group;
    enum err_code code = begin_file(writer, err);
    const uint64_t offset = writer->offset;
    thrift_init(&group, &writer->groups);
    thrift_list(&group, 1, THRIFT_STRUCT, writer->leaf_count);
    for (uint32_t i = 0; i < writer->column_count && !code; i++) {
        assert(writer->columns[i].row_count == rows);
        code = write_column(writer, &writer->columns[i], &group, &flat_bytes, &stored_bytes, err);
        forget_entries(&writer->columns[i]);
    }
    thrift_i64(&group, 2, (int64_t)flat_bytes);
    thrift_i64(&group, 3, rows);
    thrift_i64(&group, 5, (int64_t)offset);
    thrift_i64(&group, 6, (int64_t)stored_bytes);
    thrift_end(&group);
    if (!code && buf_failed(&writer->groups))
        code = err_set(err, ERR_TOO_LARGE, "too many row groups");
    writer->row_count += rows;
    writer->group_count++;
    writer->epoch++;
    writer->number_count = writer->value_bytes = 0;
    return code;
}

enum err_code parquet_end_row(struct parquet_writer *writer, struct err *err)
{
    const bool is_full = writer->columns[0].row_count >= PARQUET_GROUP_ROWS ||
                         writer->number_count >= PARQUET_GROUP_ENTRIES ||
                         writer->value_bytes >= PARQUET_GROUP_BYTES;
    return is_full ? write_group(writer, err) : ERR_NONE;
}

/* ---- the end of the file ---- */

static void begin_element(struct thrift *thrift, int type, int repetition, struct span name,
                          uint32_t child_count, int converted)
{
    thrift_element(thrift);
    if (type != NONE)
        thrift_i32(thrift, 1, type);
    if (repetition != NONE)
        thrift_i32(thrift, 3, repetition);
    thrift_text(thrift, 4, name);
    if (child_count)
        thrift_i32(thrift, 5, (int32_t)child_count);
    if (converted != NONE)
        thrift_i32(thrift, 6, converted);
}

/* Writes logicalType, a union of which one empty member is set. */
static void describe_logical(struct thrift *thrift, int16_t kind)
{
    thrift_begin(thrift, 10);
    thrift_begin(thrift, kind);
    thrift_end(thrift);
    thrift_end(thrift);
}

static void describe_number(struct thrift *thrift, enum parquet_type type)
{
    if (type == PARQUET_I64)
        return;
    thrift_begin(thrift, 10);
    thrift_begin(thrift, type == PARQUET_TIME_NS ? LOGICAL_TIME : LOGICAL_NUMBER);
    if (type == PARQUET_TIME_NS) {
        /* Not "adjusted to UTC", although it is: DuckDB would truncate it to microseconds. */
        thrift_bool(thrift, 1, false);
        thrift_begin(thrift, 2);
        thrift_begin(thrift, UNIT_NS);
        thrift_end(thrift);
        thrift_end(thrift);
    } else {
        thrift_i8(thrift, 1, 64);
        thrift_bool(thrift, 2, false); /* is signed */
    }
    thrift_end(thrift);
    thrift_end(thrift);
}

static void describe_leaf(struct thrift *thrift, struct span name, enum parquet_type type,
                          int repetition)
{
    if (type == PARQUET_TEXT) {
        begin_element(thrift, TYPE_BYTES, repetition, name, 0, CONVERTED_TEXT);
        describe_logical(thrift, LOGICAL_TEXT);
    } else {
        begin_element(thrift, TYPE_I64, repetition, name, 0,
                      type == PARQUET_U64 ? CONVERTED_U64 : NONE);
        describe_number(thrift, type);
    }
    thrift_end(thrift);
}

static void describe_group(struct thrift *thrift, struct span name, int repetition,
                           uint32_t child_count)
{
    begin_element(thrift, NONE, repetition, name, child_count, NONE);
    thrift_end(thrift);
}

static void describe_column(struct thrift *thrift, const struct parquet_column *column)
{
    const bool is_map = column->shape == PARQUET_MAP;
    if (!is_list(column->shape)) {
        describe_leaf(thrift, column->name, column->fields[0].type,
                      column->shape == PARQUET_ONE ? REQUIRED : OPTIONAL);
        return;
    }
    begin_element(thrift, NONE, REQUIRED, column->name, 1, is_map ? CONVERTED_MAP : CONVERTED_LIST);
    describe_logical(thrift, is_map ? LOGICAL_MAP : LOGICAL_LIST);
    thrift_end(thrift);
    describe_group(thrift, span_text(is_map ? map_path[0] : list_path[0]), REPEATED,
                   is_map ? 2 : 1);
    if (column->shape == PARQUET_LIST) {
        describe_leaf(thrift, span_text(list_path[1]), column->fields[0].type, REQUIRED);
        return;
    }
    if (!is_map)
        describe_group(thrift, span_text(list_path[1]), REQUIRED, column->field_count);
    for (uint32_t i = 0; i < column->field_count; i++)
        describe_leaf(thrift, span_text(column->fields[i].name), column->fields[i].type, REQUIRED);
}

/* The number of SchemaElements of a column. */
static uint32_t element_count(const struct parquet_column *column)
{
    static const uint32_t groups[] = {[PARQUET_ONE] = 0,
                                      [PARQUET_OPTIONAL] = 0,
                                      [PARQUET_LIST] = 2,
                                      [PARQUET_LIST_OF_STRUCTS] = 3,
                                      [PARQUET_MAP] = 2};
    return groups[column->shape] + column->field_count;
}

static void describe_schema(struct thrift *thrift, const struct parquet_writer *writer)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < writer->column_count; i++)
        count += element_count(&writer->columns[i].column);
    thrift_list(thrift, 2, THRIFT_STRUCT, count);
    describe_group(thrift, SPAN_LITERAL("schema"), NONE, writer->column_count);
    for (uint32_t i = 0; i < writer->column_count; i++)
        describe_column(thrift, &writer->columns[i].column);
}

static void describe_notes(struct thrift *thrift, const struct parquet_note *notes, uint32_t count)
{
    thrift_list(thrift, 5, THRIFT_STRUCT, count);
    for (uint32_t i = 0; i < count; i++) {
        thrift_element(thrift);
        thrift_text(thrift, 1, span_text(notes[i].key));
        thrift_text(thrift, 2, notes[i].text);
        thrift_end(thrift);
    }
}

/* Writes the column orders; without them readers may not use the statistics. */
static void describe_orders(struct thrift *thrift, uint32_t leaf_count)
{
    thrift_list(thrift, 7, THRIFT_STRUCT, leaf_count);
    for (uint32_t i = 0; i < leaf_count; i++) {
        thrift_element(thrift);
        thrift_begin(thrift, 1);
        thrift_end(thrift);
        thrift_end(thrift);
    }
}

enum err_code parquet_finish(struct parquet_writer *writer, const struct parquet_note *notes,
                             uint32_t note_count, struct err *err)
{
    buf_auto footer;
    buf_init(&footer, FOOTER_MAX_BYTES);
    struct thrift thrift;
    enum err_code code =
        writer->columns[0].row_count ? write_group(writer, err) : begin_file(writer, err);
    if (code)
        return code;
    thrift_init(&thrift, &footer);
    thrift_i32(&thrift, 1, FORMAT_VERSION);
    describe_schema(&thrift, writer);
    thrift_i64(&thrift, 3, (int64_t)writer->row_count);
    thrift_list(&thrift, 4, THRIFT_STRUCT, writer->group_count);
    buf_append_span(&footer, buf_span(&writer->groups));
    describe_notes(&thrift, notes, note_count);
    thrift_text(&thrift, 6, SPAN_LITERAL("perfolio"));
    describe_orders(&thrift, writer->leaf_count);
    thrift_end(&thrift);
    const uint32_t footer_bytes = (uint32_t)footer.size;
    buf_append_u32(&footer, footer_bytes);
    buf_append_text(&footer, "PAR1");
    if (buf_failed(&footer))
        return err_set(err, ERR_TOO_LARGE, "the end of the file has more than %d bytes",
                       FOOTER_MAX_BYTES);
    return append_to_sink(writer, buf_span(&footer), err);
}
