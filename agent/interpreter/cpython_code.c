#include "agent/interpreter/cpython_code.h"

#include "agent/interpreter/code_reader.h"
#include "agent/interpreter/cpython_text.h"
#include "agent/process/process_memory.h"
#include "lib/base/mem.h"

#include <stddef.h>

enum {
    LINES_MAX_BYTES = 256 << 10,
    CODE_MAX_BYTES = 320 << 10, /* memory of one function: a line table and two texts at most */
    HEAD_BYTES = 256,           /* capacity for the part of a code object that is read */
    TYPE_OFFSET = 8,            /* PyObject.ob_type */
    SIZE_OFFSET = 16,           /* PyBytesObject.ob_base.ob_size */
    BYTES_OFFSET = 32,          /* PyBytesObject.ob_sval */
};

struct function {
    struct code_entry entry;
    uint32_t first_line;
    struct span name;
    struct span file;
    struct span lines;
    bool is_shim; /* the interpreter's own code object for calls from C */
};

struct cpython_codes {
    struct cpython_layout layout;
    uint64_t code_type;
    struct code_reader reader; /* caches functions as struct function */
};

struct cpython_codes *cpython_codes_create(const struct cpython_layout *layout, uint32_t process_id,
                                           uint64_t code_type, const struct code_quota *quota)
{
    struct cpython_codes *codes = mem_new(struct cpython_codes, 1);
    codes->layout = *layout;
    codes->code_type = code_type;
    code_reader_init(&codes->reader, process_id, quota, sizeof(struct function), CODE_MAX_BYTES);
    return codes;
}

struct cpython_codes *cpython_codes_ref(struct cpython_codes *codes)
{
    code_reader_ref(&codes->reader);
    return codes;
}

void cpython_codes_unref(struct cpython_codes *codes)
{
    if (code_reader_unref(&codes->reader))
        mem_free(codes);
}

static struct span read_text(struct cpython_codes *codes, uint64_t address)
{
    buf_auto text;
    buf_init(&text, CPYTHON_TEXT_MAX_BYTES);
    if (!cpython_text_read(codes->reader.process_id, address, codes->layout.ascii_bytes,
                           codes->layout.unicode_bytes, &text))
        return (struct span){0};
    return code_reader_keep_text(&codes->reader, &text);
}

/* The content of a bytes object. */
static struct span read_bytes(struct cpython_codes *codes, uint64_t address)
{
    uint64_t size;
    if (!process_memory_word(codes->reader.process_id, address + SIZE_OFFSET, &size))
        return (struct span){0};
    return code_reader_table(&codes->reader, address + BYTES_OFFSET, size, LINES_MAX_BYTES);
}

static bool read_function(void *context, const struct interpreted_frame *frame,
                          struct code_entry *entry)
{
    struct cpython_codes *codes = context;
    struct function *function = (struct function *)entry;
    const struct cpython_layout *layout = &codes->layout;
    uint8_t head[HEAD_BYTES];
    const size_t needed = (size_t)layout->code_lines + 8;
    *function = (struct function){.entry.check = frame->check,
                                  .name = SPAN_LITERAL("[Python function that is gone]")};
    if (needed > sizeof(head) || layout->code_file + 8u > needed ||
        layout->code_qualified_name + 8u > needed ||
        !process_memory_read(codes->reader.process_id, frame->code, head, needed) ||
        code_reader_word(head, TYPE_OFFSET) != codes->code_type ||
        !code_reader_is_same(&layout->frames, head, frame->check))
        return false;
    const uint32_t name_offset =
        layout->has_qualified_names ? layout->code_qualified_name : layout->code_name;
    const struct span name = read_text(codes, code_reader_word(head, name_offset));
    function->name = name.size ? name : SPAN_LITERAL("[Python function without a name]");
    function->file = read_text(codes, code_reader_word(head, layout->code_file));
    function->lines = read_bytes(codes, code_reader_word(head, layout->code_lines));
    memcpy(&function->first_line, head + layout->code_first_line, sizeof(function->first_line));
    function->first_line = function->first_line > INT32_MAX ? 0 : function->first_line;
    function->is_shim = span_equal_text(function->file, "<shim>");
    return true;
}

static uint32_t find_line(const struct cpython_layout *layout, const struct function *function,
                          const struct interpreted_frame *frame)
{
    const int64_t offset =
        layout->has_instruction_address
            ? (int64_t)(frame->position - frame->code - layout->code_instructions)
            : (int64_t)(int32_t)frame->position * layout->position_unit;
    return cpython_lines_find(layout->line_form, function->lines, function->first_line, offset);
}

bool cpython_codes_find(struct cpython_codes *codes, uint32_t process_id,
                        const struct interpreted_frame *frame, struct interpreter_name *ret_name)
{
    const struct function *function = (const struct function *)code_reader_find(
        &codes->reader, process_id, frame, read_function, codes);
    if (function->is_shim)
        return false;
    *ret_name = (struct interpreter_name){.function = function->name,
                                          .file = function->file,
                                          .first_line = function->first_line,
                                          .line = find_line(&codes->layout, function, frame)};
    return true;
}
