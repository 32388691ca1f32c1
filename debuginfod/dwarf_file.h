/*
 * dwarf_file: the DWARF sections of one file, its units and abbreviations, and how values are read.
 *
 * Reads DWARF 2 to 5 in both offset sizes, of executables, of separate debug files, of `.dwo` and
 * `.dwp` and of dwz's shared file. A unit that contradicts itself is skipped by its reader and
 * counted; nothing here is recursive, and no offset is followed before it was checked. DWARF 5:
 * https://dwarfstd.org/doc/DWARF5.pdf, the GNU forms: https://gcc.gnu.org/wiki/DebugFission and
 * https://sourceware.org/elfutils/DwarfExtensions. Threads: an object belongs to one thread.
 */
#ifndef DEBUGINFOD_DWARF_FILE_H
#define DEBUGINFOD_DWARF_FILE_H

#include "debuginfod/cursor.h"
#include "lib/base/err.h"
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
    bool is_fixed; /* all its values have sizes that are known; they are the sum of these */
    uint16_t fixed_bytes;
    uint16_t address_count;
    uint16_t offset_count;
    uint32_t first_attribute;
    uint32_t attribute_count;
};

struct dwarf_abbrevs {
    struct dwarf_abbrev *abbrevs; /* by code; number i has code i + 1 where is_dense */
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
    struct dwarf_unit *skeleton;         /* of a split unit: who has its addresses and lines */
    struct dwarf_lines *lines;           /* NULL until they are asked for */
    uint64_t offset;                     /* of its header in .debug_info */
    uint64_t first_die;
    uint64_t end;
    uint64_t abbrev_offset;
    uint64_t split_id; /* 0: none */
    uint64_t low_address;
    uint64_t line_offset;      /* DWARF_NO_OFFSET: it has no lines */
    uint64_t str_offsets_base; /* bases as their forms need them, headers skipped */
    uint64_t addr_base;
    uint64_t rnglists_base;
    uint64_t gnu_ranges_base;
    uint64_t piece_str_offsets; /* in a package, where its own piece of the section begins */
    uint64_t piece_rnglists;
    struct span directory;
    struct span split_name; /* of the file that holds its content; empty: here */
    uint16_t version;
    uint8_t type; /* enum dwarf_unit_type */
    uint8_t address_bytes;
    uint8_t offset_bytes;
    bool is_open;
    bool is_broken;
    bool is_placed;         /* the index of its package has it */
    bool has_code_in_types; /* also of types outside of functions: not so in C and C++ */
};

struct dwarf_file {
    struct arena *arena;
    struct span sections[DWARF_SECTION_COUNT];
    bool is_split;                /* of a .dwo or .dwp: sections whose names end so */
    bool has_broken_index;        /* of a .dwp: units that it does not reach are broken */
    struct dwarf_file *alternate; /* dwz's shared file, or NULL */
    struct dwarf_unit *units;     /* by offset */
    uint32_t unit_count;
    uint32_t lost_units; /* a header that is broken hides those behind it */
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
    DWARF_VALUE_NUMBER,        /* also flags and addresses */
    DWARF_VALUE_ADDRESS,       /* number is one */
    DWARF_VALUE_ADDRESS_INDEX, /* into .debug_addr */
    DWARF_VALUE_TEXT,
    DWARF_VALUE_TEXT_OFFSET,      /* into .debug_str */
    DWARF_VALUE_LINE_TEXT_OFFSET, /* into .debug_line_str */
    DWARF_VALUE_ALT_TEXT_OFFSET,  /* into .debug_str of the alternate */
    DWARF_VALUE_TEXT_INDEX,       /* into .debug_str_offsets */
    DWARF_VALUE_REFERENCE,        /* offset in .debug_info */
    DWARF_VALUE_ALT_REFERENCE,    /* the same of the alternate */
    DWARF_VALUE_OFFSET,           /* into another section */
    DWARF_VALUE_LIST_INDEX,       /* into the table of .debug_rnglists */
    DWARF_VALUE_OTHER             /* blocks, signatures: of no use here */
};

struct dwarf_value {
    enum dwarf_kind kind;
    uint64_t number;
    struct span text;
};

/* Reads the sections and the headers of all units. Handles: those of elf_input_read. */
enum err_code dwarf_file_open(struct arena *arena, struct elf_input *elf, bool is_split,
                              struct dwarf_file **ret_file, struct err *err) MUST_USE;
void dwarf_file_close(struct dwarf_file *file); /* NULL is a no-op */

/* Reads abbreviations and the first entry. False: the unit is broken, and marked so. */
bool dwarf_unit_open(struct dwarf_unit *unit);
/* The unit whose entries have this offset, or NULL. */
struct dwarf_unit *dwarf_file_unit_at(struct dwarf_file *file, uint64_t offset);
/* The unit whose header is there, or NULL. */
struct dwarf_unit *dwarf_file_unit_from(struct dwarf_file *file, uint64_t offset);

/* NULL: there is no such code. */
const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrevs *abbrevs, uint64_t code);
/* Its attributes; NULL when it has none. */
static inline const struct dwarf_attribute *dwarf_attributes(const struct dwarf_unit *unit,
                                                             const struct dwarf_abbrev *abbrev)
{
    return abbrev->attribute_count ? &unit->abbrevs->attributes[abbrev->first_attribute] : NULL;
}
/* Moves the cursor over one value. False, and the cursor failed: cut short or of an unknown form.
 */
bool dwarf_value_read(const struct dwarf_unit *unit, const struct dwarf_attribute *attribute,
                      struct cursor *cursor, struct dwarf_value *ret_value);
/* Moves the cursor over all values of an entry. */
bool dwarf_entry_skip(const struct dwarf_unit *unit, const struct dwarf_abbrev *abbrev,
                      struct cursor *cursor);
/* Empty when it is none, or none that can be found. */
struct span dwarf_value_text(const struct dwarf_unit *unit, const struct dwarf_value *value);
/* False when it is no address, or none that can be found. */
bool dwarf_value_address(const struct dwarf_unit *unit, const struct dwarf_value *value,
                         uint64_t *ret_address);

#endif
