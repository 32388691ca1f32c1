#include "debuginfod/go_header.h"

#include "debuginfod/cursor.h"
#include "lib/base/err.h"

enum {
    MAGIC_1_2 = 0xfffffffb,
    MAGIC_1_16 = 0xfffffffa,
    MAGIC_1_18 = 0xfffffff0,
    MAGIC_1_20 = 0xfffffff1,
    PCDATA_INLINE_INDEX = 2,
    FUNCDATA_INLINE_TREE = 3,
    MAX_PCDATA = 64,
};

static bool take_version(uint32_t magic, enum go_version *ret_version)
{
    switch (magic) {
    case MAGIC_1_2:
        *ret_version = GO_1_2;
        return true;
    case MAGIC_1_16:
        *ret_version = GO_1_16;
        return true;
    case MAGIC_1_18:
        *ret_version = GO_1_18;
        return true;
    case MAGIC_1_20:
        *ret_version = GO_1_20;
        return true;
    default:
        return false;
    }
}

/* The rest of the table from offset on; empty if offset is past the end. */
static struct span part_from(struct span table, uint64_t offset)
{
    return offset <= table.size ? span_of(table.data + offset, table.size - offset)
                                : (struct span){NULL, 0};
}

/* Size of an entry in the list of functions: an address and an offset. */
static unsigned entry_bytes(const struct go_header *header)
{
    return header->version >= GO_1_18 ? 8 : 2U * header->word;
}

static void read_new_parts(struct go_header *header, struct cursor *cursor)
{
    cursor_uint(cursor, header->word); /* number of files */
    if (header->version >= GO_1_18)
        header->text_start = cursor_uint(cursor, header->word);
    header->names = part_from(header->table, cursor_uint(cursor, header->word));
    header->units = part_from(header->table, cursor_uint(cursor, header->word));
    header->files = part_from(header->table, cursor_uint(cursor, header->word));
    header->lines = part_from(header->table, cursor_uint(cursor, header->word));
    header->functions = part_from(header->table, cursor_uint(cursor, header->word));
}

/* Version 1.2: offsets are relative to the start of the table; the header has the offset of the
 * list of files. */
static void read_old_parts(struct go_header *header, struct cursor *cursor)
{
    header->names = header->lines = header->table;
    header->functions = part_from(header->table, 8U + header->word);
    cursor_skip(cursor, (uint64_t)header->function_count * entry_bytes(header) + header->word);
    header->files = part_from(header->table, cursor_u32(cursor));
    struct cursor files = cursor_of(header->files);
    header->file_count = cursor_u32(&files);
}

enum err_code go_header_read(struct span table, struct go_header *ret_header, struct err *err)
{
    struct go_header header = {.table = table};
    struct cursor cursor = cursor_of(table);
    uint32_t magic = cursor_u32(&cursor);
    cursor_skip(&cursor, 2);
    header.quantum = cursor_u8(&cursor);
    header.word = cursor_u8(&cursor);
    if (cursor.has_failed)
        return err_set(err, ERR_INVALID, "Go's table is cut short");
    if (!take_version(magic, &header.version))
        return err_set(err, ERR_UNSUPPORTED,
                       "Go's table has the magic number 0x%08x, which is unknown", magic);
    if ((header.word != 4 && header.word != 8) ||
        (header.quantum != 1 && header.quantum != 2 && header.quantum != 4))
        return err_set(err, ERR_INVALID, "Go's table contradicts itself");
    uint64_t count = cursor_uint(&cursor, header.word);
    if (count > GO_MAX_FUNCTIONS)
        return err_set(err, ERR_INVALID, "Go's table claims %llu functions",
                       (unsigned long long)count);
    header.function_count = (uint32_t)count;
    if (header.version == GO_1_2)
        read_old_parts(&header, &cursor);
    else
        read_new_parts(&header, &cursor);
    if (cursor.has_failed || count * entry_bytes(&header) > header.functions.size)
        return err_set(err, ERR_INVALID, "Go's table is cut short");
    *ret_header = header;
    return ERR_NONE;
}

/* Reads where the inline tree of a function is (FUNCDATA_INLINE_TREE): an offset or, before 1.18,
 * an aligned pointer. The cursor is at the function's pcdata, and offset is its place in the table.
 * False: the function has no tree. */
