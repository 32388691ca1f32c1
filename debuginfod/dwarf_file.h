/*
 * dwarf_file: the DWARF sections of one file, its units and abbreviations, and the decoding of
 * values.
 *
 * Reads DWARF 2 to 5 in both offset sizes, from executables, separate debug files, `.dwo` and
 * `.dwp` files and dwz's shared file. A unit that is inconsistent is skipped and counted. No
 * function is recursive, and every offset is checked before it is used. DWARF 5:
 * https://dwarfstd.org/doc/DWARF5.pdf, the GNU forms: https://gcc.gnu.org/wiki/DebugFission and
 * https://sourceware.org/elfutils/DwarfExtensions. Threads: an object belongs to one thread.
 */
#ifndef DEBUGINFOD_DWARF_FILE_H
#define DEBUGINFOD_DWARF_FILE_H

#include "debuginfod/cursor.h"
#include "lib/base/err_code.h"
#include "lib/base/map.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct dwarf_lines;
struct elf_input;

enum {
    DWARF_MAX_UNITS = 1 << 18,
    DWARF_MAX_ATTRIBUTES = 1 << 24, /* of all abbreviations together */
};
#define DWARF_NO_OFFSET UINT64_MAX

enum dwarf_section {
    DWARF_INFO,
    DWARF_ABBREV,
    DWARF_LINE,
    DWARF_STR,
    DWARF_LINE_STR,
    DWARF_RANGES,
    DWARF_RNGLISTS,
    DWARF_ADDR,
    DWARF_STR_OFFSETS,
    DWARF_SECTION_COUNT
};

struct dwarf_attribute {
    uint16_t name;
    uint16_t form;
    int64_t implicit; /* the value of DW_FORM_implicit_const */
};

struct dwarf_abbrev {
    uint32_t code;
    uint16_t tag;
    bool has_children;
    /* The values of an entry have a known size: fixed_bytes, and address_count addresses and
     * offset_count offsets of the unit's sizes. Otherwise the three members have no meaning. */
    bool is_fixed;
    uint16_t fixed_bytes;
    uint16_t address_count;
    uint16_t offset_count;
    uint32_t first_attribute;
    uint32_t attribute_count;
};

struct dwarf_abbrevs {
    struct dwarf_abbrev *abbrevs; /* by code; if is_dense, number i has code i + 1 */
    struct dwarf_attribute *attributes;
    uint32_t count;
    uint32_t attribute_count;
    bool is_dense;
};

enum dwarf_unit_type {
    DWARF_UNIT_COMPILE = 1,
    DWARF_UNIT_TYPE = 2,
    DWARF_UNIT_PARTIAL = 3,
    DWARF_UNIT_SKELETON = 4,
    DWARF_UNIT_SPLIT_COMPILE = 5,
    DWARF_UNIT_SPLIT_TYPE = 6
};

struct dwarf_unit {
    struct dwarf_file *file;
    const struct dwarf_abbrevs *abbrevs; /* NULL until dwarf_unit_open */
    /* of a split unit: the unit that has its addresses and lines */
    struct dwarf_unit *skeleton;
    struct dwarf_lines *lines; /* NULL until first use */
    uint64_t offset;           /* of its header in .debug_info */
    uint64_t first_die;
    uint64_t end;
    uint64_t abbrev_offset;
    uint64_t split_id; /* 0: none */
    uint64_t low_address;
    uint64_t line_offset;      /* DWARF_NO_OFFSET: it has no lines */
    uint64_t str_offsets_base; /* bases after the headers, as the forms need them */
    uint64_t addr_base;
    uint64_t rnglists_base;
    uint64_t gnu_ranges_base;
    uint64_t piece_str_offsets; /* in a package: start of the unit's part of the section */
    uint64_t piece_rnglists;
    struct span directory;
    struct span split_name; /* of the file with its content; empty: this file */
    uint16_t version;
    uint8_t type; /* enum dwarf_unit_type */
    uint8_t address_bytes;
    uint8_t offset_bytes;
    bool is_open;
    bool is_broken;
    bool is_placed; /* the index of its package contains it */
    /* types outside of functions may contain code, too: not in C and C++ */
    bool has_code_in_types;
};

