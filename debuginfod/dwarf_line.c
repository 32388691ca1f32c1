#include "debuginfod/dwarf_line.h"

#include "debuginfod/dwarf_file.h"
#include "debuginfod/dwarf_names.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/symbols/symbol_table_writer.h"

#include <stdlib.h>

enum {
    MAX_FILES = 1 << 20, /* and directories, of one table */
    MAX_FORMATS = 32,
    FILE_UNKNOWN = SYMBOL_NONE - 1, /* not yet added to the writer */
};

struct line_file {
    struct span name;
    uint32_t directory;
    uint32_t id; /* the writer's */
};

struct names {
    struct line_file *entries;
    uint32_t count;
    uint32_t capacity;
};

struct dwarf_lines {
    struct names directories;
    struct names files;
    struct span program;
    uint16_t version;
    uint8_t address_bytes;
    uint8_t least_instruction;
    uint8_t operations; /* per instruction; 1 except for VLIW */
    int8_t line_base;
    uint8_t line_range;
    uint8_t opcode_base;
    uint8_t operand_counts[256];
};

static bool add_name(struct names *names, struct span name, uint64_t directory)
{
    if (names->count == MAX_FILES)
        return false;
    vec_reserve(names->entries, names->capacity, names->count + 1);
    names->entries[names->count++] =
        (struct line_file){.name = name,
                           .directory = directory > UINT32_MAX ? UINT32_MAX : (uint32_t)directory,
                           .id = FILE_UNKNOWN};
    return true;
}

/* Before version 5: texts up to an empty one; number 0 is the unit's own directory. */
static bool read_old_names(struct dwarf_lines *lines, struct cursor *cursor)
{
    add_name(&lines->directories, (struct span){NULL, 0}, 0);
    for (;;) {
        struct span name = cursor_text(cursor);
        if (cursor->has_failed)
            return false;
        if (!name.size)
            break;
        if (!add_name(&lines->directories, name, 0))
            return false;
    }
    add_name(&lines->files, (struct span){NULL, 0}, 0);
    for (;;) {
        struct span name = cursor_text(cursor);
        if (cursor->has_failed)
            return false;
        if (!name.size)
            return true;
        uint64_t directory = cursor_uleb(cursor);
        cursor_uleb(cursor); /* time */
        cursor_uleb(cursor); /* size */
        if (cursor->has_failed || !add_name(&lines->files, name, directory))
            return false;
    }
}

