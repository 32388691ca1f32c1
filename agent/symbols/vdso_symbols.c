#include "agent/symbols/vdso_symbols.h"

#include <elf.h>
#include <stddef.h>
#include <sys/auxv.h>

struct symbols {
    const Elf64_Sym *first;
    uint64_t count;
    const char *texts;
};

/* The image comes from the kernel and is complete in memory, including section headers. */
static bool find_symbols(const char *image, struct symbols *ret_symbols)
{
    const Elf64_Ehdr *head = (const void *)image;
    const Elf64_Shdr *sections = (const void *)(image + head->e_shoff);
    for (uint32_t i = 0; head->e_shoff && i < head->e_shnum; i++) {
        const Elf64_Shdr *section = &sections[i];
        if (section->sh_type != SHT_DYNSYM || section->sh_link >= head->e_shnum)
            continue;
        *ret_symbols = (struct symbols){.first = (const void *)(image + section->sh_offset),
                                        .count = section->sh_size / sizeof(Elf64_Sym),
                                        .texts = image + sections[section->sh_link].sh_offset};
        return true;
    }
    return false;
}

static bool symbol_has(const Elf64_Sym *symbol, uint64_t offset)
{
    return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
           offset >= symbol->st_value && offset - symbol->st_value < symbol->st_size;
}

struct span vdso_symbols_find(uint64_t offset)
{
    const char *image = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    struct symbols symbols;
    struct span name = {0};
    if (!image || !find_symbols(image, &symbols))
        return name;
    for (uint64_t i = 0; i < symbols.count; i++) {
        const Elf64_Sym *symbol = &symbols.first[i];
        if (symbol_has(symbol, offset) &&
            (!name.size || ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL))
            name = span_text(symbols.texts + symbol->st_name);
    }
    return name;
}
