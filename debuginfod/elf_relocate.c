#include "debuginfod/elf_relocate.h"

#include "debuginfod/elf_input.h"
#include "debuginfod/elf_reader.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <elf.h>

enum operation {
    OPERATION_UNKNOWN,
    OPERATION_NONE,
    OPERATION_SET,
    OPERATION_ADD,
    OPERATION_SUBTRACT
};

struct rule {
    uint16_t machine;
    uint16_t type;
    uint8_t bytes;
    enum operation operation;
};

static const struct rule rules[] = {
    {EM_X86_64, R_X86_64_NONE, 0, OPERATION_NONE},
    {EM_X86_64, R_X86_64_64, 8, OPERATION_SET},
    {EM_X86_64, R_X86_64_32, 4, OPERATION_SET},
    {EM_X86_64, R_X86_64_32S, 4, OPERATION_SET},
    {EM_X86_64, R_X86_64_DTPOFF32, 4, OPERATION_NONE}, /* of thread-local variables */
    {EM_X86_64, R_X86_64_DTPOFF64, 8, OPERATION_NONE},
    {EM_386, R_386_NONE, 0, OPERATION_NONE},
    {EM_386, R_386_32, 4, OPERATION_SET},
    {EM_386, R_386_TLS_LDO_32, 4, OPERATION_NONE},
    {EM_AARCH64, R_AARCH64_NONE, 0, OPERATION_NONE},
    {EM_AARCH64, R_AARCH64_ABS64, 8, OPERATION_SET},
    {EM_AARCH64, R_AARCH64_ABS32, 4, OPERATION_SET},
    {EM_ARM, R_ARM_NONE, 0, OPERATION_NONE},
    {EM_ARM, R_ARM_ABS32, 4, OPERATION_SET},
    {EM_ARM, R_ARM_TLS_LDO32, 4, OPERATION_NONE},
    {EM_RISCV, R_RISCV_NONE, 0, OPERATION_NONE},
    {EM_RISCV, R_RISCV_32, 4, OPERATION_SET},
    {EM_RISCV, R_RISCV_64, 8, OPERATION_SET},
    {EM_RISCV, R_RISCV_ADD8, 1, OPERATION_ADD},
    {EM_RISCV, R_RISCV_ADD16, 2, OPERATION_ADD},
    {EM_RISCV, R_RISCV_ADD32, 4, OPERATION_ADD},
    {EM_RISCV, R_RISCV_ADD64, 8, OPERATION_ADD},
    {EM_RISCV, R_RISCV_SUB8, 1, OPERATION_SUBTRACT},
    {EM_RISCV, R_RISCV_SUB16, 2, OPERATION_SUBTRACT},
    {EM_RISCV, R_RISCV_SUB32, 4, OPERATION_SUBTRACT},
    {EM_RISCV, R_RISCV_SUB64, 8, OPERATION_SUBTRACT},
};

static const struct rule *find_rule(uint16_t machine, uint32_t type)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (rules[i].machine == machine && rules[i].type == type)
            return &rules[i];
    }
    return NULL;
}

/* The value of a symbol: the address of its section plus its own value. */
static bool read_value(const struct elf_input *elf, const struct elf_entries *symbols,
                       uint32_t number, uint64_t *ret_value)
{
    struct elf_symbol symbol;
    if (!elf_entries_symbol(symbols, number, &symbol))
        return false;
    *ret_value = symbol.value;
    if (symbol.section != SHN_UNDEF && symbol.section < elf->section_count)
        *ret_value += elf->sections[symbol.section].address;
    return true;
}

static void store_value(const struct elf_relocation *relocation, const struct rule *rule,
                        uint64_t value, uint8_t *target)
{
    uint64_t old = 0, number = value + (uint64_t)relocation->addend;
    memcpy(&old, target, rule->bytes);
    if (rule->operation == OPERATION_ADD || !relocation->has_addend)
        number = old + number;
    else if (rule->operation == OPERATION_SUBTRACT)
        number = old - number;
    memcpy(target, &number, rule->bytes);
}

static enum err_code relocate_section(struct elf_input *elf, const struct elf_entries *relocations,
                                      const struct elf_entries *symbols, struct elf_section *target,
                                      uint8_t *bytes, struct err *err)
{
    struct elf_relocation relocation;
    for (size_t i = 0; elf_entries_relocation(relocations, i, &relocation); i++) {
        const struct rule *rule = find_rule(elf->machine, relocation.type);
        uint64_t value;
        if (!rule)
            return err_set(err, ERR_UNSUPPORTED,
                           "relocations of type %u of machine %u in %.*s are not known",
                           relocation.type, elf->machine, SPAN_PRINT(target->name));
        if (rule->operation == OPERATION_NONE)
            continue;
        if (relocation.offset > target->flat.size ||
            target->flat.size - relocation.offset < rule->bytes ||
            !read_value(elf, symbols, relocation.symbol, &value))
            return err_set(err, ERR_INVALID, "a relocation of %.*s lies outside of it",
                           SPAN_PRINT(target->name));
        store_value(&relocation, rule, value, bytes + relocation.offset);
    }
    return ERR_NONE;
}

/* Makes a copy of the section that can be modified: the bytes of the file are read-only. */
static uint8_t *copy_section_bytes(struct elf_section *section)
{
    if (!section->owned) {
        section->owned = mem_alloc(section->flat.size, 1);
        memcpy(section->owned, section->flat.data, section->flat.size);
        section->flat.data = section->owned;
    }
    return section->owned;
}

/* .debug_aranges and similar sections are not used. */
static bool is_debug_section(struct span name)
{
    static const char *const names[] = {"info",     "line", "ranges",
                                        "rnglists", "addr", "str_offsets"};
    size_t prefix = span_starts_with(name, ".zdebug_") ? 8 : 7;
    if (prefix == 7 && !span_starts_with(name, ".debug_"))
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (span_equal_text(span_of(name.data + prefix, name.size - prefix), names[i]))
            return true;
    }
    return false;
}

static enum err_code relocate_by(struct elf_input *elf, struct elf_section *relocations,
                                 struct err *err)
{
    if (relocations->info >= elf->section_count || relocations->link >= elf->section_count)
        return ERR_NONE;
    struct elf_section *target = &elf->sections[relocations->info];
    struct elf_entries entries, symbols;
    struct span flat;
    if (!target->stored.size || !is_debug_section(target->name))
        return ERR_NONE;
    enum err_code code = elf_reader_entries(elf, relocations, &entries, err);
    if (!code)
        code = elf_reader_entries(elf, &elf->sections[relocations->link], &symbols, err);
    if (!code)
        code = elf_input_read(elf, target, &flat, err);
    if (code || !entries.count || !flat.size)
        return code;
    return relocate_section(elf, &entries, &symbols, target, copy_section_bytes(target), err);
}

enum err_code elf_relocate(struct elf_input *elf, struct err *err)
{
    for (uint32_t i = 0; elf->type == ET_REL && i < elf->section_count; i++) {
        struct elf_section *section = &elf->sections[i];
        if (section->type != SHT_RELA && section->type != SHT_REL)
            continue;
        enum err_code code = relocate_by(elf, section, err);
        if (code)
            return code;
    }
    return ERR_NONE;
}
