#include "debuginfod/dwarf_file.h"
#include "debuginfod/dwarf_names.h"

/* Constructs the value of a form with one number. */
static struct dwarf_value make_value(enum dwarf_kind kind, uint64_t number)
{
    return (struct dwarf_value){.kind = kind, .number = number};
}

static struct dwarf_value read_block(struct cursor *cursor, uint64_t size)
{
    cursor_skip(cursor, size);
    return make_value(DWARF_VALUE_OTHER, 0);
}

static struct dwarf_value read_reference(const struct dwarf_unit *unit, uint64_t offset)
{
    if (offset > unit->end - unit->offset)
        return make_value(DWARF_VALUE_OTHER, 0);
    return make_value(DWARF_VALUE_REFERENCE, unit->offset + offset);
}

static bool read_indirect(const struct dwarf_unit *unit, struct cursor *cursor,
                          struct dwarf_value *ret_value)
{
    uint64_t form = cursor_uleb(cursor);
    if (form == DW_FORM_indirect || form == DW_FORM_implicit_const || form > UINT16_MAX)
        return cursor_fail(cursor);
    const struct dwarf_attribute attribute = {.form = (uint16_t)form};
    return dwarf_value_read(unit, &attribute, cursor, ret_value);
}

/* Reads the forms of version 5, and the GNU extensions that preceded it. */
static bool read_new_form(const struct dwarf_unit *unit, const struct dwarf_attribute *attribute,
                          struct cursor *cursor, struct dwarf_value *value)
{
    switch (attribute->form) {
    case DW_FORM_strx:
    case DW_FORM_GNU_str_index:
        *value = make_value(DWARF_VALUE_TEXT_INDEX, cursor_uleb(cursor));
        break;
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
        *value = make_value(DWARF_VALUE_TEXT_INDEX,
                            cursor_uint(cursor, attribute->form - DW_FORM_strx1 + 1U));
        break;
    case DW_FORM_addrx:
    case DW_FORM_GNU_addr_index:
        *value = make_value(DWARF_VALUE_ADDRESS_INDEX, cursor_uleb(cursor));
        break;
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
        *value = make_value(DWARF_VALUE_ADDRESS_INDEX,
                            cursor_uint(cursor, attribute->form - DW_FORM_addrx1 + 1U));
        break;
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
        *value = make_value(DWARF_VALUE_LIST_INDEX, cursor_uleb(cursor));
        break;
    case DW_FORM_line_strp:
        *value = make_value(DWARF_VALUE_LINE_TEXT_OFFSET, cursor_uint(cursor, unit->offset_bytes));
        break;
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
        *value = make_value(DWARF_VALUE_ALT_TEXT_OFFSET, cursor_uint(cursor, unit->offset_bytes));
        break;
    case DW_FORM_ref_sup4:
        *value = make_value(DWARF_VALUE_ALT_REFERENCE, cursor_u32(cursor));
        break;
    case DW_FORM_ref_sup8:
        *value = make_value(DWARF_VALUE_ALT_REFERENCE, cursor_u64(cursor));
        break;
    case DW_FORM_GNU_ref_alt:
        *value = make_value(DWARF_VALUE_ALT_REFERENCE, cursor_uint(cursor, unit->offset_bytes));
        break;
    case DW_FORM_data16:
        *value = read_block(cursor, 16);
        break;
    case DW_FORM_implicit_const:
        *value = make_value(DWARF_VALUE_NUMBER, (uint64_t)attribute->implicit);
        break;
    default:
        return cursor_fail(cursor);
    }
    return !cursor->has_failed;
}

