#include "agent/unwind/eh_frame.h"

#include "agent/process/file_window.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <elf.h>
#include <stdlib.h>

enum {
    SECTION_MAX = 256 << 20,
    CIE_MAX_BYTES = 1024,
    CIE_CACHE_BITS = 8,
    /* The most that is read, as a multiple of the section's size: an index may refer to one record
     * again and again. */
    WORK_FACTOR = 8,
    RECORD_MIN_BYTES = 16,   /* size of the smallest FDE; charged before one is read */
    FUNCTIONS_MAX = 2 << 20, /* functions that are sorted: 32 MB */
};

/* A CIE or FDE: a length, an identity (which CIE it refers to), and the body. */
struct record {
    bool is_cie;
    uint64_t offset; /* where the record begins in the section */
    uint64_t cie_offset;
    uint64_t bytes; /* size, including the length */
    struct cfi_cursor body;
    uint64_t body_offset;
};

struct cie {
    bool is_known; /* the slot is in use */
    bool is_sound;
    uint64_t offset;
    bool has_augmentation_data;
    struct cfi_common common;
};

struct function {
    uint64_t start;
    uint64_t offset; /* where its FDE begins in the section */
};

struct reader {
    const struct elf_frames *frames;
    const struct eh_frame_sink *sink;
    struct elf_extent section;
    bool is_debug;
    uint64_t work_left;
    uint64_t cost_bytes; /* cost of the windows that the budget has been charged for */
    struct file_window records;
    struct file_window cies; /* a second window, because an FDE refers to a CIE elsewhere */
    struct cie *cache;
    struct eh_frame_facts facts;
};

static void count_problem(struct reader *reader, enum eh_frame_problem problem)
{
    reader->facts.problems[problem]++;
}

static bool take_work(struct reader *reader, uint64_t bytes)
{
    const uint64_t cost_bytes = reader->records.cost_bytes + reader->cies.cost_bytes;
    const uint64_t cost = bytes + cost_bytes - reader->cost_bytes;
    reader->cost_bytes = cost_bytes;
    if (bytes > reader->work_left || !read_budget_take(reader->sink->budget, cost)) {
        reader->work_left = 0;
        return false;
    }
    reader->work_left -= bytes;
    return true;
}

/* Reads a record: its length and its body. */
static bool read_record(struct reader *reader, struct file_window *window, uint64_t offset,
                        struct record *ret)
{
    uint64_t base = reader->section.offset;
    if (offset >= reader->section.bytes)
        return false;
    const uint8_t *head = file_window_get(window, base + offset, 4);
    if (!head)
        return false;
    uint32_t length32;
    memcpy(&length32, head, 4);
    uint64_t length = length32, head_bytes = 4;
    if (length32 == UINT32_MAX) {
        head = file_window_get(window, base + offset, 12);
        if (!head)
            return false;
        memcpy(&length, head + 4, 8);
        head_bytes = 12;
    }
    uint64_t left = reader->section.bytes - offset;
    if (left < head_bytes || length > left - head_bytes)
        return false;
    const uint8_t *bytes = file_window_get(window, base + offset, head_bytes + length);
    if (!bytes)
        return false;
    ret->offset = offset;
    ret->bytes = head_bytes + length;
    ret->body_offset = offset + head_bytes;
    ret->body = (struct cfi_cursor){.at = bytes + head_bytes, .end = bytes + ret->bytes};
    return true;
}

/* Reads the identity: whether the record is a CIE, otherwise the offset of its CIE. */
static bool read_identity(struct reader *reader, struct record *record)
{
    bool is_wide = record->body_offset - record->offset == 12;
    uint64_t id = is_wide ? cfi_cursor_u64(&record->body) : cfi_cursor_u32(&record->body);
    if (record->body.has_failed)
        return false;
    if (reader->is_debug) {
        record->is_cie = id == (is_wide ? UINT64_MAX : UINT32_MAX);
        record->cie_offset = id;
    } else {
        record->is_cie = id == 0;
        record->cie_offset = record->body_offset - id;
    }
    record->body_offset += is_wide ? 8 : 4;
    return true;
}

