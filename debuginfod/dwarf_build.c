#include "debuginfod/dwarf_build.h"

#include "debuginfod/code_map.h"
#include "debuginfod/dwarf_line.h"
#include "debuginfod/dwarf_scopes.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/symbols/symbol_table_writer.h"

struct range {
    uint64_t begin;
    uint64_t end;
    uint32_t node;
    uint32_t file;
    uint32_t line;
};

struct build {
    const struct dwarf_inputs *inputs;
    const struct code_map *code;
    struct symbol_table_writer *writer;
    struct dwarf_result *result;
    struct dwarf_unit *unit; /* the unit whose files the rows refer to */
    struct dwarf_rows rows;
    struct dwarf_scopes scopes;
    struct map_u64 splits_by_id; /* indexes into splits */
    struct dwarf_unit **splits;
    uint32_t split_count;
    struct range pending;
    /* Lines without a function are added last: units may share a table of lines, and the first
     * range that is added wins. */
    struct range *unowned_lines;
    size_t unowned_line_count;
    size_t unowned_line_capacity;
};

static void keep_unowned_line(struct build *build, const struct range *range)
{
    vec_reserve(build->unowned_lines, build->unowned_line_capacity, build->unowned_line_count + 1);
    build->unowned_lines[build->unowned_line_count++] = *range;
}

static void flush_pending(struct build *build)
{
    const struct range *range = &build->pending;
    if (range->begin < range->end && range->node == SYMBOL_NONE) {
        keep_unowned_line(build, range);
    } else if (range->begin < range->end) {
        symbol_table_writer_range(build->writer, range->begin, range->end, range->node, range->file,
                                  range->line);
        build->result->function_ranges++;
    }
    if (range->begin < range->end && range->line)
        build->result->line_ranges++;
    build->pending = (struct range){0};
}

/* Adds a range, merging it with an equal neighbour. */
static void add_range(struct build *build, struct range range)
{
    struct range *last = &build->pending;
    if (last->end == range.begin && last->node == range.node && last->file == range.file &&
        last->line == range.line) {
        last->end = range.end;
        return;
    }
    flush_pending(build);
    *last = range;
}

