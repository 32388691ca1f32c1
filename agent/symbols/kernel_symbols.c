#include "agent/symbols/kernel_symbols.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    TEXT_MAX_BYTES = 64 << 20,
    SYMBOLS_MAX = 2000000,
    PIECE_BYTES = 64 << 10, /* read at a time; lines are shorter */
    BLOCK_SYMBOLS = 32,
    DELTA_MAX_BYTES = 10,
    PADDING_MAX_BYTES = 64,
};
#define READ_PAUSE_NS (10 * CLOCK_NS_PER_S)
/* The prefix of symbols for the padding before a function, which nearly every function has since
 * Linux 6.2. The padding is counted as part of the function. */
#define PADDING "__pfx_"
#define FUNCTION_MAX_BYTES (UINT64_C(16) << 20) /* further from a symbol an address is unknown */

struct symbol {
    uint64_t start;
    uint32_t text; /* name, NUL, module, NUL */
};

/* The symbols while the file is read. */
struct reading {
    struct symbol *symbols;
    uint32_t count;
    uint32_t capacity;
    struct buf text;
};

/* BLOCK_SYMBOLS symbols in ascending order, packed from offset on: for each the distance from the
 * previous start (LEB128; 0 for the first), name, NUL, module, NUL. */
struct block {
    uint64_t start;
    uint64_t offset;
};

struct kernel_symbols {
    struct block *blocks;
    uint32_t block_count;
    uint32_t count;
    uint64_t last; /* start of the last symbol */
    uint8_t *packed;
    int64_t read_ns;
};

struct kernel_symbols *kernel_symbols_create(void)
{
    struct kernel_symbols *symbols = mem_new(struct kernel_symbols, 1);
    symbols->read_ns = INT64_MIN / 2;
    return symbols;
}

static void clear_symbols(struct kernel_symbols *symbols)
{
    mem_free(symbols->blocks);
    mem_free(symbols->packed);
    *symbols = (struct kernel_symbols){.read_ns = symbols->read_ns};
}

void kernel_symbols_destroy(struct kernel_symbols *symbols)
{
    if (!symbols)
        return;
    clear_symbols(symbols);
    mem_free(symbols);
}

/* ---- reading ---- */

static void reading_init(struct reading *reading)
{
    *reading = (struct reading){0};
    buf_init(&reading->text, TEXT_MAX_BYTES);
}

static void reading_fini(struct reading *reading)
{
    mem_free(reading->symbols);
    buf_fini(&reading->text);
}

static int compare_symbols(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->text < y->text ? -1 : x->text > y->text;
}

/* A line is "ffffffff81000000 T name", followed by "\t[module]" for a module. */
static void add_line(struct reading *reading, struct span line)
{
    struct span address, kind, name, module;
    uint64_t start;
    if (!span_split(line, ' ', &address, &line) || !span_split(line, ' ', &kind, &name) ||
        kind.size != 1 || !strchr("tTwW", kind.data[0]) || !span_parse_hex(address, &start) ||
        start == 0)
        return;
    span_split(name, '\t', &name, &module);
    if (span_starts_with(name, PADDING))
        name = span_of(name.data + sizeof(PADDING) - 1, name.size - (sizeof(PADDING) - 1));
    if (module.size > 2)
        module = span_of(module.data + 1, module.size - 2);
    if (reading->count == SYMBOLS_MAX)
        return;
    vec_reserve(reading->symbols, reading->capacity, reading->count + 1);
    reading->symbols[reading->count++] =
        (struct symbol){.start = start, .text = (uint32_t)reading->text.size};
    buf_append_span(&reading->text, name);
    buf_append_byte(&reading->text, 0);
    buf_append_span(&reading->text, module);
    buf_append_byte(&reading->text, 0);
    if (buf_failed(&reading->text))
        reading->count--;
}

static size_t text_bytes(const uint8_t *text)
{
    const size_t name = strlen((const char *)text) + 1;
    return name + strlen((const char *)text + name) + 1;
}

static uint8_t *put_delta(uint8_t *to, uint64_t delta)
{
    for (; delta > 0x7f; delta >>= 7)
        *to++ = (uint8_t)(delta | 0x80);
    *to++ = (uint8_t)delta;
    return to;
}

/* Whether symbol has the same start as before, or is the function of the padding before. */
static bool is_duplicate(const struct reading *reading, const struct symbol *before,
                         const struct symbol *symbol)
{
    const char *text = (const char *)reading->text.data;
    return symbol->start == before->start ||
           (symbol->start - before->start <= PADDING_MAX_BYTES &&
            strcmp(text + symbol->text, text + before->text) == 0);
}

/* Keeps the first name in the file if there are several of one start. */
static void drop_aliases(struct reading *reading)
{
    uint32_t kept = 0;
    qsort(reading->symbols, reading->count, sizeof(*reading->symbols), compare_symbols);
    for (uint32_t i = 0; i < reading->count; i++) {
        if (kept == 0 || !is_duplicate(reading, &reading->symbols[kept - 1], &reading->symbols[i]))
            reading->symbols[kept++] = reading->symbols[i];
    }
    reading->count = kept;
}