/* Reads the data of a CIE's augmentation, which its letters describe. */
static bool read_augmentation(struct cie *cie, const char *letters, struct cfi_cursor *body)
{
    cie->has_augmentation_data = letters[0] == 'z';
    if (!cie->has_augmentation_data)
        return letters[0] == '\0';
    uint64_t bytes = cfi_cursor_uleb(body);
    const uint8_t *data = cfi_cursor_skip(body, bytes);
    if (!data)
        return false;
    struct cfi_cursor at = {.at = data, .end = data + bytes};
    for (const char *letter = letters + 1; *letter; letter++) {
        uint64_t ignored;
        switch (*letter) {
        case 'R':
            cie->common.pointer_encoding = cfi_cursor_u8(&at);
            break;
        case 'L':
            cfi_cursor_u8(&at);
            break;
        case 'P':
            if (!cfi_cursor_pointer(&at, cfi_cursor_u8(&at), &ignored))
                return false;
            break;
        case 'S':
            cie->common.is_signal = true;
            break;
        case 'B': /* arm64: return addresses are signed with key B */
        case 'G': /* arm64: the stack is tagged (MTE) */
            break;
        default:
            return false;
        }
    }
    return !at.has_failed;
}

static bool parse_cie(const struct reader *reader, struct cfi_cursor body, struct cie *cie)
{
    cfi_common_init(&cie->common, reader->frames->machine == EM_AARCH64);
    uint32_t return_register = cie->common.ra;
    uint8_t version = cfi_cursor_u8(&body);
    const char *letters = (const char *)body.at;
    const uint8_t *end = memchr(body.at, 0, cfi_cursor_left(&body));
    if (!end || (version != 1 && version != 3 && version != 4))
        return false;
    body.at = end + 1;
    if (version == 4 && (cfi_cursor_u8(&body) != 8 || cfi_cursor_u8(&body) != 0))
        return false; /* .debug_frame: size of addresses, size of segment selectors */
    cie->common.code_alignment = cfi_cursor_uleb(&body);
    cie->common.data_alignment = cfi_cursor_sleb(&body);
    uint64_t ra = version == 1 ? cfi_cursor_u8(&body) : cfi_cursor_uleb(&body);
    if (ra != return_register || !read_augmentation(cie, letters, &body) || body.has_failed)
        return false;
    return cfi_program_prepare(&cie->common, body);
}

/* The CIE at offset, from the cache or the file; borrowed until the next call. */
static const struct cie *find_cie(struct reader *reader, uint64_t offset)
{
    uint64_t hash = offset * 0x9e3779b97f4a7c15ULL >> (64 - CIE_CACHE_BITS);
    struct cie *cie = &reader->cache[hash];
    if (cie->is_known && cie->offset == offset)
        return cie;
    struct record record;
    *cie = (struct cie){.is_known = true, .offset = offset};
    if (!read_record(reader, &reader->cies, offset, &record) || !take_work(reader, record.bytes) ||
        !read_identity(reader, &record) || !record.is_cie || record.bytes > CIE_MAX_BYTES)
        return cie;
    cie->is_sound = parse_cie(reader, record.body, cie);
    return cie;
}

/* Reads the start and the size of a function; moves the record's body past them. */
static bool read_addresses(struct reader *reader, const struct cie *cie, struct record *record,
                           uint64_t *ret_start, uint64_t *ret_bytes)
{
    uint8_t encoding = cie->common.pointer_encoding;
    uint64_t field = reader->section.address + record->body_offset;
    const uint8_t *begin = record->body.at;
    if (!cfi_cursor_pointer(&record->body, encoding, ret_start) ||
        !cfi_cursor_pointer(&record->body, encoding, ret_bytes))
        return false;
    if ((encoding & 0xf0) == CFI_ENCODING_PC_RELATIVE)
        *ret_start += field;
    else if (encoding & 0xf0)
        return false;
    if (cie->has_augmentation_data)
        cfi_cursor_skip(&record->body, cfi_cursor_uleb(&record->body));
    record->body_offset += (uint64_t)(record->body.at - begin);
    return !record->body.has_failed;
}

static bool is_code(const struct elf_frames *frames, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < frames->code_count; i++) {
        const struct elf_extent *code = &frames->code[i];
        if (start >= code->address && end <= code->address + code->bytes)
            return true;
    }
    return false;
}

static void run_function(struct reader *reader, const struct cie *cie, const struct record *record,
                         uint64_t start, uint64_t end)
{
    const struct eh_frame_sink *sink = reader->sink;
    reader->facts.function_count++;
    sink->function(sink->context, start, end);
    uint64_t base = reader->section.address + record->body_offset;
    if (!cfi_program_run(&cie->common, record->body, base, start, end, sink->row, sink->context))
        count_problem(reader, EH_FRAME_BAD_INSTRUCTIONS);
}

/* Reads a function and runs its instructions, up to the start of the next function at most. False:
 * too much was read. */
