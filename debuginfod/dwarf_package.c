#include "debuginfod/dwarf_package.h"

#include "debuginfod/cursor.h"

/* Numbers of sections; they are equal in both versions, except for RNGLISTS, which version 2
 * lacks. */
enum { PIECE_INFO = 1, PIECE_ABBREV = 3, PIECE_STR_OFFSETS = 6, PIECE_RNGLISTS = 8 };

enum { COLUMNS_MAX = 16, SLOT_BYTES = 8 + 4 };

struct package {
    struct dwarf_file *file;
    uint32_t version;
    uint32_t columns;
    uint32_t rows;
    uint32_t kinds[COLUMNS_MAX];
    struct span offsets; /* rows * columns numbers of 4 bytes */
};

/* Reads the header of the index. The table of sizes after the offsets is not needed: a unit
 * contains its size. */
static bool read_header(struct package *package, struct span index)
{
    struct cursor cursor = cursor_of(index);
    package->version = cursor_u16(&cursor);
    cursor_skip(&cursor, 2); /* the other half of version 2's number, padding in 5 */
    package->columns = cursor_u32(&cursor);
    package->rows = cursor_u32(&cursor);
    uint32_t slots = cursor_u32(&cursor);
    cursor_skip(&cursor, (uint64_t)slots * SLOT_BYTES);
    if (cursor.has_failed || (package->version != 2 && package->version != 5) ||
        !package->columns || package->columns > COLUMNS_MAX)
        return false;
    for (uint32_t i = 0; i < package->columns; i++)
        package->kinds[i] = cursor_u32(&cursor);
    package->offsets = cursor_bytes(&cursor, UINT64_C(4) * package->columns * package->rows);
    return !cursor.has_failed;
}

static void move_unit(const struct package *package, struct dwarf_unit *unit,
                      const uint32_t *offsets)
{
    for (uint32_t i = 0; i < package->columns; i++) {
        if (package->kinds[i] == PIECE_ABBREV)
            unit->abbrev_offset += offsets[i];
        else if (package->kinds[i] == PIECE_STR_OFFSETS)
            unit->piece_str_offsets = offsets[i];
        else if (package->kinds[i] == PIECE_RNGLISTS && package->version == 5)
            unit->piece_rnglists = offsets[i];
    }
    unit->is_placed = true;
}

static bool apply_row(const struct package *package, struct cursor *cursor)
{
    uint32_t offsets[COLUMNS_MAX];
    uint64_t info = DWARF_NO_OFFSET;
    for (uint32_t i = 0; i < package->columns; i++) {
        offsets[i] = cursor_u32(cursor);
        if (package->kinds[i] == PIECE_INFO)
            info = offsets[i];
    }
    struct dwarf_unit *unit = dwarf_file_unit_from(package->file, info);
    if (!unit || unit->is_placed)
        return false;
    move_unit(package, unit, offsets);
    return true;
}

bool dwarf_package_apply(struct dwarf_file *file, struct span index)
{
    struct package package = {.file = file};
    bool is_good = read_header(&package, index);
    struct cursor cursor = cursor_of(package.offsets);
    for (uint32_t i = 0; is_good && i < package.rows; i++)
        is_good = apply_row(&package, &cursor);
    for (uint32_t i = 0; i < file->unit_count; i++)
        file->units[i].is_broken |= !file->units[i].is_placed;
    return is_good;
}
