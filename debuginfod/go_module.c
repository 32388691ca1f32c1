#include "debuginfod/go_module.h"

#include "debuginfod/cursor.h"
#include "debuginfod/elf_input.h"

#include <elf.h>

/* Indexes of the words of the module data (struct moduledata in Go's src/runtime/symtab.go). */
enum {
    WORD_TEXT = 22,
    WORD_FUNCTION_DATA_1_18 = 38,
    WORD_FUNCTION_DATA_1_20 = 40,
};

struct search {
    struct elf_input *elf;
    const struct go_header *header;
    uint64_t table_address;
    struct span relocations; /* of the program, RELA */
};

/* The value that a relocation stores at an address. Relocations are not sorted, and few
 * addresses are looked up. */
static bool relocated(const struct search *search, uint64_t address, uint64_t *ret_value)
{
    struct cursor cursor = cursor_of(search->relocations);
    while (cursor_left(&cursor) >= 24) {
        uint64_t offset = cursor_u64(&cursor);
        cursor_skip(&cursor, 8);
        uint64_t addend = cursor_u64(&cursor);
        if (offset == address && addend) {
            *ret_value = addend;
            return true;
        }
    }
    return false;
}

static bool word_at(const struct search *search, uint64_t address, uint64_t *ret_value)
{
    struct span bytes = elf_input_at(search->elf, address);
    struct cursor cursor = cursor_of(bytes);
    *ret_value = cursor_uint(&cursor, search->header->word);
    return (!cursor.has_failed && *ret_value) || relocated(search, address, ret_value);
}

/* Whether there is module data at the address, whose first word is the address of the table: its
 * second word is the address of the names in the table. */
static bool is_module(const struct search *search, uint64_t address)
{
    uint64_t names;
    unsigned word = search->header->word;
    uint64_t offset = (uint64_t)(search->header->names.data - search->header->table.data);
    return word_at(search, address + word, &names) && names == search->table_address + offset;
}

static bool find_word(const struct search *search, const struct elf_section *section,
                      uint64_t *ret_address)
{
    unsigned word = search->header->word;
    struct span bytes = section->stored;
    for (size_t at = 0; at + word <= bytes.size; at += word) {
        uint64_t value = 0;
        memcpy(&value, bytes.data + at, word);
        if (value == search->table_address && is_module(search, section->address + at)) {
            *ret_address = section->address + at;
            return true;
        }
    }
    return false;
}

static bool find_relocation(const struct search *search, uint64_t *ret_address)
{
    struct cursor cursor = cursor_of(search->relocations);
    while (cursor_left(&cursor) >= 24) {
        uint64_t offset = cursor_u64(&cursor);
        cursor_skip(&cursor, 8);
        if (cursor_u64(&cursor) == search->table_address && is_module(search, offset)) {
            *ret_address = offset;
            return true;
        }
    }
    return false;
}

static bool find_module(const struct search *search, uint64_t *ret_address)
{
    for (uint32_t i = 0; i < search->elf->section_count; i++) {
        const struct elf_section *section = &search->elf->sections[i];
        if (section->type == SHT_PROGBITS && (section->flags & SHF_ALLOC) &&
            !(section->flags & (SHF_EXECINSTR | SHF_COMPRESSED)) &&
            find_word(search, section, ret_address))
            return true;
    }
    return find_relocation(search, ret_address);
}

static void read_module(const struct search *search, uint64_t address, struct go_module *module)
{
    unsigned word = search->header->word;
    unsigned data_word =
        search->header->version >= GO_1_20 ? WORD_FUNCTION_DATA_1_20 : WORD_FUNCTION_DATA_1_18;
    module->has_text = word_at(search, address + WORD_TEXT * word, &module->text);
    module->has_function_data = word_at(search, address + data_word * word, &module->function_data);
}

void go_module_find(struct elf_input *elf, const struct go_header *header, uint64_t table_address,
                    struct go_module *ret_module)
{
    struct search search = {.elf = elf, .header = header, .table_address = table_address};
    const struct elf_section *relocations = elf_input_find(elf, ".rela.dyn");
    if (!relocations)
        relocations = elf_input_find(elf, ".rela");
    if (relocations && elf->is_64_bit)
        search.relocations = relocations->stored;
    *ret_module = (struct go_module){.has_text = header->version < GO_1_18,
                                     .has_function_data = header->version < GO_1_18};
    if (header->version < GO_1_18)
        return; /* addresses are absolute */
    uint64_t address;
    if (find_module(&search, &address))
        read_module(&search, address, ret_module);
    if (ret_module->has_text)
        return;
    /* Without module data: the base in the header, else the start of .text. */
    const struct elf_section *text = elf_input_named(elf, ".text");
    ret_module->text = header->text_start;
    if (!header->text_start && text)
        ret_module->text = text->address;
    ret_module->has_text = ret_module->text != 0;
}
