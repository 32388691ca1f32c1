#include "agent/interpreter/ruby_code.h"

#include "agent/interpreter/code_cache.h"
#include "agent/interpreter/ruby_lines.h"
#include "agent/interpreter/ruby_text.h"
#include "agent/process/process_memory.h"
#include "lib/base/mem.h"

enum {
    LINES_MAX_BYTES = 256 << 10,
    CODE_MAX_BYTES = 640 << 10, /* of memory, by one function */
    BODY_BYTES = 256,           /* of a body, what is read at once */
};

struct code {
    uint32_t check;
    uint32_t first_line;
    uint64_t instructions;
    struct span name;
    struct span file;
    struct ruby_lines lines;
};

struct ruby_codes {
    struct ruby_layout layout;
    uint32_t references;
    uint32_t first_process_id; /* that they were created for */
    uint32_t process_id;       /* that is read */
    struct code_cache cache;   /* of struct code */
};

struct ruby_codes *ruby_codes_create(const struct ruby_layout *layout, uint32_t process_id,
                                     const struct code_share *share)
{
    struct ruby_codes *codes = mem_new(struct ruby_codes, 1);
    *codes =
        (struct ruby_codes){.layout = *layout, .references = 1, .first_process_id = process_id};
    code_cache_init(&codes->cache, share, sizeof(struct code), CODE_MAX_BYTES);
    return codes;
}

struct ruby_codes *ruby_codes_ref(struct ruby_codes *codes)
{
    codes->references++;
    return codes;
}

void ruby_codes_unref(struct ruby_codes *codes)
{
    if (--codes->references)
        return;
    code_cache_fini(&codes->cache);
    mem_free(codes);
}

/* ---- reading ---- */

static uint64_t word_at(const uint8_t *body, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, body + offset, sizeof(word));
    return word;
}

/* Does it say what the kernel saw when it ran? */
static bool is_same(const struct ruby_layout *layout, const uint8_t *body, uint32_t check)
{
    const struct interpreter_layout *frames = &layout->frames;
    const uint8_t *start = body + frames->code_start;
    return interpreter_check(word_at(start, frames->code_words[0]),
                             word_at(start, frames->code_words[1]),
                             word_at(start, frames->code_words[2])) == check;
}

static struct span keep_text(struct ruby_codes *codes, const struct buf *text)
{
    return span_of(arena_strndup(codes->cache.into, text->data, text->size), text->size);
}

static struct span read_text(struct ruby_codes *codes, uint64_t address)
{
    buf_auto text;
    buf_init(&text, RUBY_TEXT_MAX_BYTES);
    if (!ruby_text_read(codes->process_id, &codes->layout, address, &text))
        return (struct span){0};
    return keep_text(codes, &text);
}

static struct span read_path(struct ruby_codes *codes, uint64_t address)
{
    buf_auto text;
    buf_init(&text, RUBY_TEXT_MAX_BYTES);
    if (!ruby_text_read_path(codes->process_id, &codes->layout, address, &text))
        return (struct span){0};
    return keep_text(codes, &text);
}

/* A table that is too long is cut: lines near its end are not known then. */
static struct span read_bytes(struct ruby_codes *codes, uint64_t address, uint64_t size)
{
    if (size > LINES_MAX_BYTES)
        size = LINES_MAX_BYTES;
    uint8_t *bytes = arena_alloc_raw(codes->cache.into, size, 8);
    if (!address || !process_memory_read(codes->process_id, address, bytes, size))
        return (struct span){0};
    return span_of(bytes, size);
}

static struct ruby_lines read_lines(struct ruby_codes *codes, const uint8_t *body)
{
    const struct ruby_layout *layout = &codes->layout;
    uint32_t count, words;
    memcpy(&count, body + layout->body_lines + 16, sizeof(count));
    memcpy(&words, body + layout->body_size, sizeof(words));
    return (struct ruby_lines){
        .entries = read_bytes(codes, word_at(body, layout->body_lines),
                              (uint64_t)count * layout->line_bytes),
        .entry_bytes = layout->line_bytes,
        .index = read_bytes(codes, word_at(body, layout->body_lines + 24u),
                            ruby_lines_index_bytes(words)),
    };
}

/* A small number of Ruby's is kept as twice itself and one. */
static uint32_t first_line_of(const struct ruby_layout *layout, const uint8_t *body)
{
    const uint64_t value = word_at(body, layout->body_first_line);
    if (layout->is_first_line_plain)
        return (uint32_t)value <= INT32_MAX ? (uint32_t)value : 0;
    return value & 1 && value >> 1 < INT32_MAX ? (uint32_t)(value >> 1) : 0;
}

/* False: it is not there any more. */
static bool read_code(struct ruby_codes *codes, const struct interpreted_frame *frame,
                      struct code *code)
{
    const struct ruby_layout *layout = &codes->layout;
    uint8_t body[BODY_BYTES];
    uint64_t address;
    const size_t needed = (size_t)layout->body_lines + 32;
    *code = (struct code){.check = frame->check,
                          .name = SPAN_LITERAL("[Ruby function that is gone]"),
                          .lines = {.entry_bytes = layout->line_bytes}};
    if (!process_memory_word(codes->process_id, frame->code + layout->frames.code_body, &address) ||
        !process_memory_read(codes->process_id, address, body, needed) ||
        !is_same(layout, body, frame->check))
        return false;
    const struct span name = read_text(codes, word_at(body, layout->body_label));
    code->name = name.size ? name : SPAN_LITERAL("[Ruby function without a name]");
    code->file = read_path(codes, word_at(body, layout->body_path));
    code->first_line = first_line_of(layout, body);
    code->instructions = word_at(body, layout->body_instructions);
    code->lines = read_lines(codes, body);
    return true;
}

/* ---- looking up ---- */

static const struct code *find(struct ruby_codes *codes, uint32_t process_id,
                               const struct interpreted_frame *frame)
{
    struct code *code = code_cache_find(&codes->cache, frame->code);
    if (code && code->check == frame->check)
        return code;
    code = code_cache_put(&codes->cache, frame->code);
    codes->process_id = process_id;
    if (!read_code(codes, frame, code)) {
        codes->process_id = codes->first_process_id;
        (void)read_code(codes, frame, code);
    }
    code_cache_count(&codes->cache);
    return code;
}

/* A frame's place is that of the instruction behind the one that it runs. */
static uint32_t find_line(const struct code *code, uint64_t place)
{
    if (place < code->instructions || code->lines.entries.size == 0)
        return 0;
    const uint64_t position = (place - code->instructions) / sizeof(uint64_t);
    return ruby_lines_find(&code->lines, position ? position - 1 : 0);
}

void ruby_codes_find(struct ruby_codes *codes, uint32_t process_id,
                     const struct interpreted_frame *frame, struct interpreter_name *ret_name)
{
    const struct code *code = find(codes, process_id, frame);
    *ret_name = (struct interpreter_name){.function = code->name,
                                          .file = code->file,
                                          .first_line = code->first_line,
                                          .line = find_line(code, frame->place)};
}
