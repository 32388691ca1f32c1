#include "debuginfod/go_table.h"

#include "debuginfod/cursor.h"
#include "debuginfod/elf_input.h"
#include "debuginfod/go_header.h"
#include "debuginfod/go_module.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_table_writer.h"

enum {
    MAX_TREE = 1 << 16,  /* inlined calls of one function */
    CALL_BYTES_OLD = 20, /* size of an entry of the tree, before 1.20 */
    CALL_BYTES_NEW = 16,
};
/* The maximum number of steps of all programs together; the largest known binaries need a
 * hundredth. */
#define MAX_STEPS (UINT64_C(1) << 28)

/* A program assigns a value to each address of a function: pairs of a change of the value and a
 * number of bytes. */
struct program {
    struct cursor cursor;
    uint64_t end; /* end of the current value, relative to the entry of the function */
    int64_t value;
    bool has_started;
    bool has_ended;
};

struct call {
    uint64_t parent_offset; /* of the instruction in the caller that stands for the call */
    int64_t name;
    uint32_t start_line;
    uint32_t node;
    bool is_known;
};

struct table {
    struct elf_input *elf;
    struct symbol_table_writer *writer;
    struct go_result *result;
    struct go_header header;
    struct go_module module;
    struct map_u64 files; /* from the offset of the path to the writer's number */
    struct call *calls;   /* of the current function */
    uint32_t call_capacity;
    uint32_t call_count;
    uint64_t steps;
};

/* ---- programs ---- */

static void program_step(struct table *table, struct program *program)
{
    uint64_t change = cursor_uleb(&program->cursor);
    if (program->cursor.has_failed || (change == 0 && program->has_started) ||
        table->steps++ > MAX_STEPS) {
        program->has_ended = true;
        program->value = GO_NO_INDEX;
        program->end = UINT64_MAX;
        return;
    }
    program->has_started = true;
    uint64_t half = change >> 1;
    program->value = (int64_t)((uint64_t)program->value + (change & 1 ? ~half : half));
    program->end += cursor_uleb(&program->cursor) * table->header.quantum;
}

/* Offset 0 means no program: the value is -1 everywhere. */
static struct program program_start(struct table *table, uint32_t offset)
{
    struct program program = {.cursor = cursor_at(table->header.lines, offset),
                              .value = GO_NO_INDEX};
    if (!offset) {
        program.has_ended = true;
        program.end = UINT64_MAX;
    } else {
        program_step(table, &program);
    }
    return program;
}

static int64_t program_value_at(struct table *table, uint32_t offset, uint64_t address)
{
    struct program program = program_start(table, offset);
    while (!program.has_ended && program.end <= address)
        program_step(table, &program);
    return program.value;
}

/* ---- files and lines ---- */

static uint32_t writer_file(struct table *table, const struct go_function *function, int64_t number)
{
    struct span path = go_header_file(&table->header, function, number);
    if (!path.size)
        return SYMBOL_NONE;
    uint64_t key = (uint64_t)(path.data - table->header.table.data);
    uint32_t file = map_u64_find(&table->files, key);
    if (file != MAP_ABSENT)
        return file;
    file = symbol_table_writer_file(table->writer, path);
    if (file != SYMBOL_NONE)
        map_u64_add(&table->files, key, file);
    return file;
}

static uint32_t valid_line(int64_t line)
{
    return line < 0 || line > SYMBOL_LINE_MAX ? 0 : (uint32_t)line;
}

/* ---- inlined calls ---- */

static struct cursor inline_tree_cursor(const struct table *table,
                                        const struct go_function *function)
{
    if (!function->has_inline_tree || !table->module.has_function_data)
        return (struct cursor){.has_failed = true};
    return cursor_of(elf_input_at(table->elf, table->module.function_data + function->inline_tree));
}

static void read_call(const struct table *table, struct cursor *cursor, struct call *call)
{
    *call = (struct call){.node = SYMBOL_NONE};
    if (table->header.version >= GO_1_20) {
        cursor_skip(cursor, 4);
        call->name = (int32_t)cursor_u32(cursor);
        call->parent_offset = cursor_u32(cursor);
        call->start_line = valid_line(cursor_u32(cursor));
    } else {
        cursor_skip(cursor, 12); /* parent, funcID, file, line */
        call->name = (int32_t)cursor_u32(cursor);
        call->parent_offset = cursor_u32(cursor);
    }
}

/* The tree has no stored length: its length is the highest index in the program plus 1. */
static uint32_t count_calls(struct table *table, const struct go_function *function)
{
    int64_t most = GO_NO_INDEX;
    struct program program = program_start(table, function->inline_program);
    for (; !program.has_ended; program_step(table, &program)) {
        if (program.value > most)
            most = program.value;
    }
    return most >= MAX_TREE ? 0 : (uint32_t)(most + 1);
}

/* Makes the node of an inlined call. Callers precede the calls inlined into them, so nodes can
 * be made in order. */
