#include "debuginfod/dwarf_entry.h"

#include "debuginfod/dwarf_line.h"
#include "debuginfod/dwarf_names.h"
#include "lib/symbols/symbol_table_writer.h"

static uint32_t line_of(uint64_t number)
{
    return number > SYMBOL_LINE_MAX ? 0 : (uint32_t)number;
}

static void take_attribute(struct dwarf_entry *entry, uint16_t name,
                           const struct dwarf_value *value)
{
    switch (name) {
    case DW_AT_low_pc:
        entry->extent.low = *value;
        break;
    case DW_AT_high_pc:
        entry->extent.high = *value;
        break;
    case DW_AT_ranges:
        entry->extent.ranges = *value;
        break;
    case DW_AT_abstract_origin:
        entry->origin = *value;
        entry->has_abstract_origin = true;
        break;
    case DW_AT_specification:
        if (!entry->has_abstract_origin)
            entry->origin = *value;
        break;
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name:
        entry->linkage_name = *value;
        break;
    case DW_AT_name:
        entry->name = *value;
        break;
    case DW_AT_decl_file:
        entry->declaration_file = *value;
        break;
    case DW_AT_decl_line:
        entry->declaration_line = line_of(value->number);
        break;
    case DW_AT_call_file:
        entry->call_file = value->number;
        break;
    case DW_AT_call_line:
        entry->call_line = line_of(value->number);
        break;
    default:
        break;
    }
}

bool dwarf_entry_read(const struct dwarf_unit *unit, const struct dwarf_abbrev *abbrev,
                      struct cursor *cursor, struct dwarf_entry *ret_entry)
{
    const struct dwarf_attribute *attribute = dwarf_attributes(unit, abbrev);
    *ret_entry = (struct dwarf_entry){0};
    for (uint32_t i = 0; i < abbrev->attribute_count; i++) {
        struct dwarf_value value;
        if (!dwarf_value_read(unit, &attribute[i], cursor, &value))
            return false;
        take_attribute(ret_entry, attribute[i].name, &value);
    }
    return true;
}

/* Reads the entry at an offset in .debug_info of the unit's file. */
static bool read_entry_at(struct dwarf_unit *unit, uint64_t offset, struct dwarf_entry *ret_entry)
{
    if (!dwarf_unit_open(unit))
        return false;
    struct cursor cursor =
        cursor_at(span_of(unit->file->sections[DWARF_INFO].data, (size_t)unit->end), offset);
    const struct dwarf_abbrev *abbrev = dwarf_abbrev_find(unit->abbrevs, cursor_uleb(&cursor));
    return !cursor.has_failed && abbrev && dwarf_entry_read(unit, abbrev, &cursor, ret_entry);
}

/* The unit that a reference points into, or NULL. */
static struct dwarf_unit *referenced_unit(struct dwarf_unit *unit,
                                          const struct dwarf_value *reference)
{
    uint64_t offset = reference->number;
    if (reference->kind == DWARF_VALUE_REFERENCE)
        return offset >= unit->first_die && offset < unit->end
                   ? unit
                   : dwarf_file_unit_at(unit->file, offset);
    if (reference->kind == DWARF_VALUE_ALT_REFERENCE && unit->file->alternate)
        return dwarf_file_unit_at(unit->file->alternate, offset);
    return NULL;
}

/* The attributes of one function from the entries read so far. If several entries have an
 * attribute, the first value is used. */
struct function {
    struct span linkage_name;
    struct span name;
    uint32_t file;
    uint32_t line;
};

static void take_entry(struct function *function, struct dwarf_unit *unit,
                       const struct dwarf_entry *entry, struct symbol_table_writer *writer)
{
    if (!function->linkage_name.size)
        function->linkage_name = dwarf_value_text(unit, &entry->linkage_name);
    if (!function->name.size)
        function->name = dwarf_value_text(unit, &entry->name);
    if (!function->line && entry->declaration_line)
        function->line = entry->declaration_line;
    if (function->file == SYMBOL_NONE && entry->declaration_file.kind == DWARF_VALUE_NUMBER)
        function->file = dwarf_lines_file(unit, entry->declaration_file.number, writer);
}

/* A mangled name (C++, Rust) contains the name for display, so the table needs no name beside it.
 * In C the linkage name may be for the linker only (__GI_read). */
static bool is_mangled(struct span linkage_name)
{
    return span_starts_with(linkage_name, "_Z") || span_starts_with(linkage_name, "_R");
}

static uint32_t write_function(const struct function *function, struct symbol_table_writer *writer)
{
    struct span name = is_mangled(function->linkage_name) ? (struct span){NULL, 0} : function->name;
    return symbol_table_writer_function(
        writer, &(struct symbol_function){.linkage_name = function->linkage_name,
                                          .name = name,
                                          .file = function->file,
                                          .line = function->line});
}

static uint32_t function_of(struct dwarf_unit *unit, const struct dwarf_entry *first,
                            struct symbol_table_writer *writer)
{
    struct function function = {.file = SYMBOL_NONE};
    struct dwarf_entry entry = *first;
    for (int hop = 0; hop < DWARF_MAX_HOPS; hop++) {
        take_entry(&function, unit, &entry, writer);
        struct dwarf_value reference = entry.origin;
        unit = referenced_unit(unit, &reference);
        if (!unit || !read_entry_at(unit, reference.number, &entry))
            break;
    }
    return write_function(&function, writer);
}

/* Results are cached, because all inlined calls of a function refer to one origin. */
static uint32_t function_at(struct dwarf_unit *unit, uint64_t offset,
                            struct symbol_table_writer *writer)
{
    struct map_u64 *known = &unit->file->functions_by_offset;
    uint32_t function = map_u64_find(known, offset);
    if (function != MAP_ABSENT)
        return function;
    struct dwarf_entry entry;
    if (!read_entry_at(unit, offset, &entry))
        return SYMBOL_NONE;
    function = function_of(unit, &entry, writer);
    if (function != SYMBOL_NONE)
        map_u64_add(known, offset, function);
    return function;
}

uint32_t dwarf_entry_function(struct dwarf_unit *unit, const struct dwarf_entry *entry,
                              struct symbol_table_writer *writer)
{
    struct dwarf_unit *target =
        entry->has_abstract_origin ? referenced_unit(unit, &entry->origin) : NULL;
    uint32_t function = target ? function_at(target, entry->origin.number, writer) : SYMBOL_NONE;
    return function != SYMBOL_NONE ? function : function_of(unit, entry, writer);
}