static bool read_funcdata(const struct go_header *header, struct cursor *cursor, uint64_t offset,
                          uint32_t pcdata_count, uint64_t *ret_value)
{
    cursor_skip(cursor, (uint64_t)pcdata_count * 4);
    if (header->version >= GO_1_18) {
        cursor_skip(cursor, FUNCDATA_INLINE_TREE * 4);
        *ret_value = cursor_u32(cursor);
        return *ret_value != UINT32_MAX;
    }
    uint64_t at = offset + (uint64_t)pcdata_count * 4;
    cursor_skip(cursor, -at & (header->word - 1U));
    cursor_skip(cursor, (uint64_t)FUNCDATA_INLINE_TREE * header->word);
    *ret_value = cursor_uint(cursor, header->word);
    return *ret_value != 0;
}

static void read_inline_tables(const struct go_header *header, struct cursor cursor,
                               uint64_t offset, uint32_t pcdata_count, uint32_t funcdata_count,
                               struct go_function *function)
{
    if (header->version == GO_1_2 || pcdata_count <= PCDATA_INLINE_INDEX ||
        pcdata_count > MAX_PCDATA || funcdata_count <= FUNCDATA_INLINE_TREE)
        return;
    struct cursor program = cursor;
    cursor_skip(&program, PCDATA_INLINE_INDEX * 4);
    function->inline_program = cursor_u32(&program);
    function->has_inline_tree =
        read_funcdata(header, &cursor, offset, pcdata_count, &function->inline_tree) &&
        !cursor.has_failed;
}

static bool read_function(const struct go_header *header, uint64_t offset,
                          struct go_function *function)
{
    /* Before 1.16 offsets are relative to the start of the table. */
    struct span base = header->version == GO_1_2 ? header->table : header->functions;
    struct cursor cursor = cursor_at(base, offset);
    cursor_skip(&cursor, header->version >= GO_1_18 ? 4 : header->word);
    int32_t name = (int32_t)cursor_u32(&cursor);
    cursor_skip(&cursor, 12); /* args, deferreturn, pcsp */
    function->file_program = cursor_u32(&cursor);
    function->line_program = cursor_u32(&cursor);
    uint32_t pcdata_count = cursor_u32(&cursor);
    if (header->version >= GO_1_16)
        function->first_file = cursor_u32(&cursor);
    if (header->version >= GO_1_20)
        function->start_line = cursor_u32(&cursor);
    cursor_skip(&cursor, 3); /* funcID, flag, padding */
    uint32_t funcdata_count = cursor_u8(&cursor);
    function->name = go_header_name(header, name);
    read_inline_tables(header, cursor, (uint64_t)(cursor.next - header->table.data), pcdata_count,
                       funcdata_count, function);
    return !cursor.has_failed && function->name.size;
}

bool go_header_function(const struct go_header *header, uint32_t number,
                        struct go_function *ret_function)
{
    unsigned size = entry_bytes(header), half = size / 2;
    struct cursor cursor = cursor_at(header->functions, (uint64_t)number * size);
    *ret_function = (struct go_function){.entry = cursor_uint(&cursor, half)};
    uint64_t offset = cursor_uint(&cursor, half);
    ret_function->end = cursor_uint(&cursor, half);
    return !cursor.has_failed && ret_function->entry < ret_function->end &&
           read_function(header, offset, ret_function);
}

struct span go_header_name(const struct go_header *header, int64_t offset)
{
    struct cursor cursor = cursor_at(header->names, offset < 0 ? UINT64_MAX : (uint64_t)offset);
    return cursor_text(&cursor);
}

struct span go_header_file(const struct go_header *header, const struct go_function *function,
                           int64_t number)
{
    if (number < 0 || number > UINT32_MAX)
        return (struct span){NULL, 0};
    struct cursor cursor;
    if (header->version == GO_1_2) {
        cursor = cursor_at(header->files,
                           number > header->file_count ? UINT64_MAX : (uint64_t)number * 4);
        cursor = cursor_at(header->table, cursor.has_failed ? UINT64_MAX : cursor_u32(&cursor));
        return number ? cursor_text(&cursor) : (struct span){NULL, 0};
    }
    cursor = cursor_at(header->units, ((uint64_t)function->first_file + (uint64_t)number) * 4);
    uint32_t offset = cursor.has_failed ? UINT32_MAX : cursor_u32(&cursor);
    cursor = cursor_at(header->files, offset == UINT32_MAX ? UINT64_MAX : offset);
    return cursor_text(&cursor);
}
