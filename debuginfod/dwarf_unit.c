#include "debuginfod/dwarf_abbrev.h"
#include "debuginfod/dwarf_file.h"
#include "debuginfod/dwarf_names.h"
#include "lib/base/vec.h"

/* Many units share a table; a broken one is stored as NULL and not read again. */
static const struct dwarf_abbrevs *find_abbrevs(struct dwarf_file *file, uint64_t offset)
{
    uint32_t index = map_u64_find(&file->abbrevs_by_offset, offset);
    if (index != MAP_ABSENT)
        return file->abbrevs[index];
    vec_reserve(file->abbrevs, file->abbrevs_capacity, file->abbrevs_count + 1);
    struct dwarf_abbrevs *table = dwarf_abbrevs_read(file->sections[DWARF_ABBREV], offset,
                                                     DWARF_MAX_ATTRIBUTES - file->attribute_count);
    if (table)
        file->attribute_count += table->attribute_count;
    map_u64_add(&file->abbrevs_by_offset, offset, file->abbrevs_count);
    file->abbrevs[file->abbrevs_count++] = table;
    return table;
}

/* Attributes of the first entry that can be interpreted only after all of them were read. */
struct root {
    struct dwarf_value directory;
    struct dwarf_value low_address;
    struct dwarf_value split_name;
};

static bool is_c_family(uint64_t language)
{
    switch (language) {
    case DW_LANG_C89:
    case DW_LANG_C:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_C17:
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case DW_LANG_C_plus_plus_17:
    case DW_LANG_C_plus_plus_20:
        return true;
    default:
        return false;
    }
}

static void take_root_attribute(struct dwarf_unit *unit, struct root *root, uint16_t name,
                                const struct dwarf_value *value)
{
    switch (name) {
    case DW_AT_comp_dir:
        root->directory = *value;
        break;
    case DW_AT_low_pc:
        root->low_address = *value;
        break;
    case DW_AT_dwo_name:
    case DW_AT_GNU_dwo_name:
        root->split_name = *value;
        break;
    case DW_AT_language:
        unit->has_code_in_types = !is_c_family(value->number);
        break;
    case DW_AT_stmt_list:
        unit->line_offset = value->number;
        break;
    case DW_AT_str_offsets_base:
        unit->str_offsets_base = value->number;
        break;
    case DW_AT_addr_base:
    case DW_AT_GNU_addr_base:
        unit->addr_base = value->number;
        break;
    case DW_AT_rnglists_base:
        unit->rnglists_base = value->number;
        break;
    case DW_AT_GNU_ranges_base:
        unit->gnu_ranges_base = value->number;
        break;
    case DW_AT_GNU_dwo_id:
        unit->split_id = value->number;
        break;
    default:
        break;
    }
}

/* In a .dwo of version 5 the tables have no base attribute: they begin after their header. */
static void set_split_bases(struct dwarf_unit *unit)
{
    unit->str_offsets_base = unit->piece_str_offsets;
    unit->rnglists_base = unit->piece_rnglists;
    if (!unit->file->is_split || unit->version < 5)
        return;
    unit->str_offsets_base += unit->offset_bytes == 8 ? 16 : 8;
    unit->rnglists_base += unit->offset_bytes == 8 ? 20 : 12;
}

static bool read_root(struct dwarf_unit *unit)
{
    struct cursor cursor = cursor_at(
        span_of(unit->file->sections[DWARF_INFO].data, (size_t)unit->end), unit->first_die);
    const struct dwarf_abbrev *abbrev = dwarf_abbrev_find(unit->abbrevs, cursor_uleb(&cursor));
    if (cursor.has_failed || !abbrev)
        return false;
    set_split_bases(unit);
    unit->has_code_in_types = true;
    struct root root = {0};
    for (uint32_t i = 0; i < abbrev->attribute_count; i++) {
        const struct dwarf_attribute *attribute =
            &unit->abbrevs->attributes[abbrev->first_attribute + i];
        struct dwarf_value value;
        if (!dwarf_value_read(unit, attribute, &cursor, &value))
            return false;
        take_root_attribute(unit, &root, attribute->name, &value);
    }
    unit->directory = dwarf_value_text(unit, &root.directory);
    unit->split_name = dwarf_value_text(unit, &root.split_name);
    dwarf_value_address(unit, &root.low_address, &unit->low_address);
    return true;
}

bool dwarf_unit_open(struct dwarf_unit *unit)
{
    if (unit->is_open || unit->is_broken)
        return !unit->is_broken;
    unit->abbrevs = find_abbrevs(unit->file, unit->abbrev_offset);
    unit->is_broken = !unit->abbrevs || !read_root(unit);
    unit->is_open = true;
    return !unit->is_broken;
}

/* The first unit that ends after offset, or NULL. */
static struct dwarf_unit *find_unit(struct dwarf_file *file, uint64_t offset)
{
    uint32_t low = 0, high = file->unit_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (file->units[middle].end <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < file->unit_count ? &file->units[low] : NULL;
}

struct dwarf_unit *dwarf_file_unit_at(struct dwarf_file *file, uint64_t offset)
{
    struct dwarf_unit *unit = find_unit(file, offset);
    return unit && offset >= unit->first_die ? unit : NULL;
}

struct dwarf_unit *dwarf_file_unit_from(struct dwarf_file *file, uint64_t offset)
{
    struct dwarf_unit *unit = find_unit(file, offset);
    return unit && offset == unit->offset ? unit : NULL;
}
