#include "agent/symbols/jitdump.h"

#include "agent/process/file_window.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/span_utf8.h"

#include <stdlib.h>

enum {
    MAGIC = 0x4A695444, /* in the byte order of the writer, which must be ours */
    VERSION = 1,
    HEADER_BYTES = 40,
    RECORD_BYTES = 16, /* the head of a record */
    LOAD_BYTES = 40,   /* the members of a record before its name or entries */
    MOVE_BYTES = 48,
    DEBUG_BYTES = 16,
    LINE_BYTES = 16,
    LINES_MAX_BYTES = 1 << 20, /* the part of a line record that is read */
    NAME_MAX_BYTES = 4096,
    TEXT_MAX_BYTES = 32 << 20,
    FUNCTIONS_MAX = 500000,
    LINES_MAX = 1000000,
    READ_MAX_BYTES = 64 << 20,
    READ_MAX_MS = 100,
    LOOK_BACK = 16,     /* functions before an address that are checked: they may overlap */
    CAPACITY_MIN = 256, /* first capacity of functions and lines, which then doubles */
    TEXT_MIN_BYTES = 64,
    CODES_MIN_BYTES = 1024,
};

/* Records of other kinds (unwind tables, end) contain no names. */
enum record { RECORD_LOAD, RECORD_MOVE, RECORD_DEBUG };

struct text {
    uint32_t offset;
    uint32_t bytes;
};

struct function {
    uint64_t start;
    uint64_t bytes;
    uint64_t index; /* the compiler's number of the function, by which it is moved */
    struct text name;
    uint32_t lines_order; /* the load record to which its lines belong */
    uint64_t lines_start; /* the address in that record */
};

struct line {
    uint64_t address;
    struct text file;
    uint32_t number;
    uint32_t order; /* index of the function to which it belongs: the one loaded next */
};

struct jitdump {
    uint64_t offset;    /* end of what was read in the file */
    uint64_t max_bytes; /* memory limit of the current read */
    bool is_broken;
    bool is_full;
    bool has_new;
    bool has_more; /* the last read ended at its limit of bytes or time */
    struct buf text;
    struct function *functions; /* in the order of the file */
    uint32_t count;
    uint32_t capacity;
    uint32_t *by_start;   /* indexes of functions, sorted by start, then index */
    struct map_u64 codes; /* from the compiler's number of a function to an index in newest */
    uint32_t *newest;     /* index of the last function with that number */
    struct line *lines;   /* by order, then address */
    uint32_t line_count;
    uint32_t line_capacity;
};

struct jitdump *jitdump_create(void)
{
    struct jitdump *dump = mem_new(struct jitdump, 1);
    buf_init(&dump->text, TEXT_MAX_BYTES);
    return dump;
}

void jitdump_destroy(struct jitdump *dump)
{
    if (!dump)
        return;
    buf_fini(&dump->text);
    map_u64_fini(&dump->codes);
    mem_free(dump->functions);
    mem_free(dump->by_start);
    mem_free(dump->newest);
    mem_free(dump->lines);
    mem_free(dump);
}

bool jitdump_is_path(struct span path)
{
    static const char before[] = "jit-", after[] = ".dump";
    size_t start = path.size;
    while (start && path.data[start - 1] != '/')
        start--;
    const struct span name = span_of(path.data + start, path.size - start);
    uint64_t number;
    return name.size > sizeof(before) + sizeof(after) - 2 && span_starts_with(name, before) &&
           span_ends_with(name, after) &&
           span_parse_u64(span_of(name.data + sizeof(before) - 1,
                                  name.size - (sizeof(before) + sizeof(after) - 2)),
                          &number);
}

/* ---- reading ---- */

static uint32_t u32_at(struct span bytes, size_t offset)
{
    uint32_t number;
    memcpy(&number, bytes.data + offset, sizeof(number));
    return number;
}

static uint64_t u64_at(struct span bytes, size_t offset)
{
    uint64_t number;
    memcpy(&number, bytes.data + offset, sizeof(number));
    return number;
}

