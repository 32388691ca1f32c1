#include "agent/interpreter/ruby_code.h"

#include "agent/interpreter/code_reader.h"
#include "agent/interpreter/ruby_lines.h"
#include "agent/interpreter/ruby_text.h"
#include "agent/process/process_memory.h"
#include "lib/base/mem.h"

#include <assert.h>

enum {
    LINES_MAX_BYTES = 256 << 10,
    CODE_MAX_BYTES = 640 << 10, /* memory of one function: two tables and two texts at most */
    BODY_BYTES = 256, /* capacity for the part of an instruction sequence's body that is read */
    /* Members of the line table (iseq_insn_info), as offsets from ruby_layout.body_lines. */
    LINES_ENTRIES = 0,
    LINES_COUNT = 16,
    LINES_INDEX = 24,
    LINES_BYTES = 32,
};

struct function {
    struct code_entry entry;
    uint32_t first_line;
    uint64_t instructions;
    struct span name;
    struct span file;
    struct ruby_lines lines;
};

struct ruby_codes {
    struct ruby_layout layout;
    struct code_reader reader; /* caches functions as struct function */
};

struct ruby_codes *ruby_codes_create(const struct ruby_layout *layout, uint32_t process_id,
                                     const struct code_quota *quota)
{
    struct ruby_codes *codes = mem_new(struct ruby_codes, 1);
    codes->layout = *layout;
    code_reader_init(&codes->reader, process_id, quota, sizeof(struct function), CODE_MAX_BYTES);
    return codes;
}

struct ruby_codes *ruby_codes_ref(struct ruby_codes *codes)
{
    code_reader_ref(&codes->reader);
    return codes;
}

void ruby_codes_unref(struct ruby_codes *codes)
{
    if (code_reader_unref(&codes->reader))
        mem_free(codes);
}

typedef bool read_text_function(uint32_t process_id, const struct ruby_layout *layout,
                                uint64_t address, struct buf *text);

static struct span read_text(struct ruby_codes *codes, uint64_t address, read_text_function *read)
{
    buf_auto text;
    buf_init(&text, RUBY_TEXT_MAX_BYTES);
    if (!read(codes->reader.process_id, &codes->layout, address, &text))
        return (struct span){0};
    return code_reader_keep_text(&codes->reader, &text);
}

static struct ruby_lines read_lines(struct ruby_codes *codes, const uint8_t *body)
{
    const struct ruby_layout *layout = &codes->layout;
    uint32_t count, words;
    memcpy(&count, body + layout->body_lines + LINES_COUNT, sizeof(count));
    memcpy(&words, body + layout->body_size, sizeof(words));
    return (struct ruby_lines){
        .entries = code_reader_table(
            &codes->reader, code_reader_word(body, layout->body_lines + (uint32_t)LINES_ENTRIES),
            (uint64_t)count * layout->line_bytes, LINES_MAX_BYTES),
        .entry_bytes = layout->line_bytes,
        .index = code_reader_table(
            &codes->reader, code_reader_word(body, layout->body_lines + (uint32_t)LINES_INDEX),
            ruby_lines_index_bytes(words), LINES_MAX_BYTES),
    };
}

/* Before 3.2 the line is a Fixnum: 2 * line + 1. */
static uint32_t find_first_line(const struct ruby_layout *layout, const uint8_t *body)
{
    const uint64_t value = code_reader_word(body, layout->body_first_line);
    if (layout->is_first_line_plain)
        return (uint32_t)value <= INT32_MAX ? (uint32_t)value : 0;
    return value & 1 && value >> 1 < INT32_MAX ? (uint32_t)(value >> 1) : 0;
}

static bool read_function(void *context, const struct interpreted_frame *frame,
                          struct code_entry *entry)
{
    struct ruby_codes *codes = context;
    struct function *function = (struct function *)entry;
    const struct ruby_layout *layout = &codes->layout;
    const uint32_t process_id = codes->reader.process_id;
    uint8_t body[BODY_BYTES];
    uint64_t address;
    const size_t needed = (size_t)layout->body_lines + LINES_BYTES; /* the last members read */
    assert(needed <= sizeof(body));
    *function = (struct function){.entry.check = frame->check,
                                  .name = SPAN_LITERAL("[Ruby function that is gone]"),
                                  .lines = {.entry_bytes = layout->line_bytes}};
    if (!process_memory_word(process_id, frame->code + layout->frames.code_body, &address) ||
        !process_memory_read(process_id, address, body, needed) ||
        !code_reader_is_same(&layout->frames, body, frame->check))
        return false;
    const struct span name =
        read_text(codes, code_reader_word(body, layout->body_label), ruby_text_read);
    function->name = name.size ? name : SPAN_LITERAL("[Ruby function without a name]");
    function->file =
        read_text(codes, code_reader_word(body, layout->body_path), ruby_text_read_path);
    function->first_line = find_first_line(layout, body);
    function->instructions = code_reader_word(body, layout->body_instructions);
    function->lines = read_lines(codes, body);
    return true;
}

/* next: frame->position, the address of the instruction after the current one. */
static uint32_t find_line(const struct function *function, uint64_t next)
{
    if (next < function->instructions || function->lines.entries.size == 0)
        return 0;
    const uint64_t word = (next - function->instructions) / sizeof(uint64_t);
    return ruby_lines_find(&function->lines, word ? word - 1 : 0);
}

void ruby_codes_find(struct ruby_codes *codes, uint32_t process_id,
                     const struct interpreted_frame *frame, struct interpreter_name *ret_name)
{
    const struct function *function = (const struct function *)code_reader_find(
        &codes->reader, process_id, frame, read_function, codes);
    *ret_name = (struct interpreter_name){.function = function->name,
                                          .file = function->file,
                                          .first_line = function->first_line,
                                          .line = find_line(function, frame->position)};
}
