#include "debuginfod/dwarf_ranges.h"

#include "debuginfod/code_map.h"
#include "debuginfod/dwarf_names.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

static bool add_range(struct dwarf_range_list *list, const struct code_map *code, uint64_t begin,
                      uint64_t end)
{
    if (begin >= end || !code_map_clip(code, begin, &end))
        return true;
    if (list->count == DWARF_MAX_RANGES)
        return false;
    vec_reserve(list->ranges, list->capacity, list->count + 1);
    list->ranges[list->count++] = (struct dwarf_range){begin, end};
    return true;
}

/* The unit that has the addresses and, before version 5, the list: the skeleton of a split unit. */
static const struct dwarf_unit *address_unit(const struct dwarf_unit *unit)
{
    return unit->skeleton ? unit->skeleton : unit;
}

static bool read_old_list(const struct dwarf_unit *unit, uint64_t offset,
                          const struct code_map *code, struct dwarf_range_list *list)
{
    const struct dwarf_unit *owner = address_unit(unit);
    struct cursor cursor = cursor_at(owner->file->sections[DWARF_RANGES], offset);
    uint64_t base = owner->low_address;
    uint64_t mark = owner->address_bytes == 8 ? UINT64_MAX : UINT32_MAX;
    for (;;) {
        uint64_t begin = cursor_uint(&cursor, owner->address_bytes);
        uint64_t end = cursor_uint(&cursor, owner->address_bytes);
        if (cursor.has_failed)
            return false;
        if (!begin && !end)
            return true;
        if (begin == mark)
            base = end;
        else if (!add_range(list, code, base + begin, base + end))
            return false;
    }
}

static bool read_index(const struct dwarf_unit *unit, struct cursor *cursor, uint64_t *ret_address)
{
    const struct dwarf_value value = {.kind = DWARF_VALUE_ADDRESS_INDEX,
                                      .number = cursor_uleb(cursor)};
    return dwarf_value_address(unit, &value, ret_address);
}

/* Reads one entry; *ret_is_end is set at the end of the list. */
static bool read_new_entry(const struct dwarf_unit *unit, struct cursor *cursor, uint64_t *base,
                           struct dwarf_range *range, bool *ret_is_end)
{
    unsigned address_bytes = unit->address_bytes;
    *range = (struct dwarf_range){0, 0};
    switch (cursor_u8(cursor)) {
    case DW_RLE_end_of_list:
        *ret_is_end = true;
        return true;
    case DW_RLE_base_addressx:
        return read_index(unit, cursor, base);
    case DW_RLE_startx_endx:
        return read_index(unit, cursor, &range->begin) && read_index(unit, cursor, &range->end);
    case DW_RLE_startx_length:
        if (!read_index(unit, cursor, &range->begin))
            return false;
        range->end = range->begin + cursor_uleb(cursor);
        return true;
    case DW_RLE_offset_pair:
        range->begin = *base + cursor_uleb(cursor);
        range->end = *base + cursor_uleb(cursor);
        return true;
    case DW_RLE_base_address:
        *base = cursor_uint(cursor, address_bytes);
        return true;
    case DW_RLE_start_end:
        range->begin = cursor_uint(cursor, address_bytes);
        range->end = cursor_uint(cursor, address_bytes);
        return true;
    case DW_RLE_start_length:
        range->begin = cursor_uint(cursor, address_bytes);
        range->end = range->begin + cursor_uleb(cursor);
        return true;
    default:
        return false;
    }
}

static bool read_new_list(const struct dwarf_unit *unit, uint64_t offset,
                          const struct code_map *code, struct dwarf_range_list *list)
{
    struct cursor cursor = cursor_at(unit->file->sections[DWARF_RNGLISTS], offset);
    uint64_t base = address_unit(unit)->low_address;
    bool is_end = false;
    while (!is_end) {
        struct dwarf_range range;
        if (!read_new_entry(unit, &cursor, &base, &range, &is_end) || cursor.has_failed ||
            !add_range(list, code, range.begin, range.end))
            return false;
    }
    return true;
}

static bool read_list(const struct dwarf_unit *unit, const struct dwarf_value *value,
                      const struct code_map *code, struct dwarf_range_list *list)
{
    uint64_t offset = value->number;
    if (value->kind == DWARF_VALUE_LIST_INDEX) {
        struct cursor cursor = cursor_at(unit->file->sections[DWARF_RNGLISTS], unit->rnglists_base);
        if (offset > cursor_left(&cursor) || !cursor_skip(&cursor, offset * unit->offset_bytes))
            return false;
        offset = unit->rnglists_base + cursor_uint(&cursor, unit->offset_bytes);
        if (cursor.has_failed)
            return false;
    } else if (unit->version >= 5) {
        offset += unit->piece_rnglists;
    }
    if (unit->version >= 5)
        return read_new_list(unit, offset, code, list);
    /* Offsets in GNU split units are relative to the base in the skeleton. */
    if (unit->skeleton)
        offset += unit->skeleton->gnu_ranges_base;
    return read_old_list(unit, offset, code, list);
}

bool dwarf_ranges_read(const struct dwarf_unit *unit, const struct dwarf_extent *extent,
                       const struct code_map *code, struct dwarf_range_list *list)
{
    list->count = 0;
    if (extent->ranges.kind != DWARF_VALUE_NONE)
        return read_list(unit, &extent->ranges, code, list);
    uint64_t low, high;
    if (!dwarf_value_address(unit, &extent->low, &low))
        return true;
    if (extent->high.kind == DWARF_VALUE_NUMBER || extent->high.kind == DWARF_VALUE_OFFSET)
        high = low + extent->high.number;
    else if (!dwarf_value_address(unit, &extent->high, &high))
        return true;
    return add_range(list, code, low, high);
}

void dwarf_range_list_fini(struct dwarf_range_list *list)
{
    mem_free(list->ranges);
    *list = (struct dwarf_range_list){0};
}