static bool read_new_names(const struct dwarf_unit *unit, struct names *names,
                           struct cursor *cursor)
{
    struct dwarf_attribute formats[MAX_FORMATS];
    unsigned format_count = cursor_u8(cursor);
    if (format_count > MAX_FORMATS)
        return false;
    for (unsigned i = 0; i < format_count; i++) {
        uint64_t content = cursor_uleb(cursor), form = cursor_uleb(cursor);
        formats[i] = (struct dwarf_attribute){
            .name = content > UINT16_MAX ? 0 : (uint16_t)content,
            .form = form > UINT16_MAX || form == DW_FORM_implicit_const ? 0 : (uint16_t)form};
    }
    uint64_t count = cursor_uleb(cursor);
    if (cursor->has_failed || count > MAX_FILES || (count && !format_count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        struct dwarf_value value, path = {0};
        uint64_t directory = 0;
        for (unsigned k = 0; k < format_count; k++) {
            if (!dwarf_value_read(unit, &formats[k], cursor, &value))
                return false;
            if (formats[k].name == DW_LNCT_path)
                path = value;
            else if (formats[k].name == DW_LNCT_directory_index)
                directory = value.number;
        }
        add_name(names, dwarf_value_text(unit, &path), directory);
    }
    return true;
}

/* Reads the header of a table. Names of version 5 are values with forms; they are read with a copy
 * of the unit that has the table's size of offsets. */
static bool read_header(struct dwarf_lines *lines, const struct dwarf_unit *owner,
                        struct cursor *cursor)
{
    struct dwarf_unit unit = *owner;
    unit.offset_bytes = 4;
    uint64_t length = cursor_u32(cursor);
    if (length == UINT32_MAX) {
        unit.offset_bytes = 8;
        length = cursor_u64(cursor);
    }
    struct cursor body = cursor_of(cursor_bytes(cursor, length));
    lines->version = cursor_u16(&body);
    lines->address_bytes = owner->address_bytes;
    if (cursor->has_failed || lines->version < 2 || lines->version > 5)
        return false;
    if (lines->version >= 5) {
        lines->address_bytes = cursor_u8(&body);
        cursor_skip(&body, 1); /* segment selectors, which are never used */
    }
    uint64_t header_bytes = cursor_uint(&body, unit.offset_bytes);
    struct cursor header = cursor_of(cursor_bytes(&body, header_bytes));
    lines->program = span_of(body.next, cursor_left(&body));
    lines->least_instruction = cursor_u8(&header);
    lines->operations = lines->version >= 4 ? cursor_u8(&header) : 1;
    cursor_skip(&header, 1); /* initial is_stmt */
    lines->line_base = (int8_t)cursor_u8(&header);
    lines->line_range = cursor_u8(&header);
    lines->opcode_base = cursor_u8(&header);
    for (unsigned i = 1; i < lines->opcode_base; i++)
        lines->operand_counts[i] = cursor_u8(&header);
    if (body.has_failed || header.has_failed || !lines->line_range || !lines->opcode_base ||
        (lines->address_bytes != 4 && lines->address_bytes != 8))
        return false;
    if (lines->version < 5)
        return read_old_names(lines, &header);
    return read_new_names(&unit, &lines->directories, &header) &&
           read_new_names(&unit, &lines->files, &header);
}

void dwarf_lines_destroy(struct dwarf_lines *lines)
{
    if (!lines)
        return;
    mem_free(lines->directories.entries);
    mem_free(lines->files.entries);
    mem_free(lines);
}

static struct dwarf_lines *read_lines(const struct dwarf_unit *unit)
{
    struct dwarf_lines *lines = mem_new(struct dwarf_lines, 1);
    struct cursor cursor = cursor_at(unit->file->sections[DWARF_LINE], unit->line_offset);
    if (!cursor.has_failed && read_header(lines, unit, &cursor))
        return lines;
    dwarf_lines_destroy(lines);
    return NULL;
}

/* Units may share a table; a broken one is stored as NULL and not read again. */
struct dwarf_lines *dwarf_lines_of(struct dwarf_unit *unit)
{
    struct dwarf_unit *owner = unit->skeleton ? unit->skeleton : unit;
    struct dwarf_file *file = owner->file;
    if (owner->lines || owner->line_offset == DWARF_NO_OFFSET)
        return owner->lines;
    uint32_t index = map_u64_find(&file->lines_by_offset, owner->line_offset);
    if (index != MAP_ABSENT)
        return owner->lines = file->lines[index];
    vec_reserve(file->lines, file->lines_capacity, file->lines_count + 1);
    owner->lines = read_lines(owner);
    map_u64_add(&file->lines_by_offset, owner->line_offset, file->lines_count);
    file->lines[file->lines_count++] = owner->lines;
    return owner->lines;
}

/* ---- files ---- */

static bool is_absolute(struct span path)
{
    return path.size && path.data[0] == '/';
}

static void append_part(struct buf *path, struct span part)
{
    if (!part.size)
        return;
    if (path->size && path->data[path->size - 1] != '/')
        buf_append_byte(path, '/');
    buf_append_span(path, part);
}

/* Joins the unit's directory, the table's directory and the name, starting with the last
 * absolute one. */
static uint32_t name_file(const struct dwarf_unit *unit, const struct dwarf_lines *lines,
                          const struct line_file *file, struct symbol_table_writer *writer)
{
    struct span directory = {NULL, 0};
    if (file->directory < lines->directories.count)
        directory = lines->directories.entries[file->directory].name;
    if (!file->name.size)
        return SYMBOL_NONE;
    buf_auto path;
    buf_init(&path, SYMBOL_PATH_MAX_BYTES);
    if (!is_absolute(file->name)) {
        if (!is_absolute(directory))
            append_part(&path, unit->directory);
        append_part(&path, directory);
    }
    append_part(&path, file->name);
    return symbol_table_writer_file(writer, buf_failed(&path) ? file->name : buf_span(&path));
}

uint32_t dwarf_lines_file(struct dwarf_unit *unit, uint64_t file,
                          struct symbol_table_writer *writer)
{
    struct dwarf_lines *lines = dwarf_lines_of(unit);
    if (!lines || file >= lines->files.count)
        return SYMBOL_NONE;
    struct line_file *entry = &lines->files.entries[file];
    if (entry->id == FILE_UNKNOWN)
        entry->id = name_file(unit->skeleton ? unit->skeleton : unit, lines, entry, writer);
    return entry->id;
}

/* ---- the line number program ---- */

struct line_program {
    struct dwarf_lines *lines;
    const struct code_map *code;
    struct dwarf_rows *rows;
    struct cursor cursor;
    size_t first_row; /* of the current sequence */
    uint64_t address;
    uint32_t operation;
    uint64_t file;
    uint64_t line;
    bool is_ascending;
};

static void start_sequence(struct line_program *line_program)
{
    line_program->address = 0;
    line_program->operation = 0;
    line_program->file = 1;
    line_program->line = 1;
    line_program->first_row = line_program->rows->count;
    line_program->is_ascending = true;
}

static void advance(struct line_program *line_program, uint64_t operations)
{
    const struct dwarf_lines *lines = line_program->lines;
    if (lines->operations <= 1) {
        line_program->address += operations * lines->least_instruction;
        return;
    }
    uint64_t sum = line_program->operation + operations;
    line_program->address += sum / lines->operations * lines->least_instruction;
    line_program->operation = (uint32_t)(sum % lines->operations);
}

static void add_row(struct line_program *line_program)
{
    struct dwarf_rows *rows = line_program->rows;
    vec_reserve(rows->rows, rows->capacity, rows->count + 1);
    if (rows->count > line_program->first_row) {
        struct dwarf_row *last = &rows->rows[rows->count - 1];
        line_program->is_ascending =
            line_program->is_ascending && last->begin <= line_program->address;
        if (last->begin == line_program->address)
            rows->count--; /* the last row of an address wins */
        else
            last->end = line_program->address;
    }
    rows->rows[rows->count++] = (struct dwarf_row){
        .begin = line_program->address,
        .end = line_program->address,
        .file = line_program->file > UINT32_MAX ? UINT32_MAX : (uint32_t)line_program->file,
        .line = line_program->line > SYMBOL_LINE_MAX ? 0 : (uint32_t)line_program->line,
    };
}

/* Ends a sequence and keeps its rows that are code. A sequence with descending addresses is
 * invalid and dropped. */
static void end_sequence(struct line_program *line_program)
{
    struct dwarf_rows *rows = line_program->rows;
    add_row(line_program);
    rows->count--; /* the end of the sequence is not code */
    size_t kept = line_program->first_row;
    for (size_t i = line_program->first_row; line_program->is_ascending && i < rows->count; i++) {
        struct dwarf_row row = rows->rows[i];
        if (row.begin < row.end && code_map_clip(line_program->code, row.begin, &row.end))
            rows->rows[kept++] = row;
    }
    rows->count = kept;
    start_sequence(line_program);
}

static void run_extended(struct line_program *line_program)
{
    struct cursor *cursor = &line_program->cursor;
    uint64_t length = cursor_uleb(cursor);
    struct cursor operands = cursor_of(cursor_bytes(cursor, length));
    switch (cursor_u8(&operands)) {
    case DW_LNE_end_sequence:
        end_sequence(line_program);
        break;
    case DW_LNE_set_address:
        if (cursor_left(&operands) == 4 || cursor_left(&operands) == 8)
            line_program->address = cursor_uint(&operands, (unsigned)cursor_left(&operands));
        else
            cursor_fail(cursor);
        line_program->operation = 0;
        break;
    case DW_LNE_define_file: {
        struct span name = cursor_text(&operands);
        uint64_t directory = cursor_uleb(&operands);
        if (!operands.has_failed)
            add_name(&line_program->lines->files, name, directory);
        break;
    }
    default:
        break;
    }
}

static void run_standard(struct line_program *line_program, uint8_t opcode)
{
    struct cursor *cursor = &line_program->cursor;
    const struct dwarf_lines *lines = line_program->lines;
    switch (opcode) {
    case DW_LNS_copy:
        add_row(line_program);
        break;
    case DW_LNS_advance_pc:
        advance(line_program, cursor_uleb(cursor));
        break;
    case DW_LNS_advance_line:
        line_program->line = (uint32_t)(line_program->line + (uint64_t)cursor_sleb(cursor));
        break;
    case DW_LNS_set_file:
        line_program->file = cursor_uleb(cursor);
        break;
    case DW_LNS_const_add_pc:
        advance(line_program, (255U - lines->opcode_base) / lines->line_range);
        break;
    case DW_LNS_fixed_advance_pc:
        line_program->address += cursor_u16(cursor);
        line_program->operation = 0;
        break;
    default:
        for (unsigned i = 0; i < lines->operand_counts[opcode]; i++)
            cursor_uleb(cursor);
        break;
    }
}

static void run_special(struct line_program *line_program, uint8_t opcode)
{
    const struct dwarf_lines *lines = line_program->lines;
    unsigned adjusted = (unsigned)(opcode - lines->opcode_base);
    advance(line_program, adjusted / lines->line_range);
    int step = lines->line_base + (int)(adjusted % lines->line_range);
    line_program->line = (uint32_t)(line_program->line + (uint64_t)(int64_t)step);
    add_row(line_program);
}

static int compare_rows(const void *a, const void *b)
{
    const struct dwarf_row *left = a, *right = b;
    return (left->begin > right->begin) - (left->begin < right->begin);
}

/* Sorts the rows, since sequences come in any order. Where sequences overlap, the one that
 * begins first wins. */
static void sort_rows(struct dwarf_rows *rows)
{
    bool is_ordered = true;
    for (size_t i = 1; is_ordered && i < rows->count; i++)
        is_ordered = rows->rows[i - 1].end <= rows->rows[i].begin;
    if (is_ordered)
        return;
    qsort(rows->rows, rows->count, sizeof(struct dwarf_row), compare_rows);
    size_t kept = 0;
    uint64_t last_end = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct dwarf_row row = rows->rows[i];
        if (row.begin < last_end)
            row.begin = last_end;
        if (row.begin >= row.end)
            continue;
        last_end = row.end;
        rows->rows[kept++] = row;
    }
    rows->count = kept;
}