static bool read_function(struct reader *reader, const struct function *function, uint64_t next)
{
    struct record record;
    if (!take_work(reader, RECORD_MIN_BYTES)) {
        count_problem(reader, EH_FRAME_TOO_MUCH);
        return false;
    }
    if (!read_record(reader, &reader->records, function->offset, &record) ||
        !read_identity(reader, &record) || record.is_cie) {
        count_problem(reader, EH_FRAME_BAD_RECORD);
        return true;
    }
    if (!take_work(reader, record.bytes)) {
        count_problem(reader, EH_FRAME_TOO_MUCH);
        return false;
    }
    const struct cie *cie = find_cie(reader, record.cie_offset);
    uint64_t start, bytes, end;
    if (!cie->is_sound) {
        count_problem(reader, EH_FRAME_BAD_CIE);
    } else if (!read_addresses(reader, cie, &record, &start, &bytes) || start != function->start) {
        count_problem(reader, EH_FRAME_BAD_POINTER);
    } else if (__builtin_add_overflow(start, bytes, &end) || !is_code(reader->frames, start, end)) {
        if (bytes) /* a linker leaves a removed function with 0 bytes */
            count_problem(reader, EH_FRAME_OUTSIDE_CODE);
    } else {
        end = end < next ? end : next;
        if (start < end)
            run_function(reader, cie, &record, start, end);
    }
    return true;
}

/* The table of .eh_frame_hdr: pairs of signed 32-bit numbers (function, FDE), relative to the start
 * of .eh_frame_hdr. */
struct index {
    struct file_window window;
    uint64_t address;
    uint64_t table; /* offset of the pairs in the file */
    uint32_t count;
};

static bool index_open(const struct reader *reader, struct index *ret)
{
    const struct elf_extent *header = &reader->frames->eh_frame_hdr;
    if (reader->is_debug || !header->bytes)
        return false;
    file_window_init(&ret->window, reader->frames->fd, header->offset + header->bytes);
    const uint8_t *begin = file_window_get(&ret->window, header->offset, 12);
    /* Version 1; a pointer and a count of 4 bytes; pairs relative to the header (datarel sdata4).
     */
    if (!begin || begin[0] != 1 || (begin[1] & 0x0f) != 0x0b || begin[2] != 0x03 ||
        begin[3] != 0x3b)
        return false;
    memcpy(&ret->count, begin + 8, 4);
    ret->address = header->address;
    ret->table = header->offset + 12;
    return ret->count && ret->count <= (header->bytes - 12) / 8 &&
           ret->count <= reader->section.bytes / RECORD_MIN_BYTES;
}

static bool index_get(struct index *index, const struct reader *reader, uint32_t number,
                      struct function *ret)
{
    int32_t pair[2];
    const uint8_t *bytes = file_window_get(&index->window, index->table + number * 8ULL, 8);
    if (!bytes)
        return false;
    memcpy(pair, bytes, sizeof pair);
    ret->start = index->address + (uint64_t)(int64_t)pair[0];
    ret->offset = index->address + (uint64_t)(int64_t)pair[1] - reader->section.address;
    return true;
}

static bool index_is_sorted(struct index *index, struct reader *reader)
{
    struct function before = {0}, function;
    for (uint32_t i = 0; i < index->count; i++) {
        if (!take_work(reader, sizeof(int32_t[2])) || !index_get(index, reader, i, &function) ||
            (i && function.start < before.start))
            return false;
        before = function;
    }
    return true;
}

static void read_by_index(struct reader *reader, struct index *index)
{
    struct function function, next = {0};
    if (!index_get(index, reader, 0, &function))
        return;
    for (uint32_t i = 0; i < index->count; i++) {
        if (i + 1 == index->count || !index_get(index, reader, i + 1, &next))
            next.start = UINT64_MAX;
        if (!read_function(reader, &function, next.start))
            return;
        function = next;
    }
}

