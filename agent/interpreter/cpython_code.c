#include "agent/interpreter/cpython_code.h"

#include "agent/interpreter/code_cache.h"
#include "agent/interpreter/cpython_text.h"
#include "agent/process/process_memory.h"
#include "lib/base/mem.h"

#include <stddef.h>

enum {
    LINES_MAX_BYTES = 256 << 10,
    CODE_MAX_BYTES = 320 << 10, /* of memory, by one function */
    HEAD_BYTES = 256,           /* of a code object, what is read at once */
    TYPE_OFFSET = 8,            /* of an object, its type */
    SIZE_OFFSET = 16,           /* of bytes, how many */
    BYTES_OFFSET = 32,
};

struct code {
    uint32_t check;
    uint32_t first_line;
    struct span name;
    struct span file;
    struct span lines;
    bool is_shim;
};

struct cpython_codes {
    struct cpython_layout layout;
    uint32_t references;
    uint32_t first_process_id; /* that they were created for */
    uint32_t process_id;       /* that is read */
    uint64_t code_type;
    struct code_cache cache; /* of struct code */
};

struct cpython_codes *cpython_codes_create(const struct cpython_layout *layout, uint32_t process_id,
                                           uint64_t code_type, const struct code_share *share)
{
    struct cpython_codes *codes = mem_new(struct cpython_codes, 1);
    *codes = (struct cpython_codes){
        .layout = *layout, .references = 1, .first_process_id = process_id, .code_type = code_type};
    code_cache_init(&codes->cache, share, sizeof(struct code), CODE_MAX_BYTES);
    return codes;
}

struct cpython_codes *cpython_codes_ref(struct cpython_codes *codes)
{
    codes->references++;
    return codes;
}

void cpython_codes_unref(struct cpython_codes *codes)
{
    if (--codes->references)
        return;
    code_cache_fini(&codes->cache);
    mem_free(codes);
}

/* ---- reading ---- */

static uint64_t word_at(const uint8_t *head, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, head + offset, sizeof(word));
    return word;
}

/* Does it say what the kernel saw when it ran? */
static bool is_same(const struct cpython_layout *layout, const uint8_t *head, uint32_t check)
{
    const struct interpreter_layout *frames = &layout->frames;
    const uint8_t *start = head + frames->code_start;
    return interpreter_check(word_at(start, frames->code_words[0]),
                             word_at(start, frames->code_words[1]),
                             word_at(start, frames->code_words[2])) == check;
}

static struct span read_text(struct cpython_codes *codes, uint64_t address)
{
    buf_auto text;
    buf_init(&text, CPYTHON_TEXT_MAX_BYTES);
    if (!cpython_text_read(codes->process_id, address, codes->layout.ascii_bytes,
                           codes->layout.unicode_bytes, &text))
        return (struct span){0};
    return span_of(arena_strndup(codes->cache.into, text.data, text.size), text.size);
}

/* A table that is too long is cut: lines near its end are not known then. */
static struct span read_bytes(struct cpython_codes *codes, uint64_t address)
{
    uint64_t size;
    if (!process_memory_word(codes->process_id, address + SIZE_OFFSET, &size))
        return (struct span){0};
    if (size > LINES_MAX_BYTES)
        size = LINES_MAX_BYTES;
    uint8_t *bytes = arena_alloc_raw(codes->cache.into, size, 1);
    if (!process_memory_read(codes->process_id, address + BYTES_OFFSET, bytes, size))
        return (struct span){0};
    return span_of(bytes, size);
}

/* False: it is not there any more. */
static bool read_code(struct cpython_codes *codes, const struct interpreted_frame *frame,
                      struct code *code)
{
    const struct cpython_layout *layout = &codes->layout;
    uint8_t head[HEAD_BYTES];
    const size_t needed = (size_t)layout->code_lines + 8;
    *code = (struct code){.check = frame->check,
                          .name = SPAN_LITERAL("[Python function that is gone]")};
    if (needed > sizeof(head) || layout->code_file + 8u > needed ||
        layout->code_qualified_name + 8u > needed ||
        !process_memory_read(codes->process_id, frame->code, head, needed) ||
        word_at(head, TYPE_OFFSET) != codes->code_type || !is_same(layout, head, frame->check))
        return false;
    const struct span name =
        read_text(codes, word_at(head, layout->has_qualified_names ? layout->code_qualified_name
                                                                   : layout->code_name));
    code->name = name.size ? name : SPAN_LITERAL("[Python function without a name]");
    code->file = read_text(codes, word_at(head, layout->code_file));
    code->lines = read_bytes(codes, word_at(head, layout->code_lines));
    memcpy(&code->first_line, head + layout->code_first_line, sizeof(code->first_line));
    code->first_line = code->first_line > INT32_MAX ? 0 : code->first_line;
    code->is_shim = span_equal_text(code->file, "<shim>");
    return true;
}

/* ---- looking up ---- */

static const struct code *find(struct cpython_codes *codes, uint32_t process_id,
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

static uint32_t find_line(const struct cpython_layout *layout, const struct code *code,
                          const struct interpreted_frame *frame)
{
    const int64_t place = layout->is_code_inside
                              ? (int64_t)(frame->place - frame->code - layout->code_instructions)
                              : (int64_t)(int32_t)frame->place * layout->place_unit;
    return cpython_lines_find(layout->line_form, code->lines, code->first_line, place);
}

bool cpython_codes_find(struct cpython_codes *codes, uint32_t process_id,
                        const struct interpreted_frame *frame, struct interpreter_name *ret_name)
{
    const struct code *code = find(codes, process_id, frame);
    if (code->is_shim)
        return false;
    *ret_name = (struct interpreter_name){.function = code->name,
                                          .file = code->file,
                                          .first_line = code->first_line,
                                          .line = find_line(&codes->layout, code, frame)};
    return true;
}