/* Replaces the known symbols by those that were read. */
static void pack_symbols(struct kernel_symbols *symbols, struct reading *reading)
{
    clear_symbols(symbols);
    if (!reading->count)
        return;
    drop_aliases(reading);
    const uint32_t count = reading->count;
    symbols->block_count = (count + BLOCK_SYMBOLS - 1) / BLOCK_SYMBOLS;
    symbols->blocks = mem_new(struct block, symbols->block_count);
    symbols->packed = mem_new(uint8_t, reading->text.size + (size_t)count * DELTA_MAX_BYTES);
    uint8_t *to = symbols->packed;
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol *symbol = &reading->symbols[i];
        const uint8_t *text = reading->text.data + symbol->text;
        const size_t bytes = text_bytes(text);
        if (i % BLOCK_SYMBOLS == 0)
            symbols->blocks[i / BLOCK_SYMBOLS] =
                (struct block){symbol->start, (uint64_t)(to - symbols->packed)};
        to = put_delta(to, i % BLOCK_SYMBOLS ? symbol->start - reading->symbols[i - 1].start : 0);
        memcpy(to, text, bytes);
        to += bytes;
    }
    symbols->packed = mem_resize(symbols->packed, (size_t)(to - symbols->packed), 1);
    symbols->count = count;
    symbols->last = reading->symbols[count - 1].start;
}

void kernel_symbols_read(struct kernel_symbols *symbols, struct span text)
{
    struct reading reading;
    struct span line;
    reading_init(&reading);
    while (span_take_line(&text, &line))
        add_line(&reading, line);
    pack_symbols(symbols, &reading);
    reading_fini(&reading);
}

/* Adds the complete lines of piece. Moves an incomplete last line to the start of piece and returns
 * its size. */
static size_t add_whole_lines(struct reading *reading, char *piece, size_t size)
{
    const char *end = memrchr(piece, '\n', size);
    struct span line, whole = span_of(piece, end ? (size_t)(end - piece) + 1 : 0);
    const size_t left = size - whole.size;
    while (span_take_line(&whole, &line))
        add_line(reading, line);
    memmove(piece, piece + (size - left), left);
    return left;
}

/* Reads the file piece by piece, because it is twice as large as the symbols that are kept. */
static bool read_file(struct reading *reading)
{
    fd_auto fd = os_openat(AT_FDCWD, "/proc/kallsyms", O_RDONLY, 0);
    char *piece = mem_new(char, PIECE_BYTES);
    size_t size = 0;
    ssize_t got = -1;
    while (fd >= 0 && size < PIECE_BYTES) {
        got = read(fd, piece + size, PIECE_BYTES - size);
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        size = add_whole_lines(reading, piece, size + (got > 0 ? (size_t)got : 0));
    }
    mem_free(piece);
    return got == 0;
}

static void read_again(struct kernel_symbols *symbols)
{
    struct reading reading;
    reading_init(&reading);
    if (read_file(&reading))
        pack_symbols(symbols, &reading);
    reading_fini(&reading);
    mem_trim();
}

/* ---- looking up ---- */

/* The last block that starts at or before address; NULL: none. */
static const struct block *find_block(const struct kernel_symbols *symbols, uint64_t address)
{
    uint32_t low = 0, high = symbols->block_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (symbols->blocks[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &symbols->blocks[low - 1] : NULL;
}

static uint64_t take_delta(const uint8_t **location)
{
    uint64_t delta = 0;
    for (uint32_t shift = 0;; shift += 7) {
        const uint8_t byte = *(*location)++;
        delta |= (uint64_t)(byte & 0x7f) << shift;
        if (byte <= 0x7f)
            return delta;
    }
}

static bool look_up(const struct kernel_symbols *symbols, uint64_t address,
                    struct kernel_symbol *ret_symbol)
{
    const struct block *block = find_block(symbols, address);
    if (!block)
        return false;
    const uint32_t first = (uint32_t)(block - symbols->blocks) * BLOCK_SYMBOLS;
    const uint8_t *at = symbols->packed + block->offset, *found = NULL;
    uint64_t start = block->start, found_start = 0;
    for (uint32_t i = first; i < symbols->count && i < first + BLOCK_SYMBOLS; i++) {
        start += take_delta(&at);
        if (start > address)
            break;
        found = at;
        found_start = start;
        at += text_bytes(at);
    }
    if (address - found_start > FUNCTION_MAX_BYTES)
        return false;
    ret_symbol->start = found_start;
    ret_symbol->name = span_text((const char *)found);
    ret_symbol->module = span_text((const char *)found + ret_symbol->name.size + 1);
    return true;
}

bool kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address, int64_t now_ns,
                         struct kernel_symbol *ret_symbol)
{
    bool is_found = look_up(symbols, address, ret_symbol);
    if ((!is_found || ret_symbol->start == symbols->last) &&
        now_ns - symbols->read_ns >= READ_PAUSE_NS) {
        symbols->read_ns = now_ns;
        read_again(symbols);
        is_found = look_up(symbols, address, ret_symbol);
    }
    return is_found;
}

uint32_t kernel_symbols_count(const struct kernel_symbols *symbols)
{
    return symbols->count;
}