/* The NUL-terminated text at the start of bytes; false: there is no NUL. */
static bool find_text(struct span bytes, struct span *ret_text)
{
    const size_t size = bytes.size < NAME_MAX_BYTES ? bytes.size : NAME_MAX_BYTES;
    const uint8_t *end = size ? memchr(bytes.data, 0, size) : NULL;
    if (!end)
        return false;
    *ret_text = span_of(bytes.data, (size_t)(end - bytes.data));
    return true;
}

/* Whether the text is printable UTF-8. Some compilers write file names from memory that they have
 * freed. */
static bool is_text(struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < 0x20 || text.data[i] == 0x7F)
            return false;
    }
    return text.size && span_is_utf8(text);
}

static struct span text_of(const struct jitdump *dump, struct text text)
{
    return text.bytes ? span_of(dump->text.data + text.offset, text.bytes) : (struct span){0};
}

/* Whether the memory limit allows more_bytes. Called before anything grows, because one record can
 * double an array. If the limit does not allow them, nothing is read any more. */
static bool has_space(struct jitdump *dump, uint64_t more_bytes)
{
    const uint64_t bytes = jitdump_bytes(dump);
    dump->is_full |= bytes > dump->max_bytes || more_bytes > dump->max_bytes - bytes;
    return !dump->is_full;
}

static struct text keep_text(struct jitdump *dump, struct span text)
{
    const struct text kept = {.offset = (uint32_t)dump->text.size, .bytes = (uint32_t)text.size};
    const size_t capacity = dump->text.capacity, left = capacity - dump->text.size;
    /* A buf grows by half, or by the size of the addition, and a little more. */
    if (!is_text(text) ||
        (text.size > left && !has_space(dump, capacity + 2 * text.size + TEXT_MIN_BYTES)))
        return (struct text){0};
    buf_append_span(&dump->text, text);
    dump->is_full |= buf_failed(&dump->text);
    return buf_failed(&dump->text) ? (struct text){0} : kept;
}

/* False: the memory limit does not allow it. lib/base/vec.h does not fit, because the size of the
 * growth must be known before, and three arrays share a capacity. */
static bool grow_functions(struct jitdump *dump)
{
    const uint32_t grown = dump->capacity ? 2 * dump->capacity : CAPACITY_MIN;
    const uint64_t bytes =
        sizeof(*dump->functions) + sizeof(*dump->by_start) + sizeof(*dump->newest);
    if (!has_space(dump, (grown - dump->capacity) * bytes))
        return false;
    dump->capacity = grown;
    dump->functions = mem_resize(dump->functions, grown, sizeof(*dump->functions));
    dump->by_start = mem_resize(dump->by_start, grown, sizeof(*dump->by_start));
    dump->newest = mem_resize(dump->newest, grown, sizeof(*dump->newest));
    return true;
}

/* Whether the memory limit allows one more number of a function. The map doubles when three
 * quarters of it are used. */
static bool has_space_for_code(struct jitdump *dump)
{
    const uint64_t bytes = (uint64_t)dump->codes.capacity * sizeof(*dump->codes.slots);
    return dump->codes.count < dump->codes.capacity / 4 * 3 ||
           has_space(dump, bytes + CODES_MIN_BYTES);
}

static void add_function(struct jitdump *dump, const struct function *function)
{
    if (function->start + function->bytes < function->start)
        return;
    if (dump->count == FUNCTIONS_MAX) {
        dump->is_full = true;
        return;
    }
    if ((dump->count == dump->capacity && !grow_functions(dump)) || !has_space_for_code(dump))
        return;
    dump->newest[map_u64_add(&dump->codes, function->index, dump->codes.count)] = dump->count;
    dump->functions[dump->count++] = *function;
    dump->has_new = true;
}

static void take_load(struct jitdump *dump, struct span body)
{
    struct span name;
    if (body.size < LOAD_BYTES ||
        !find_text(span_of(body.data + LOAD_BYTES, body.size - LOAD_BYTES), &name))
        return;
    add_function(dump, &(struct function){.start = u64_at(body, 16),
                                          .bytes = u64_at(body, 24),
                                          .index = u64_at(body, 32),
                                          .name = keep_text(dump, name),
                                          .lines_order = dump->count,
                                          .lines_start = u64_at(body, 16)});
}

