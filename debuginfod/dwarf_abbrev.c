#include "debuginfod/dwarf_abbrev.h"

#include "debuginfod/dwarf_file.h"
#include "debuginfod/dwarf_names.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <stdlib.h>

/* The most attributes of one entry. Each takes at most 16 bytes, so fixed_bytes does not overflow.
 */
enum { ATTRIBUTES_MAX = 1024 };

struct builder {
    struct dwarf_abbrevs *table;
    uint32_t capacity;
    uint32_t attribute_capacity;
};

/* Adds the size of the form; returns false when the size depends on the bytes. */
static bool add_fixed_size(struct dwarf_abbrev *abbrev, uint16_t form)
{
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
        return true;
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        abbrev->fixed_bytes += 1;
        return true;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        abbrev->fixed_bytes += 2;
        return true;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
        abbrev->fixed_bytes += 4;
        return true;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
        abbrev->fixed_bytes += 8;
        return true;
    case DW_FORM_data16:
        abbrev->fixed_bytes += 16;
        return true;
    case DW_FORM_addr:
        abbrev->address_count++;
        return true;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
        abbrev->offset_count++;
        return true;
    default:
        return false;
    }
}

static void add_attribute(struct builder *builder, struct dwarf_attribute attribute)
{
    struct dwarf_abbrevs *table = builder->table;
    vec_reserve(table->attributes, builder->attribute_capacity, table->attribute_count + 1);
    table->attributes[table->attribute_count++] = attribute;
}

static void add_abbrev(struct builder *builder, struct dwarf_abbrev abbrev)
{
    struct dwarf_abbrevs *table = builder->table;
    vec_reserve(table->abbrevs, builder->capacity, table->count + 1);
    table->is_dense = table->is_dense && abbrev.code == table->count + 1;
    table->abbrevs[table->count++] = abbrev;
}

static bool read_attributes(struct builder *builder, struct cursor *cursor,
                            struct dwarf_abbrev *abbrev)
{
    abbrev->first_attribute = builder->table->attribute_count;
    abbrev->is_fixed = true;
    for (;;) {
        uint64_t name = cursor_uleb(cursor), form = cursor_uleb(cursor);
        if (cursor->has_failed || form > UINT16_MAX)
            return false;
        if (!name && !form)
            return true;
        int64_t implicit = form == DW_FORM_implicit_const ? cursor_sleb(cursor) : 0;
        if (++abbrev->attribute_count > ATTRIBUTES_MAX)
            return false;
        abbrev->is_fixed = abbrev->is_fixed && add_fixed_size(abbrev, (uint16_t)form);
        add_attribute(builder, (struct dwarf_attribute){
                                   .name = name > UINT16_MAX ? 0 : (uint16_t)name,
                                   .form = (uint16_t)form,
                                   .implicit = implicit,
                               });
    }
}

static int compare_codes(const void *a, const void *b)
{
    const struct dwarf_abbrev *left = a, *right = b;
    return (left->code > right->code) - (left->code < right->code);
}

static bool read_table(struct builder *builder, struct cursor cursor, uint64_t attribute_limit)
{
    struct dwarf_abbrevs *table = builder->table;
    table->is_dense = true;
    for (;;) {
        uint64_t code = cursor_uleb(&cursor);
        if (cursor.has_failed || code > UINT32_MAX || table->attribute_count > attribute_limit ||
            table->count > attribute_limit)
            return false;
        if (!code)
            break;
        struct dwarf_abbrev abbrev = {.code = (uint32_t)code};
        uint64_t tag = cursor_uleb(&cursor);
        abbrev.tag = tag > UINT16_MAX ? 0 : (uint16_t)tag;
        abbrev.has_children = cursor_u8(&cursor);
        if (!read_attributes(builder, &cursor, &abbrev))
            return false;
        add_abbrev(builder, abbrev);
    }
    if (!table->is_dense)
        qsort(table->abbrevs, table->count, sizeof(struct dwarf_abbrev), compare_codes);
    return true;
}

void dwarf_abbrevs_destroy(struct dwarf_abbrevs *table)
{
    if (!table)
        return;
    mem_free(table->abbrevs);
    mem_free(table->attributes);
    mem_free(table);
}

struct dwarf_abbrevs *dwarf_abbrevs_read(struct span section, uint64_t offset,
                                         uint64_t attribute_limit)
{
    struct builder builder = {.table = mem_new(struct dwarf_abbrevs, 1)};
    if (read_table(&builder, cursor_at(section, offset), attribute_limit))
        return builder.table;
    dwarf_abbrevs_destroy(builder.table);
    return NULL;
}

const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrevs *abbrevs, uint64_t code)
{
    if (!code || code > UINT32_MAX)
        return NULL;
    if (abbrevs->is_dense)
        return code <= abbrevs->count ? &abbrevs->abbrevs[code - 1] : NULL;
    struct dwarf_abbrev key = {.code = (uint32_t)code};
    return bsearch(&key, abbrevs->abbrevs, abbrevs->count, sizeof(key), compare_codes);
}
