#include "debuginfod/dwarf_file.h"

#include "debuginfod/dwarf_abbrev.h"
#include "debuginfod/dwarf_line.h"
#include "debuginfod/dwarf_package.h"
#include "debuginfod/elf_input.h"
#include "lib/base/arena.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <stdio.h>

static const char *const section_names[DWARF_SECTION_COUNT] = {
    [DWARF_INFO] = ".debug_info",
    [DWARF_ABBREV] = ".debug_abbrev",
    [DWARF_LINE] = ".debug_line",
    [DWARF_STR] = ".debug_str",
    [DWARF_LINE_STR] = ".debug_line_str",
    [DWARF_RANGES] = ".debug_ranges",
    [DWARF_RNGLISTS] = ".debug_rnglists",
    [DWARF_ADDR] = ".debug_addr",
    [DWARF_STR_OFFSETS] = ".debug_str_offsets",
};

static enum err_code read_sections(struct dwarf_file *file, struct elf_input *elf, struct err *err)
{
    for (int i = 0; i < DWARF_SECTION_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s%s", section_names[i], file->is_split ? ".dwo" : "");
        enum err_code code = elf_input_read_name(elf, name, &file->sections[i], err);
        if (code)
            return code;
    }
    return ERR_NONE;
}

static bool has_split_id(const struct dwarf_unit *unit)
{
    return unit->type == DWARF_UNIT_SKELETON || unit->type == DWARF_UNIT_SPLIT_COMPILE;
}

static bool read_unit_header(struct dwarf_file *file, struct cursor *cursor,
                             struct dwarf_unit *unit)
{
    struct span info = file->sections[DWARF_INFO];
    *unit = (struct dwarf_unit){.file = file,
                                .offset = (uint64_t)(cursor->next - info.data),
                                .offset_bytes = 4,
                                .type = DWARF_UNIT_COMPILE,
                                .line_offset = DWARF_NO_OFFSET};
    uint64_t length = cursor_u32(cursor);
    if (length == UINT32_MAX) {
        unit->offset_bytes = 8;
        length = cursor_u64(cursor);
    }
    if (cursor->has_failed || length > cursor_left(cursor))
        return cursor_fail(cursor);
    unit->end = (uint64_t)(cursor->next - info.data) + length;
    struct cursor header = {.next = cursor->next, .end = cursor->next + length};
    cursor_skip(cursor, length);
    unit->version = cursor_u16(&header);
    if (unit->version >= 5) {
        unit->type = cursor_u8(&header);
        unit->address_bytes = cursor_u8(&header);
        unit->abbrev_offset = cursor_uint(&header, unit->offset_bytes);
        unit->split_id = has_split_id(unit) ? cursor_u64(&header) : 0;
    } else {
        unit->abbrev_offset = cursor_uint(&header, unit->offset_bytes);
        unit->address_bytes = cursor_u8(&header);
    }
    unit->first_die = (uint64_t)(header.next - info.data);
    unit->is_broken = header.has_failed || unit->version < 2 || unit->version > 5 ||
                      (unit->address_bytes != 4 && unit->address_bytes != 8);
    return true;
}

/* Units are contiguous; after a wrong length, the rest cannot be found. */
static void read_units(struct dwarf_file *file)
{
    struct cursor cursor = cursor_of(file->sections[DWARF_INFO]);
    uint32_t capacity = 0;
    while (cursor_left(&cursor) >= 11) {
        vec_reserve(file->units, capacity, file->unit_count + 1);
        if (file->unit_count == DWARF_MAX_UNITS ||
            !read_unit_header(file, &cursor, &file->units[file->unit_count])) {
            file->lost_units++;
            return;
        }
        file->unit_count++;
    }
}

static enum err_code place_units(struct dwarf_file *file, struct elf_input *elf, struct err *err)
{
    struct span index;
    enum err_code code = elf_input_read_name(elf, ".debug_cu_index", &index, err);
    if (!code && index.size)
        file->has_broken_index = !dwarf_package_apply(file, index);
    return code;
}

enum err_code dwarf_file_open(struct arena *arena, struct elf_input *elf, bool is_split,
                              struct dwarf_file **ret_file, struct err *err)
{
    struct dwarf_file *file = arena_new(arena, struct dwarf_file, 1);
    file->arena = arena;
    file->is_split = is_split;
    enum err_code code = read_sections(file, elf, err);
    if (code)
        return code;
    read_units(file);
    *ret_file = file;
    return is_split ? place_units(file, elf, err) : ERR_NONE;
}

void dwarf_file_close(struct dwarf_file *file)
{
    if (!file)
        return;
    for (uint32_t i = 0; i < file->abbrevs_count; i++)
        dwarf_abbrevs_destroy(file->abbrevs[i]);
    for (uint32_t i = 0; i < file->lines_count; i++)
        dwarf_lines_destroy(file->lines[i]);
    mem_free(file->abbrevs);
    mem_free(file->lines);
    mem_free(file->units);
    map_u64_fini(&file->abbrevs_by_offset);
    map_u64_fini(&file->lines_by_offset);
    map_u64_fini(&file->functions_by_offset);
}