static void take_move(struct jitdump *dump, struct span body)
{
    if (body.size < MOVE_BYTES)
        return;
    const uint32_t code = map_u64_find(&dump->codes, u64_at(body, 40));
    if (code == MAP_ABSENT)
        return;
    struct function moved = dump->functions[dump->newest[code]];
    if (moved.start != u64_at(body, 16))
        return;
    moved.start = u64_at(body, 24);
    moved.bytes = u64_at(body, 32);
    add_function(dump, &moved);
}

/* False: there is no space. */
static bool grow_lines(struct jitdump *dump)
{
    const uint32_t grown = dump->line_capacity ? 2 * dump->line_capacity : CAPACITY_MIN;
    if (!has_space(dump, (uint64_t)(grown - dump->line_capacity) * sizeof(*dump->lines)))
        return false;
    dump->line_capacity = grown;
    dump->lines = mem_resize(dump->lines, grown, sizeof(*dump->lines));
    return true;
}

static void add_line(struct jitdump *dump, const struct line *line)
{
    if (dump->line_count == LINES_MAX) {
        dump->is_full = true;
        return;
    }
    if (dump->line_count == dump->line_capacity && !grow_lines(dump))
        return;
    dump->lines[dump->line_count++] = *line;
    dump->has_new = true;
}

/* The bytes from offset to limit, at most `most`; empty: they cannot be read. */
static struct span piece_at(struct file_window *window, uint64_t offset, uint64_t limit,
                            size_t most)
{
    const size_t size = limit - offset < most ? (size_t)(limit - offset) : most;
    const uint8_t *data = file_window_get(window, offset, size);
    return data ? span_of(data, size) : (struct span){0};
}

/* Reads the lines of the function that is loaded next. A file name of one byte 0xFF stands for the
 * previous name. */
static void take_debug(struct jitdump *dump, struct file_window *window, uint64_t at,
                       uint64_t limit)
{
    const struct span head = piece_at(window, at, limit, DEBUG_BYTES);
    if (head.size < DEBUG_BYTES)
        return;
    const uint64_t count = u64_at(head, 8);
    struct text file = {0};
    struct span last = {0};
    at += DEBUG_BYTES;
    limit = limit - at < LINES_MAX_BYTES ? limit : at + LINES_MAX_BYTES;
    for (uint64_t i = 0; i < count && !dump->is_full; i++) {
        const struct span entry = piece_at(window, at, limit, LINE_BYTES + NAME_MAX_BYTES);
        struct span name;
        if (entry.size < LINE_BYTES ||
            !find_text(span_of(entry.data + LINE_BYTES, entry.size - LINE_BYTES), &name))
            return;
        at += LINE_BYTES + name.size + 1;
        if (!span_equal_text(name, "\xFF") && !span_equal(name, last)) {
            file = keep_text(dump, name);
            last = text_of(dump, file);
        }
        const uint32_t number = u32_at(entry, 8);
        add_line(dump, &(struct line){.address = u64_at(entry, 0),
                                      .file = file,
                                      .number = number <= INT32_MAX ? number : 0,
                                      .order = dump->count});
    }
}

/* Reads the rest of a record. The code of a function, which follows its name, is not read. */
static void take_record(struct jitdump *dump, struct file_window *window, uint32_t id, uint64_t at,
                        uint64_t limit)
{
    if (id == RECORD_LOAD)
        take_load(dump, piece_at(window, at, limit, LOAD_BYTES + NAME_MAX_BYTES));
    else if (id == RECORD_MOVE)
        take_move(dump, piece_at(window, at, limit, MOVE_BYTES));
    else if (id == RECORD_DEBUG)
        take_debug(dump, window, at, limit);
}

/* False: the file is no jitdump, or its header is not complete yet. */
static bool take_header(struct jitdump *dump, struct file_window *window)
{
    const uint8_t *data = file_window_get(window, 0, HEADER_BYTES);
    if (!data)
        return false;
    const struct span header = span_of(data, HEADER_BYTES);
    const uint32_t bytes = u32_at(header, 8);
    dump->is_broken =
        u32_at(header, 0) != MAGIC || u32_at(header, 4) != VERSION || bytes < HEADER_BYTES;
    dump->offset = bytes;
    return !dump->is_broken;
}