bool dwarf_lines_run(struct dwarf_unit *unit, const struct code_map *code, struct dwarf_rows *rows)
{
    struct dwarf_lines *lines = dwarf_lines_of(unit);
    rows->count = 0;
    if (!lines)
        return unit->line_offset == DWARF_NO_OFFSET;
    struct line_program line_program = {
        .lines = lines, .code = code, .rows = rows, .cursor = cursor_of(lines->program)};
    start_sequence(&line_program);
    while (line_program.cursor.next < line_program.cursor.end) {
        uint8_t opcode = cursor_u8(&line_program.cursor);
        if (opcode >= lines->opcode_base)
            run_special(&line_program, opcode);
        else if (opcode)
            run_standard(&line_program, opcode);
        else
            run_extended(&line_program);
    }
    rows->count = line_program.first_row; /* drop an unfinished sequence */
    sort_rows(rows);
    return !line_program.cursor.has_failed;
}

void dwarf_rows_fini(struct dwarf_rows *rows)
{
    mem_free(rows->rows);
    *rows = (struct dwarf_rows){0};
}

uint64_t dwarf_lines_next(struct span section, uint64_t offset)
{
    struct cursor cursor = cursor_at(section, offset);
    uint64_t length = cursor_u32(&cursor);
    if (length == UINT32_MAX)
        length = cursor_u64(&cursor);
    cursor_skip(&cursor, length);
    return cursor.has_failed || !cursor_left(&cursor) ? DWARF_NO_OFFSET
                                                      : (uint64_t)(cursor.next - section.data);
}
