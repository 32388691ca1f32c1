#include "agent/unwind/go_frames.h"

#include "agent/unwind/cfi_cursor.h"

enum {
    MAGIC_1_16 = 0xfffffffa,
    MAGIC_1_18 = 0xfffffff0,
    MAGIC_1_20 = 0xfffffff1,
    HEADER_BYTES = 8,
    WORD_BYTES = 8,
    PROGRAM_MAX =
        4096, /* bytes read of a function's table; later addresses count as having a frame */
    FUNCTIONS_MAX = 1 << 20,
    /* The most that may be read, as a multiple of the table's size. Tables that functions share are
     * far apart, so most of a page that is read is unused: Go's own programs and those of
     * Kubernetes need 8 to 15 times the size. */
    WORK_FACTOR = 32,
    FUNCTION_BYTES = 64, /* approximate number of bytes read of each function */
    LIST_ENTRY_BYTES_1_16 = 16,
    LIST_ENTRY_BYTES = 8,
};

/* Half a second of work; a program of 128 MB with 139,000 functions needs a quarter of it. */
#define WORK_MAX_BYTES (UINT64_C(2) << 30)

static const struct cfi_rule leaf = {.rule = {.cfa = UNWIND_CFA_LEAF}};
static const struct cfi_rule none = {.rule = {.cfa = UNWIND_CFA_NONE}};

static uint64_t word_at(const uint8_t *bytes, unsigned number)
{
    uint64_t word;
    memcpy(&word, bytes + number * WORD_BYTES, sizeof word);
    return word;
}

static uint32_t half_at(const uint8_t *bytes, unsigned offset)
{
    uint32_t half;
    memcpy(&half, bytes + offset, sizeof half);
    return half;
}

/* Finds the start of the code. The header contains its address or 0. With 0 the code begins with
 * .text, provided that the program contains only Go code. */
static bool find_text(struct go_frames *go, uint64_t in_header)
{
    const struct elf_frames *frames = go->frames;
    if (!in_header && !frames->eh_frame.bytes)
        in_header = frames->text_address;
    go->text = in_header;
    return in_header != 0;
}

static bool read_header(struct go_frames *go, const struct elf_extent *table)
{
    const uint8_t *begin = file_window_get(&go->list, table->offset, HEADER_BYTES);
    if (!begin || begin[7] != WORD_BYTES || (begin[6] != 1 && begin[6] != 4))
        return false;
    const uint32_t magic = half_at(begin, 0);
    go->quantum = begin[6];
    go->has_short_addresses = magic != MAGIC_1_16;
    if (magic != MAGIC_1_16 && magic != MAGIC_1_18 && magic != MAGIC_1_20)
        return false;
    /* Words: number of functions, number of files, from 1.18 on the start of the code, then the
     * offsets of five parts. */
    const unsigned parts = go->has_short_addresses ? 3 : 2;
    const uint8_t *words =
        file_window_get(&go->list, table->offset + HEADER_BYTES, (parts + 5) * WORD_BYTES);
    if (!words)
        return false;
    const uint64_t count = word_at(words, 0), programs = word_at(words, parts + 3),
                   list = word_at(words, parts + 4);
    const bool has_text = !go->has_short_addresses || find_text(go, word_at(words, 2));
    const unsigned entry_bytes = go->has_short_addresses ? LIST_ENTRY_BYTES : LIST_ENTRY_BYTES_1_16;
    if (!has_text || count > FUNCTIONS_MAX || programs > table->bytes || list > table->bytes ||
        count > (table->bytes - list) / entry_bytes)
        return false;
    go->count = count;
    go->programs_offset = table->offset + programs;
    go->list_offset = table->offset + list;
    return true;
}

bool go_frames_open(const struct elf_frames *frames, struct go_frames *ret_go)
{
    const struct elf_extent *table = &frames->go_table;
    const bool is_small = table->bytes < WORK_MAX_BYTES / WORK_FACTOR;
    struct go_frames go = {.frames = frames,
                           .work_left = is_small ? table->bytes * WORK_FACTOR : WORK_MAX_BYTES};
    const uint64_t end = table->offset + table->bytes;
    file_window_init(&go.list, frames->fd, end);
    file_window_init(&go.functions, frames->fd, end);
    file_window_init(&go.programs, frames->fd, end);
    go.is_open = table->bytes && read_header(&go, table);
    *ret_go = go;
    return go.is_open;
}

void go_frames_close(struct go_frames *go)
{
    file_window_fini(&go->list);
    file_window_fini(&go->functions);
    file_window_fini(&go->programs);
}

/* Reads an entry of the list. The entry after the last one has the end of the last function. */
static bool read_entry(struct go_frames *go, uint64_t number, uint64_t *ret_start,
                       uint64_t *ret_offset)
{
    const unsigned bytes = go->has_short_addresses ? LIST_ENTRY_BYTES : LIST_ENTRY_BYTES_1_16;
    const bool is_end = number == go->count;
    const uint8_t *entry =
        file_window_get(&go->list, go->list_offset + number * bytes, is_end ? bytes / 2 : bytes);
    if (!entry)
        return false;
    *ret_start = go->has_short_addresses ? go->text + half_at(entry, 0) : word_at(entry, 0);
    if (!is_end)
        *ret_offset = go->has_short_addresses ? half_at(entry, 4) : word_at(entry, 1);
    return true;
}

