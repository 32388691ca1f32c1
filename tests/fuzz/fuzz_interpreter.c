/* Data of interpreters and JIT compilers that the agent reads: the first byte selects the reader
 * of the rest. */
#include "tests/fuzz/fuzz.h"

#include "agent/interpreter/cpython.h"
#include "agent/interpreter/cpython_text.h"
#include "agent/interpreter/ruby_lines.h"
#include "agent/interpreter/ruby_text.h"
#include "agent/interpreter/stack_merge.h"
#include "agent/process/elf_exports.h"
#include "agent/process/elf_file.h"
#include "agent/symbols/jitdump.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/span_utf8.h"

#include <sys/mman.h>

static void read_lines(struct span table)
{
    static const enum cpython_line_form forms[] = {CPYTHON_LINES_INCREMENTS, CPYTHON_LINES_RANGES,
                                                   CPYTHON_LINES_LOCATIONS};
    for (int i = 0; i < 3; i++) {
        for (int64_t offset = -2; offset < 5000; offset = offset < 8 ? offset + 1 : 2 * offset)
            fuzz_check(cpython_lines_find(forms[i], table, 7, offset) <= INT32_MAX);
    }
}

static void read_text(struct span bytes)
{
    struct cpython_text_form form;
    uint32_t state;
    buf_auto text;
    buf_init(&text, 1 << 20);
    if (bytes.size < sizeof(state))
        return;
    memcpy(&state, bytes.data, sizeof(state));
    if (!cpython_text_form(state, &form))
        return;
    cpython_text_decode(span_of(bytes.data + 4, bytes.size - 4), form.character_bytes, &text);
    fuzz_check(span_is_utf8(buf_span(&text)));
}

static void read_layout(struct span offsets)
{
    struct cpython_layout layout;
    const enum interpreter_outcome outcome = cpython_layout_read(offsets, &layout);
    if (outcome != INTERPRETER_READY)
        return;
    const struct interpreter_layout *frames = &layout.frames;
    fuzz_check(frames->frame_bytes < INTERPRETER_PIECE_BYTES);
    fuzz_check(frames->code_bytes < INTERPRETER_PIECE_BYTES);
    for (int i = 0; i < 3; i++)
        fuzz_check(frames->code_words[i] + 8 <= frames->code_bytes);
}

static void read_symbols(struct span bytes)
{
    struct elf_file file;
    struct elf_exports symbols;
    struct elf_symbol symbol;
    struct err err;
    fd_auto fd = memfd_create("elf", MFD_CLOEXEC);
    fuzz_check(fd >= 0 && os_write_all(fd, bytes.data, bytes.size) == 0);
    if (elf_file_read(fd, "file", &file, &err) || !elf_exports_init(&symbols, fd, &file))
        return;
    (void)elf_exports_find(&symbols, "_PyRuntime", &symbol);
    (void)elf_exports_find(&symbols, "own", &symbol);
}

/* The first byte is the number of entries; the rest are the entries. */
static void read_ruby_lines(struct span bytes)
{
    if (bytes.size < 1)
        return;
    const size_t first = bytes.data[0] < bytes.size - 1 ? bytes.data[0] : bytes.size - 1;
    for (uint32_t entry_bytes = 8; entry_bytes <= 12; entry_bytes += 4) {
        const struct ruby_lines lines = {
            .entries = span_of(bytes.data + 1, first),
            .entry_bytes = entry_bytes,
            .index = span_of(bytes.data + 1 + first, bytes.size - 1 - first)};
        for (uint64_t position = 0; position < UINT64_C(1) << 40;
             position = position < 600 ? position + 1 : 2 * position)
            fuzz_check(ruby_lines_find(&lines, position) <= INT32_MAX);
    }
}

static void read_ruby_text(struct span bytes)
{
    uint8_t object[RUBY_OBJECT_BYTES];
    struct ruby_text_location location;
    if (bytes.size < sizeof(object))
        return;
    memcpy(object, bytes.data, sizeof(object));
    for (uint32_t minor = 0; minor <= 4; minor++) {
        if (ruby_text_find(ruby_layout_find(3 << 8 | minor), object, &location))
            fuzz_check(location.bytes <= RUBY_TEXT_MAX_BYTES &&
                       (location.address || location.offset));
    }
    ruby_text_clean(object, sizeof(object));
    fuzz_check(span_is_utf8(span_of(object, sizeof(object))));
}

static bool is_odd(const void *context, uint32_t native)
{
    (void)context;
    return native & 1;
}

static void merge_stacks(struct span bytes)
{
    uint32_t items[UINT8_MAX + 256];
    struct interpreted_frame frames[256] = {0};
    uint32_t count = 0, native = 0, interpreted = 0;
    if (bytes.size < 1)
        return;
    for (size_t i = 1; i + 1 < bytes.size && count < 256; i += 2)
        frames[count++] = (struct interpreted_frame){
            .native = bytes.data[i] == 255 ? INTERPRETED_NOWHERE : bytes.data[i],
            .flags = bytes.data[i + 1] & INTERPRETED_LAST};
    const struct stack_merge merge = {
        .native_count = bytes.data[0], .frames = frames, .frame_count = count, .is_call = is_odd};
    const uint32_t woven = stack_merge_frames(&merge, items);
    for (uint32_t i = 0; i < woven; i++) {
        /* Both keep their order, and no interpreted frame is lost. */
        if (items[i] & STACK_MERGE_INTERPRETED) {
            fuzz_check((items[i] & ~STACK_MERGE_INTERPRETED) == interpreted++);
        } else {
            fuzz_check(items[i] >= native && items[i] < bytes.data[0]);
            native = items[i] + 1;
        }
    }
    fuzz_check(interpreted == count);
}

/* Reads the file before and after it grew. */
static void read_jitdump(struct span bytes)
{
    struct jitdump *dump = jitdump_create();
    struct jitdump_location location;
    fd_auto fd = memfd_create("jitdump", MFD_CLOEXEC);
    fuzz_check(fd >= 0 && os_write_all(fd, bytes.data, bytes.size) == 0);
    for (size_t part = 1; part <= 3; part++) {
        (void)jitdump_read(dump, fd, bytes.size * part / 3, 1 << 20);
        for (uint64_t address = 1; address; address *= 3) {
            if (jitdump_find(dump, address, &location))
                fuzz_check(location.function.size && span_is_utf8(location.function) &&
                           span_is_utf8(location.file));
            if (address > UINT64_MAX / 3)
                break;
        }
    }
    (void)jitdump_is_path(bytes);
    jitdump_destroy(dump);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct span) = {read_lines,      read_text,     read_layout,
                                                   read_symbols,    merge_stacks,  read_jitdump,
                                                   read_ruby_lines, read_ruby_text};
    if (size == 0)
        return 0;
    readers[data[0] % (sizeof(readers) / sizeof(*readers))](span_of(data + 1, size - 1));
    return 0;
}