static void add_row_part(struct build *build, const struct dwarf_row *row, uint64_t begin,
                         uint64_t end, uint32_t node)
{
    add_range(build, (struct range){.begin = begin,
                                    .end = end,
                                    .node = node,
                                    .file = dwarf_lines_file(build->unit, row->file, build->writer),
                                    .line = row->line});
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Merges two ascending lists into ranges of addresses that have a scope, a row, or both. */
static void join_scopes_and_rows(struct build *build)
{
    const struct dwarf_scope *scope = build->scopes.scopes, *scopes_end = scope;
    const struct dwarf_row *row = build->rows.rows, *rows_end = row;
    uint64_t at = 0;
    if (build->scopes.count)
        scopes_end += build->scopes.count;
    if (build->rows.count)
        rows_end += build->rows.count;
    for (;;) {
        while (scope < scopes_end && scope->end <= at)
            scope++;
        while (row < rows_end && row->end <= at)
            row++;
        uint64_t scope_begin = scope < scopes_end ? scope->begin : UINT64_MAX;
        uint64_t row_begin = row < rows_end ? row->begin : UINT64_MAX;
        if (scope == scopes_end && row == rows_end)
            break;
        if (at < smaller(scope_begin, row_begin))
            at = smaller(scope_begin, row_begin);
        uint64_t end = smaller(scope_begin <= at ? scope->end : scope_begin,
                               row_begin <= at ? row->end : row_begin);
        uint32_t node = scope_begin <= at ? scope->node : SYMBOL_NONE;
        if (row_begin <= at)
            add_row_part(build, row, at, end, node);
        else
            add_range(build,
                      (struct range){.begin = at, .end = end, .node = node, .file = SYMBOL_NONE});
        at = end;
    }
    flush_pending(build);
}

/* Indexes split units by their ids. Each is opened before its skeleton is known; content_unit sets
 * the skeleton, which has the addresses and lines. */
static void index_splits(struct build *build)
{
    for (uint32_t i = 0; i < build->inputs->split_file_count; i++) {
        struct dwarf_file *file = build->inputs->split_files[i];
        build->splits = mem_resize(build->splits, build->split_count + file->unit_count + 1,
                                   sizeof(*build->splits));
        for (uint32_t k = 0; k < file->unit_count; k++) {
            if (!dwarf_unit_open(&file->units[k]) || !file->units[k].split_id)
                continue;
            map_u64_add(&build->splits_by_id, file->units[k].split_id, build->split_count);
            build->splits[build->split_count++] = &file->units[k];
        }
    }
}

static struct dwarf_unit *find_split(const struct build *build, struct dwarf_unit *skeleton)
{
    uint32_t index = map_u64_find(&build->splits_by_id, skeleton->split_id);
    if (index == MAP_ABSENT || build->splits[index]->skeleton)
        return NULL;
    build->splits[index]->skeleton = skeleton;
    return build->splits[index];
}

/* The unit that has the entries: this one, or the unit in a .dwo file that it refers to. */
static struct dwarf_unit *content_unit(struct build *build, struct dwarf_unit *unit)
{
    if (!unit->split_name.size)
        return unit;
    build->result->split_units++;
    struct dwarf_unit *split = find_split(build, unit);
    if (split)
        return split;
    build->result->missing_split_units++;
    build->result->missing_split_name = unit->split_name;
    return unit;
}

static void build_unit(struct build *build, struct dwarf_unit *unit)
{
    build->result->unit_count++;
    bool is_good = dwarf_unit_open(unit);
    build->rows.count = build->scopes.count = 0;
    if (is_good && unit->type != DWARF_UNIT_PARTIAL) {
        build->unit = unit;
        bool has_rows = dwarf_lines_run(unit, build->code, &build->rows);
        is_good = dwarf_scopes_read(content_unit(build, unit), build->code, build->writer,
                                    &build->scopes) &&
                  has_rows;
        join_scopes_and_rows(build);
    }
    build->result->broken_units += !is_good;
}

/* Adds the lines of a file that has tables of lines but no units, such as assembly without
 * .debug_info. Does nothing if the file has units. */
static void build_lines(struct build *build)
{
    struct dwarf_file *file = build->inputs->file;
    struct dwarf_unit unit = {.file = file, .address_bytes = 8, .offset_bytes = 4, .is_open = true};
    if (file->unit_count || !file->sections[DWARF_LINE].size)
        return;
    build->unit = &unit;
    for (uint64_t offset = 0; offset != DWARF_NO_OFFSET;
         offset = dwarf_lines_next(file->sections[DWARF_LINE], offset)) {
        unit.line_offset = offset;
        unit.lines = NULL;
        build->scopes.count = 0;
        build->result->unit_count++;
        build->result->broken_units += !dwarf_lines_run(&unit, build->code, &build->rows);
        join_scopes_and_rows(build);
    }
    build->unit = NULL;
}

void dwarf_build(const struct dwarf_inputs *inputs, const struct code_map *code,
                 struct symbol_table_writer *writer, struct dwarf_result *ret_result)
{
    struct build build = {.inputs = inputs, .code = code, .writer = writer, .result = ret_result};
    *ret_result = (struct dwarf_result){.broken_units = inputs->file->lost_units};
    index_splits(&build);
    for (uint32_t i = 0; i < inputs->file->unit_count; i++) {
        struct dwarf_unit *unit = &inputs->file->units[i];
        if (unit->type != DWARF_UNIT_TYPE && unit->type != DWARF_UNIT_SPLIT_TYPE)
            build_unit(&build, unit);
    }
    build_lines(&build);
    for (size_t i = 0; i < build.unowned_line_count; i++)
        symbol_table_writer_range(writer, build.unowned_lines[i].begin, build.unowned_lines[i].end,
                                  SYMBOL_NONE, build.unowned_lines[i].file,
                                  build.unowned_lines[i].line);
    mem_free(build.unowned_lines);
    mem_free(build.splits);
    map_u64_fini(&build.splits_by_id);
    dwarf_rows_fini(&build.rows);
    dwarf_scopes_fini(&build.scopes);
}