/* Reads the next record; false: there is no complete one. */
static bool take_next(struct jitdump *dump, struct file_window *window)
{
    const uint8_t *data = file_window_get(window, dump->offset, RECORD_BYTES);
    if (!data)
        return false;
    const struct span head = span_of(data, RECORD_BYTES);
    const uint32_t id = u32_at(head, 0), bytes = u32_at(head, 4);
    if (bytes < RECORD_BYTES) {
        dump->is_broken = true;
        return false;
    }
    if (bytes > window->limit - dump->offset)
        return false;
    take_record(dump, window, id, dump->offset + RECORD_BYTES, dump->offset + bytes);
    dump->offset += bytes;
    return true;
}

static int compare_functions(const void *a, const void *b, void *dump)
{
    const struct function *functions = ((const struct jitdump *)dump)->functions;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (functions[x].start != functions[y].start)
        return functions[x].start < functions[y].start ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int compare_lines(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void sort_entries(struct jitdump *dump)
{
    for (uint32_t i = 0; i < dump->count; i++)
        dump->by_start[i] = i;
    if (dump->count)
        qsort_r(dump->by_start, dump->count, sizeof(*dump->by_start), compare_functions, dump);
    if (dump->line_count)
        qsort(dump->lines, dump->line_count, sizeof(*dump->lines), compare_lines);
    dump->has_new = false;
}

uint64_t jitdump_bytes(const struct jitdump *dump)
{
    return dump->text.capacity + (uint64_t)dump->line_capacity * sizeof(*dump->lines) +
           (uint64_t)dump->capacity *
               (sizeof(*dump->functions) + sizeof(*dump->by_start) + sizeof(*dump->newest)) +
           (uint64_t)dump->codes.capacity * sizeof(*dump->codes.slots);
}

bool jitdump_read(struct jitdump *dump, int fd, uint64_t file_bytes, uint64_t max_bytes)
{
    struct file_window window;
    const int64_t end_ns = clock_monotonic_ns() + READ_MAX_MS * CLOCK_NS_PER_MS;
    dump->has_more = false;
    dump->max_bytes = max_bytes;
    if (dump->is_broken || dump->is_full || file_bytes <= dump->offset || !has_space(dump, 1))
        return !dump->is_full;
    file_window_init(&window, fd, file_bytes);
    if (dump->offset || take_header(dump, &window)) {
        while (!dump->is_full && !dump->has_more && take_next(dump, &window)) {
            dump->has_more = window.read_bytes >= READ_MAX_BYTES || clock_monotonic_ns() >= end_ns;
        }
    }
    file_window_fini(&window);
    if (dump->has_new)
        sort_entries(dump);
    return !dump->is_full;
}

bool jitdump_has_more(const struct jitdump *dump)
{
    return dump->has_more;
}

/* ---- looking up ---- */

static const struct function *find_function(const struct jitdump *dump, uint64_t address)
{
    uint32_t low = 0, high = dump->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (dump->functions[dump->by_start[middle]].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct function *best = NULL;
    for (uint32_t i = 0; i < LOOK_BACK && i < low; i++) {
        const struct function *function = &dump->functions[dump->by_start[low - 1 - i]];
        /* The later function in the file has replaced the earlier one. */
        if (address - function->start < function->bytes && (!best || function > best))
            best = function;
    }
    return best;
}

/* The last line at or before an address among those of one load record; NULL: none. */
static const struct line *find_line(const struct jitdump *dump, uint32_t order, uint64_t address)
{
    uint32_t low = 0, high = dump->line_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct line *line = &dump->lines[middle];
        if (line->order < order || (line->order == order && line->address <= address))
            low = middle + 1;
        else
            high = middle;
    }
    const struct line *line = low ? &dump->lines[low - 1] : NULL;
    return line && line->order == order ? line : NULL;
}

bool jitdump_find(const struct jitdump *dump, uint64_t address,
                  struct jitdump_location *ret_location)
{
    const struct function *function = find_function(dump, address);
    if (!function || !function->name.bytes)
        return false;
    *ret_location = (struct jitdump_location){.function = text_of(dump, function->name)};
    const struct line *line =
        find_line(dump, function->lines_order, address - function->start + function->lines_start);
    if (line && line->file.bytes) {
        ret_location->file = text_of(dump, line->file);
        ret_location->line = line->number;
    }
    return true;
}