static void make_node(struct table *table, const struct go_function *function, uint32_t index,
                      uint32_t outermost)
{
    struct call *call = &table->calls[index];
    uint64_t at = call->parent_offset;
    int64_t parent_index = program_value_at(table, function->inline_program, at);
    uint32_t parent = outermost;
    if (parent_index >= 0 && parent_index < index && table->calls[parent_index].is_known)
        parent = table->calls[parent_index].node;
    uint32_t callee = symbol_table_writer_function(
        table->writer, &(struct symbol_function){.name = go_header_name(&table->header, call->name),
                                                 .file = SYMBOL_NONE,
                                                 .line = call->start_line});
    if (callee == SYMBOL_NONE)
        return;
    call->node = symbol_table_writer_node(
        table->writer, parent, callee,
        writer_file(table, function, program_value_at(table, function->file_program, at)),
        valid_line(program_value_at(table, function->line_program, at)));
    call->is_known = call->node != SYMBOL_NONE;
    table->result->inlined_calls++;
}

static void read_calls(struct table *table, const struct go_function *function, uint32_t outermost)
{
    uint32_t count = count_calls(table, function);
    unsigned bytes = table->header.version >= GO_1_20 ? CALL_BYTES_NEW : CALL_BYTES_OLD;
    struct cursor cursor = inline_tree_cursor(table, function);
    table->call_count = 0;
    if (!count)
        return;
    if (cursor.has_failed || cursor_left(&cursor) / bytes < count) {
        table->result->has_unknown_calls = true;
        return;
    }
    if (table->call_capacity < count) {
        table->call_capacity = count;
        table->calls = mem_resize(table->calls, count, sizeof(struct call));
    }
    table->call_count = count;
    for (uint32_t i = 0; i < count; i++)
        read_call(table, &cursor, &table->calls[i]);
    for (uint32_t i = 0; i < count; i++)
        make_node(table, function, i, outermost);
}

/* ---- functions ---- */

static uint64_t smallest(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Runs the programs for files, lines and inlined calls in parallel; a range ends where any of
 * their values changes. */
static void write_ranges(struct table *table, const struct go_function *function,
                         uint32_t outermost)
{
    uint64_t size = function->end - function->entry, at = 0;
    uint64_t entry = function->entry + table->module.text;
    struct program files = program_start(table, function->file_program);
    struct program lines = program_start(table, function->line_program);
    struct program calls = program_start(table, table->call_count ? function->inline_program : 0);
    while (at < size) {
        uint64_t end = smallest(files.end, lines.end, calls.end);
        if (end > size)
            end = size;
        uint32_t node = outermost;
        if (calls.value >= 0 && calls.value < table->call_count &&
            table->calls[calls.value].is_known)
            node = table->calls[calls.value].node;
        if (at < end)
            symbol_table_writer_range(table->writer, entry + at, entry + end, node,
                                      writer_file(table, function, files.value),
                                      valid_line(lines.value));
        at = end;
        while (!files.has_ended && files.end <= at)
            program_step(table, &files);
        while (!lines.has_ended && lines.end <= at)
            program_step(table, &lines);
        while (!calls.has_ended && calls.end <= at)
            program_step(table, &calls);
    }
}

static void add_function(struct table *table, uint32_t number)
{
    struct go_function function;
    if (!go_header_function(&table->header, number, &function)) {
        table->result->broken_functions++;
        return;
    }
    if (function.end - function.entry > UINT32_MAX) {
        table->result->broken_functions++;
        return;
    }
    int64_t first_file = program_value_at(table, function.file_program, 0);
    bool is_own = program_value_at(table, function.inline_program, 0) < 0;
    uint32_t id = symbol_table_writer_function(
        table->writer, &(struct symbol_function){
                           .name = function.name,
                           .file = is_own ? writer_file(table, &function, first_file) : SYMBOL_NONE,
                           .line = valid_line(function.start_line)});
    uint32_t outermost = symbol_table_writer_node(table->writer, SYMBOL_NONE, id, SYMBOL_NONE, 0);
    read_calls(table, &function, outermost);
    write_ranges(table, &function, outermost);
    if (!table->result->function_count++ ||
        function.entry + table->module.text < table->result->code_begin)
        table->result->code_begin = function.entry + table->module.text;
    if (function.end + table->module.text > table->result->code_end)
        table->result->code_end = function.end + table->module.text;
}

static struct elf_section *find_table(struct elf_input *elf)
{
    struct elf_section *section = elf_input_find(elf, ".gopclntab");
    return section ? section : elf_input_find(elf, ".data.rel.ro.gopclntab");
}

enum err_code go_table_add(struct elf_input *elf, struct symbol_table_writer *writer,
                           struct go_result *ret_result, struct err *err)
{
    struct table table = {.elf = elf, .writer = writer, .result = ret_result};
    struct elf_section *section = find_table(elf);
    struct span bytes;
    *ret_result = (struct go_result){0};
    if (!section)
        return ERR_NONE;
    enum err_code status = elf_input_read(elf, section, &bytes, err);
    if (!status)
        status = go_header_read(bytes, &table.header, err);
    if (status)
        return status;
    go_module_find(elf, &table.header, section->address, &table.module);
    if (!table.module.has_text)
        return err_set(err, ERR_INVALID, "Go's table does not state where the code begins");
    for (uint32_t i = 0; i < table.header.function_count; i++)
        add_function(&table, i);
    map_u64_fini(&table.files);
    mem_free(table.calls);
    return ERR_NONE;
}