static int compare_functions(const void *left, const void *right)
{
    const struct function *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

struct functions {
    struct function *list;
    size_t count;
    size_t capacity;
};

static void add_function(struct reader *reader, struct record *record, struct functions *functions)
{
    const struct cie *cie = find_cie(reader, record->cie_offset);
    uint64_t start, bytes;
    if (!cie->is_sound) {
        count_problem(reader, EH_FRAME_BAD_CIE);
        return;
    }
    if (!read_addresses(reader, cie, record, &start, &bytes)) {
        count_problem(reader, EH_FRAME_BAD_POINTER);
        return;
    }
    if (!bytes)
        return;
    if (functions->count == FUNCTIONS_MAX) {
        count_problem(reader, EH_FRAME_TOO_MUCH);
        return;
    }
    vec_reserve(functions->list, functions->capacity, functions->count + 1);
    functions->list[functions->count++] = (struct function){start, record->offset};
}

/* Collects all functions, in the order of the section. */
static void collect_functions(struct reader *reader, struct functions *functions)
{
    struct record record;
    for (uint64_t at = 0; at + 4 <= reader->section.bytes; at += record.bytes) {
        if (!read_record(reader, &reader->records, at, &record)) {
            count_problem(reader, EH_FRAME_BAD_RECORD);
            return;
        }
        if (!take_work(reader, record.bytes)) {
            count_problem(reader, EH_FRAME_TOO_MUCH);
            return;
        }
        if (record.bytes == 4) {
            if (reader->is_debug)
                continue;
            return; /* a length of 0 ends .eh_frame */
        }
        if (!read_identity(reader, &record)) {
            count_problem(reader, EH_FRAME_BAD_RECORD);
            continue;
        }
        if (!record.is_cie)
            add_function(reader, &record, functions);
    }
}

static void read_sorted(struct reader *reader)
{
    struct functions functions = {0};
    collect_functions(reader, &functions);
    if (functions.count)
        qsort(functions.list, functions.count, sizeof *functions.list, compare_functions);
    for (size_t i = 0; i < functions.count; i++) {
        uint64_t next = i + 1 < functions.count ? functions.list[i + 1].start : UINT64_MAX;
        if (!read_function(reader, &functions.list[i], next))
            break;
    }
    mem_free(functions.list);
}

static void read_section(struct reader *reader)
{
    struct index index = {0};
    uint64_t end = reader->section.offset + reader->section.bytes;
    reader->work_left = reader->section.bytes * WORK_FACTOR;
    file_window_init(&reader->records, reader->frames->fd, end);
    file_window_init(&reader->cies, reader->frames->fd, end);
    reader->cache = mem_new(struct cie, (size_t)1 << CIE_CACHE_BITS);
    if (index_open(reader, &index) && index_is_sorted(&index, reader)) {
        read_by_index(reader, &index);
    } else {
        if (!reader->is_debug)
            count_problem(reader, EH_FRAME_BAD_INDEX);
        read_sorted(reader);
    }
    file_window_fini(&index.window);
    file_window_fini(&reader->records);
    file_window_fini(&reader->cies);
    mem_free(reader->cache);
}

static enum err_code read_one(const struct elf_frames *frames, const struct eh_frame_sink *sink,
                              bool is_debug, struct eh_frame_facts *facts, struct err *err)
{
    struct reader reader = {
        .frames = frames,
        .sink = sink,
        .section = is_debug ? frames->debug_frame : frames->eh_frame,
        .is_debug = is_debug,
        .facts = {.is_debug_frame = is_debug},
    };
    if (reader.section.bytes > SECTION_MAX)
        return err_set(err, ERR_TOO_LARGE, "%s has more than %d MiB of call frame information",
                       frames->path, SECTION_MAX >> 20);
    reader.facts.section_bytes = reader.section.bytes;
    if (reader.section.bytes)
        read_section(&reader);
    *facts = reader.facts;
    return ERR_NONE;
}

enum err_code eh_frame_read(const struct elf_frames *frames, const struct eh_frame_sink *sink,
                            struct eh_frame_facts *ret_facts, struct err *err)
{
    struct eh_frame_facts facts;
    if (read_one(frames, sink, false, &facts, err))
        return err->code;
    if (!facts.function_count && frames->debug_frame.bytes &&
        read_one(frames, sink, true, &facts, err))
        return err->code;
    *ret_facts = facts;
    if (!facts.function_count)
        return err_set(err, ERR_NOT_FOUND, "%s has no call frame information", frames->path);
    return ERR_NONE;
}

const char *eh_frame_problem_name(enum eh_frame_problem problem)
{
    static const char *const names[EH_FRAME_PROBLEM_COUNT] = {
        [EH_FRAME_BAD_INDEX] = "bad-index",
        [EH_FRAME_BAD_RECORD] = "bad-record",
        [EH_FRAME_BAD_CIE] = "bad-cie",
        [EH_FRAME_BAD_POINTER] = "bad-pointer",
        [EH_FRAME_BAD_INSTRUCTIONS] = "bad-instructions",
        [EH_FRAME_OUTSIDE_CODE] = "outside-code",
        [EH_FRAME_TOO_MUCH] = "too-much",
    };
    return names[problem];
}