bool dwarf_value_read(const struct dwarf_unit *unit, const struct dwarf_attribute *attribute,
                      struct cursor *cursor, struct dwarf_value *ret_value)
{
    struct dwarf_value value = {.kind = DWARF_VALUE_OTHER};
    switch (attribute->form) {
    case DW_FORM_addr:
        value = make_value(DWARF_VALUE_ADDRESS, cursor_uint(cursor, unit->address_bytes));
        break;
    case DW_FORM_data1:
    case DW_FORM_flag:
        value = make_value(DWARF_VALUE_NUMBER, cursor_u8(cursor));
        break;
    case DW_FORM_data2:
        value = make_value(DWARF_VALUE_NUMBER, cursor_u16(cursor));
        break;
    case DW_FORM_data4:
        value = make_value(DWARF_VALUE_NUMBER, cursor_u32(cursor));
        break;
    case DW_FORM_data8:
        value = make_value(DWARF_VALUE_NUMBER, cursor_u64(cursor));
        break;
    case DW_FORM_udata:
        value = make_value(DWARF_VALUE_NUMBER, cursor_uleb(cursor));
        break;
    case DW_FORM_sdata:
        value = make_value(DWARF_VALUE_NUMBER, (uint64_t)cursor_sleb(cursor));
        break;
    case DW_FORM_flag_present:
        value = make_value(DWARF_VALUE_NUMBER, 1);
        break;
    case DW_FORM_sec_offset:
        value = make_value(DWARF_VALUE_OFFSET, cursor_uint(cursor, unit->offset_bytes));
        break;
    case DW_FORM_string:
        value.kind = DWARF_VALUE_TEXT;
        value.text = cursor_text(cursor);
        break;
    case DW_FORM_strp:
        value = make_value(DWARF_VALUE_TEXT_OFFSET, cursor_uint(cursor, unit->offset_bytes));
        break;
    case DW_FORM_ref1:
        value = read_reference(unit, cursor_u8(cursor));
        break;
    case DW_FORM_ref2:
        value = read_reference(unit, cursor_u16(cursor));
        break;
    case DW_FORM_ref4:
        value = read_reference(unit, cursor_u32(cursor));
        break;
    case DW_FORM_ref8:
        value = read_reference(unit, cursor_u64(cursor));
        break;
    case DW_FORM_ref_udata:
        value = read_reference(unit, cursor_uleb(cursor));
        break;
    case DW_FORM_ref_addr: /* in version 2 the size of an address */
        value = make_value(
            DWARF_VALUE_REFERENCE,
            cursor_uint(cursor, unit->version > 2 ? unit->offset_bytes : unit->address_bytes));
        break;
    case DW_FORM_ref_sig8:
        value = read_block(cursor, 8);
        break;
    case DW_FORM_block:
    case DW_FORM_exprloc:
        value = read_block(cursor, cursor_uleb(cursor));
        break;
    case DW_FORM_block1:
        value = read_block(cursor, cursor_u8(cursor));
        break;
    case DW_FORM_block2:
        value = read_block(cursor, cursor_u16(cursor));
        break;
    case DW_FORM_block4:
        value = read_block(cursor, cursor_u32(cursor));
        break;
    case DW_FORM_indirect:
        return read_indirect(unit, cursor, ret_value);
    default:
        return read_new_form(unit, attribute, cursor, ret_value);
    }
    *ret_value = value;
    return !cursor->has_failed;
}

/* How to skip the value of a form; numbers up to 16 are its size in bytes. */
enum skip {
    SKIP_SLOWLY = 17,
    SKIP_ADDRESS,
    SKIP_OFFSET,
    SKIP_LEB,
    SKIP_TEXT,
    SKIP_BLOCK,
    SKIP_BLOCK1
};

static const uint8_t skips[] = {
    [0] = SKIP_SLOWLY,
    [DW_FORM_addr] = SKIP_ADDRESS,
    [2] = SKIP_SLOWLY,
    [DW_FORM_block2] = SKIP_SLOWLY,
    [DW_FORM_block4] = SKIP_SLOWLY,
    [DW_FORM_data2] = 2,
    [DW_FORM_data4] = 4,
    [DW_FORM_data8] = 8,
    [DW_FORM_string] = SKIP_TEXT,
    [DW_FORM_block] = SKIP_BLOCK,
    [DW_FORM_block1] = SKIP_BLOCK1,
    [DW_FORM_data1] = 1,
    [DW_FORM_flag] = 1,
    [DW_FORM_sdata] = SKIP_LEB,
    [DW_FORM_strp] = SKIP_OFFSET,
    [DW_FORM_udata] = SKIP_LEB,
    [DW_FORM_ref_addr] = SKIP_SLOWLY,
    [DW_FORM_ref1] = 1,
    [DW_FORM_ref2] = 2,
    [DW_FORM_ref4] = 4,
    [DW_FORM_ref8] = 8,
    [DW_FORM_ref_udata] = SKIP_LEB,
    [DW_FORM_indirect] = SKIP_SLOWLY,
    [DW_FORM_sec_offset] = SKIP_OFFSET,
    [DW_FORM_exprloc] = SKIP_BLOCK,
    [DW_FORM_flag_present] = 0,
    [DW_FORM_strx] = SKIP_LEB,
    [DW_FORM_addrx] = SKIP_LEB,
};

static bool skip_leb(struct cursor *cursor)
{
    while (cursor->next < cursor->end) {
        if (!(*cursor->next++ & 0x80))
            return true;
    }
    return cursor_fail(cursor);
}