/* Finds the table of stack sizes (pcsp) of a function; false: it has none, or it is out of bounds.
 */
static bool find_program(struct go_frames *go, uint64_t function_offset,
                         struct cfi_cursor *ret_cursor)
{
    /* The members before it: address, name, size of arguments, return of deferred calls. */
    const unsigned before = (go->has_short_addresses ? 4 : WORD_BYTES) + 12;
    const uint64_t limit = go->functions.limit;
    if (function_offset > limit)
        return false;
    const uint8_t *function =
        file_window_get(&go->functions, go->list_offset + function_offset, before + 4);
    if (!function)
        return false;
    const uint64_t offset = go->programs_offset + half_at(function, before);
    if (offset == go->programs_offset || offset >= limit)
        return false;
    const uint64_t left = limit - offset;
    const size_t size = left < PROGRAM_MAX ? (size_t)left : PROGRAM_MAX;
    const uint8_t *program = file_window_get(&go->programs, offset, size);
    if (program)
        *ret_cursor = (struct cfi_cursor){.at = program, .end = program + size};
    return program != NULL;
}

static void charge_work(struct go_frames *go, uint64_t bytes)
{
    go->work_left -= bytes < go->work_left ? bytes : go->work_left;
}

/* Counts the pages that were read, because each costs a system call, however little of it is used.
 */
static void charge_reads(struct go_frames *go)
{
    const uint64_t read_bytes =
        go->list.read_bytes + go->functions.read_bytes + go->programs.read_bytes;
    charge_work(go, read_bytes - go->read_bytes);
    go->read_bytes = read_bytes;
}

static bool take_budget(struct go_frames *go, struct read_budget *budget)
{
    const uint64_t cost_bytes =
        go->list.cost_bytes + go->functions.cost_bytes + go->programs.cost_bytes;
    const uint64_t cost = FUNCTION_BYTES + cost_bytes - go->cost_bytes;
    go->cost_bytes = cost_bytes;
    return read_budget_take(budget, cost);
}

/*
 * Adds a row for the start of the function, and for each address at which it gets or loses its
 * frame.
 *
 * The table is a list of pairs (change of the stack size, number of instructions) with zigzag
 * LEB128 numbers; the size begins at -1. Example: the bytes 2 4, 32 60, 31 1 mean a size of 0 for 4
 * instruction units, 16 for the next 60, and 0 for one more. A size of 0 is a leaf without frame.
 */
static void run_program(struct go_frames *go, struct cfi_cursor cursor, uint64_t start,
                        uint64_t end, const struct eh_frame_sink *sink)
{
    const uint8_t *begin = cursor.at;
    int64_t stack_bytes = -1;
    bool was_leaf = false;
    for (uint64_t at = start; at < end;) {
        const uint64_t change = cfi_cursor_uleb(&cursor);
        const uint64_t distance = cfi_cursor_uleb(&cursor) * go->quantum;
        const bool is_at_end = cursor.has_failed || (!change && at > start) || !distance;
        const uint64_t half = change >> 1;
        stack_bytes = (int64_t)((uint64_t)stack_bytes + (change & 1 ? ~half : half));
        const bool is_leaf = !is_at_end && stack_bytes == 0;
        if (at == start || is_leaf != was_leaf)
            sink->row(sink->context, at, is_leaf ? &leaf : &none);
        was_leaf = is_leaf;
        if (is_at_end || distance >= end - at)
            break;
        at += distance;
    }
    charge_work(go, (uint64_t)(cursor.at - begin));
}

static bool is_in_code(const struct elf_frames *frames, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < frames->code_count; i++) {
        const struct elf_extent *code = &frames->code[i];
        if (start >= code->address && end <= code->address + code->bytes)
            return true;
    }
    return false;
}

void go_frames_until(struct go_frames *go, uint64_t from, uint64_t limit,
                     const struct eh_frame_sink *sink)
{
    uint64_t start, offset, end, ignored;
    struct cfi_cursor program;
    if (!go->is_open)
        return;
    for (; go->next < go->count && go->work_left; go->next++) {
        charge_reads(go);
        if (!read_entry(go, go->next, &start, &offset)) {
            go->is_open = false;
            return;
        }
        if (start >= limit || !take_budget(go, sink->budget))
            return;
        if (start < from || !read_entry(go, go->next + 1, &end, &ignored) || end <= start ||
            end > limit || !is_in_code(go->frames, start, end) ||
            !find_program(go, offset, &program))
            continue;
        sink->function(sink->context, start, end);
        run_program(go, program, start, end, sink);
        from = end;
    }
}