struct dwarf_file {
    struct arena *arena;
    struct span sections[DWARF_SECTION_COUNT];
    bool is_split;                /* a .dwo or .dwp file, whose section names end in .dwo */
    bool has_broken_index;        /* of a .dwp: units that it does not list are broken */
    struct dwarf_file *alternate; /* dwz's shared file, or NULL */
    struct dwarf_unit *units;     /* by offset */
    uint32_t unit_count;
    uint32_t lost_units; /* 1: units after a broken header or DWARF_MAX_UNITS are missing */
    struct map_u64 abbrevs_by_offset;
    struct dwarf_abbrevs **abbrevs;
    uint32_t abbrevs_count;
    uint32_t abbrevs_capacity;
    uint64_t attribute_count;
    struct map_u64 lines_by_offset;
    struct dwarf_lines **lines;
    uint32_t lines_count;
    uint32_t lines_capacity;
    struct map_u64 functions_by_offset; /* the writer's numbers of functions */
};

enum dwarf_kind {
    DWARF_VALUE_NONE,
    DWARF_VALUE_NUMBER,        /* a constant, a flag, or before DWARF 4 an offset */
    DWARF_VALUE_ADDRESS,       /* number is an address */
    DWARF_VALUE_ADDRESS_INDEX, /* index into .debug_addr */
    DWARF_VALUE_TEXT,
    DWARF_VALUE_TEXT_OFFSET,      /* into .debug_str */
    DWARF_VALUE_LINE_TEXT_OFFSET, /* into .debug_line_str */
    DWARF_VALUE_ALT_TEXT_OFFSET,  /* into .debug_str of the alternate file */
    DWARF_VALUE_TEXT_INDEX,       /* into .debug_str_offsets */
    DWARF_VALUE_REFERENCE,        /* offset in .debug_info */
    DWARF_VALUE_ALT_REFERENCE,    /* offset in .debug_info of the alternate file */
    DWARF_VALUE_OFFSET,           /* into another section */
    DWARF_VALUE_LIST_INDEX,       /* into the table of .debug_rnglists */
    DWARF_VALUE_OTHER             /* blocks, signatures: not used */
};

struct dwarf_value {
    enum dwarf_kind kind;
    uint64_t number;
    struct span text;
};

/* Reads the sections and the headers of all units. Errors: those of elf_input_read. */
enum err_code dwarf_file_open(struct arena *arena, struct elf_input *elf, bool is_split,
                              struct dwarf_file **ret_file, struct err *err) MUST_USE;
void dwarf_file_close(struct dwarf_file *file); /* NULL is a no-op */

/* ---- dwarf_unit.c ---- */

/* Reads the abbreviations and the first entry. Returns false, and marks the unit as broken, when
 * that fails. */
bool dwarf_unit_open(struct dwarf_unit *unit);
/* The unit whose entries contain the offset, or NULL. */
struct dwarf_unit *dwarf_file_unit_at(struct dwarf_file *file, uint64_t offset);
/* The unit whose header is at the offset, or NULL. */
struct dwarf_unit *dwarf_file_unit_from(struct dwarf_file *file, uint64_t offset);

/* ---- dwarf_abbrev.c, dwarf_value.c ---- */

/* NULL: there is no such code. */
const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrevs *abbrevs, uint64_t code);
/* The attributes of an abbreviation; NULL when it has none. */
static inline const struct dwarf_attribute *dwarf_attributes(const struct dwarf_unit *unit,
                                                             const struct dwarf_abbrev *abbrev)
{
    return abbrev->attribute_count ? &unit->abbrevs->attributes[abbrev->first_attribute] : NULL;
}
/* Reads one value and moves the cursor past it. Returns false, and the cursor has failed, when
 * the value is truncated or its form unknown. */
bool dwarf_value_read(const struct dwarf_unit *unit, const struct dwarf_attribute *attribute,
                      struct cursor *cursor, struct dwarf_value *ret_value);
/* Moves the cursor past all values of an entry. */
bool dwarf_entry_skip(const struct dwarf_unit *unit, const struct dwarf_abbrev *abbrev,
                      struct cursor *cursor);
/* The text of a value; empty when it is not a text or cannot be found. */
struct span dwarf_value_text(const struct dwarf_unit *unit, const struct dwarf_value *value);
/* Returns false when the value is not an address or cannot be found. */
bool dwarf_value_address(const struct dwarf_unit *unit, const struct dwarf_value *value,
                         uint64_t *ret_address);

#endif