static bool skip_value(const struct dwarf_unit *unit, const struct dwarf_attribute *attribute,
                       struct cursor *cursor)
{
    uint8_t how = attribute->form < sizeof(skips) ? skips[attribute->form] : SKIP_SLOWLY;
    struct dwarf_value value;
    switch (how) {
    case SKIP_SLOWLY:
        return dwarf_value_read(unit, attribute, cursor, &value);
    case SKIP_ADDRESS:
        return cursor_skip(cursor, unit->address_bytes);
    case SKIP_OFFSET:
        return cursor_skip(cursor, unit->offset_bytes);
    case SKIP_LEB:
        return skip_leb(cursor);
    case SKIP_TEXT:
        cursor_text(cursor);
        return !cursor->has_failed;
    case SKIP_BLOCK:
        return cursor_skip(cursor, cursor_uleb(cursor));
    case SKIP_BLOCK1:
        return cursor_skip(cursor, cursor_u8(cursor));
    default:
        return cursor_skip(cursor, how);
    }
}

bool dwarf_entry_skip(const struct dwarf_unit *unit, const struct dwarf_abbrev *abbrev,
                      struct cursor *cursor)
{
    if (abbrev->is_fixed)
        return cursor_skip(cursor, abbrev->fixed_bytes +
                                       (uint64_t)abbrev->address_count * unit->address_bytes +
                                       (uint64_t)abbrev->offset_count * unit->offset_bytes);
    const struct dwarf_attribute *attribute = dwarf_attributes(unit, abbrev);
    for (uint32_t i = 0; i < abbrev->attribute_count; i++) {
        if (!skip_value(unit, &attribute[i], cursor))
            return false;
    }
    return true;
}

static struct span text_at(const struct dwarf_file *file, enum dwarf_section section,
                           uint64_t offset)
{
    if (!file)
        return (struct span){NULL, 0};
    struct cursor cursor = cursor_at(file->sections[section], offset);
    return cursor_text(&cursor);
}

/* A cursor at base + index * size; it has failed when that is outside of the section. */
static struct cursor entry_at(struct span section, uint64_t base, uint64_t index, unsigned size)
{
    if (index > section.size || base > section.size)
        return (struct cursor){.has_failed = true};
    return cursor_at(section, base + index * size);
}

struct span dwarf_value_text(const struct dwarf_unit *unit, const struct dwarf_value *value)
{
    const struct dwarf_file *file = unit->file;
    struct cursor cursor;
    switch (value->kind) {
    case DWARF_VALUE_TEXT:
        return value->text;
    case DWARF_VALUE_TEXT_OFFSET:
        return text_at(file, DWARF_STR, value->number);
    case DWARF_VALUE_LINE_TEXT_OFFSET:
        return text_at(file, DWARF_LINE_STR, value->number);
    case DWARF_VALUE_ALT_TEXT_OFFSET:
        return text_at(file->alternate, DWARF_STR, value->number);
    case DWARF_VALUE_TEXT_INDEX:
        cursor = entry_at(file->sections[DWARF_STR_OFFSETS], unit->str_offsets_base, value->number,
                          unit->offset_bytes);
        return text_at(file, DWARF_STR,
                       cursor.has_failed ? DWARF_NO_OFFSET
                                         : cursor_uint(&cursor, unit->offset_bytes));
    case DWARF_VALUE_NONE:
    case DWARF_VALUE_NUMBER:
    case DWARF_VALUE_ADDRESS:
    case DWARF_VALUE_ADDRESS_INDEX:
    case DWARF_VALUE_REFERENCE:
    case DWARF_VALUE_ALT_REFERENCE:
    case DWARF_VALUE_OFFSET:
    case DWARF_VALUE_LIST_INDEX:
    case DWARF_VALUE_OTHER:
        break;
    }
    return (struct span){NULL, 0};
}

bool dwarf_value_address(const struct dwarf_unit *unit, const struct dwarf_value *value,
                         uint64_t *ret_address)
{
    if (value->kind == DWARF_VALUE_ADDRESS) {
        *ret_address = value->number;
        return true;
    }
    if (value->kind != DWARF_VALUE_ADDRESS_INDEX)
        return false;
    const struct dwarf_unit *owner = unit->skeleton ? unit->skeleton : unit;
    struct cursor cursor = entry_at(owner->file->sections[DWARF_ADDR], owner->addr_base,
                                    value->number, owner->address_bytes);
    uint64_t address = cursor.has_failed ? 0 : cursor_uint(&cursor, owner->address_bytes);
    if (!cursor.has_failed)
        *ret_address = address;
    return !cursor.has_failed;
}
