#include "debuginfod/elf_symbols.h"

#include "debuginfod/code_map.h"
#include "debuginfod/cursor.h"
#include "debuginfod/elf_input.h"
#include "debuginfod/elf_reader.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/radix_sort.h"
#include "lib/symbols/symbol_table_writer.h"

#include <elf.h>

struct symbol {
    uint64_t begin;
    uint64_t end; /* equal to begin: no size */
    struct span name;
    uint8_t rank; /* of symbols with the same address and size, the lowest rank wins */
};

struct symbols {
    struct elf_input *elf;
    const struct code_map *code;
    struct span strings;
    struct symbol *symbols;
    size_t count;
};

static uint8_t rank_of(const struct elf_symbol *symbol)
{
    uint8_t rank = symbol->binding == STB_GLOBAL ? 0 : symbol->binding == STB_WEAK ? 1 : 2;
    return (uint8_t)(symbol->type == STT_NOTYPE ? rank + 3 : rank);
}

/* Whether the name is an assembler label or one of ARM's marks of code and data. */
static bool is_label(struct span name)
{
    return !name.size || span_starts_with(name, ".L") || name.data[0] == '$';
}

/* Section indexes above 16 bits (SHN_XINDEX) occur only in objects with very many sections. */
static bool is_function(const struct symbols *symbols, const struct elf_symbol *symbol)
{
    return (symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC ||
            symbol->type == STT_NOTYPE) &&
           symbol->section != SHN_UNDEF && symbol->section < symbols->elf->section_count;
}

static void add_symbol(struct symbols *symbols, const struct elf_symbol *raw)
{
    struct cursor name = cursor_at(symbols->strings, raw->name);
    struct symbol symbol = {.begin = raw->value, .name = cursor_text(&name), .rank = rank_of(raw)};
    if (symbols->elf->type == ET_REL)
        symbol.begin += symbols->elf->sections[raw->section].address;
    if (symbols->elf->machine == EM_ARM)
        symbol.begin &= ~UINT64_C(1); /* set for Thumb code */
    uint64_t code_end = UINT64_MAX;
    if (is_label(symbol.name) || !code_map_clip(symbols->code, symbol.begin, &code_end))
        return;
    symbol.end = symbol.begin + raw->size;
    if (symbol.end < symbol.begin || symbol.end > code_end)
        symbol.end = code_end;
    symbols->symbols[symbols->count++] = symbol;
}

/* Compares two symbols at one address. */
static bool is_better(const struct symbol *left, const struct symbol *right)
{
    if (left->end != right->end)
        return left->end > right->end;
    if (left->rank != right->rank)
        return left->rank < right->rank;
    return span_compare(left->name, right->name) < 0;
}

/* Sorts the symbols by keys in ascending order. */
static void sort_by_keys(struct symbols *symbols, const uint64_t *keys)
{
    const uint32_t count = (uint32_t)symbols->count;
    struct symbol *ordered = mem_resize(NULL, count + 1, sizeof(*ordered));
    uint32_t *order = mem_resize(NULL, count + 1, sizeof(*order));
    radix_sort_order(keys, count, order);
    for (uint32_t i = 0; i < count; i++)
        ordered[i] = symbols->symbols[order[i]];
    mem_free(order);
    mem_free(symbols->symbols);
    symbols->symbols = ordered;
}

static void order_by_begin(struct symbols *symbols)
{
    uint64_t *begins = mem_resize(NULL, symbols->count + 1, sizeof(*begins));
    for (size_t i = 0; i < symbols->count; i++)
        begins[i] = symbols->symbols[i].begin;
    sort_by_keys(symbols, begins);
    mem_free(begins);
}

/* Sorts by size; symbols of equal size stay sorted by address. */
static void sort_by_size(struct symbols *symbols)
{
    uint64_t *sizes = mem_resize(NULL, symbols->count + 1, sizeof(*sizes));
    for (size_t i = 0; i < symbols->count; i++)
        sizes[i] = symbols->symbols[i].end - symbols->symbols[i].begin;
    sort_by_keys(symbols, sizes);
    mem_free(sizes);
}

/* Keeps one symbol per address. */
static void drop_shadowed(struct symbols *symbols)
{
    size_t kept = 0;
    order_by_begin(symbols);
    for (size_t i = 0; i < symbols->count; i++) {
        const struct symbol *symbol = &symbols->symbols[i];
        struct symbol *last = &symbols->symbols[kept ? kept - 1 : 0];
        if (!kept || last->begin != symbol->begin)
            symbols->symbols[kept++] = *symbol;
        else if (is_better(symbol, last))
            *last = *symbol;
    }
    symbols->count = kept;
}

static uint64_t end_of_sizeless(const struct symbols *symbols, size_t index, bool is_dynamic)
{
    uint64_t begin = symbols->symbols[index].begin, end = UINT64_MAX;
    if (is_dynamic)
        return begin + 1;
    code_map_clip(symbols->code, begin, &end);
    if (index + 1 < symbols->count && symbols->symbols[index + 1].begin < end)
        end = symbols->symbols[index + 1].begin;
    return end;
}

/* Adds the symbols in order of priority, since the first one wins: those with a size before
 * those without, and small ones, which are inside of others, before large ones. */
static void write_symbols(struct symbols *symbols, bool is_dynamic,
                          struct symbol_table_writer *writer)
{
    struct symbol *sizeless = mem_new(struct symbol, symbols->count + 1);
    size_t sizeless_count = 0, sized_count = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        struct symbol symbol = symbols->symbols[i];
        if (symbol.begin < symbol.end)
            continue;
        symbol.end = end_of_sizeless(symbols, i, is_dynamic);
        sizeless[sizeless_count++] = symbol;
    }
    for (size_t i = 0; i < symbols->count; i++) {
        if (symbols->symbols[i].begin < symbols->symbols[i].end)
            symbols->symbols[sized_count++] = symbols->symbols[i];
    }
    symbols->count = sized_count;
    sort_by_size(symbols);
    for (size_t i = 0; i < sized_count; i++)
        symbol_table_writer_symbol(writer, symbols->symbols[i].begin, symbols->symbols[i].end,
                                   symbols->symbols[i].name);
    for (size_t i = 0; i < sizeless_count; i++)
        symbol_table_writer_symbol(writer, sizeless[i].begin, sizeless[i].end, sizeless[i].name);
    mem_free(sizeless);
}

enum err_code elf_symbols_add(struct elf_input *elf, const char *section_name,
                              const struct code_map *code, struct symbol_table_writer *writer,
                              uint32_t *ret_count, struct err *err)
{
    struct symbols symbols = {.elf = elf, .code = code};
    struct elf_section *section = elf_input_find(elf, section_name);
    struct elf_entries entries;
    *ret_count = 0;
    if (!section || section->link >= elf->section_count)
        return ERR_NONE;
    enum err_code status = elf_reader_entries(elf, section, &entries, err);
    if (!status)
        status = elf_input_read(elf, &elf->sections[section->link], &symbols.strings, err);
    if (status)
        return status;
    if (entries.count > ELF_SYMBOLS_MAX_COUNT)
        return err_set(err, ERR_TOO_LARGE, "%s has more than %d symbols", section_name,
                       ELF_SYMBOLS_MAX_COUNT);
    symbols.symbols = mem_new(struct symbol, entries.count + 1);
    for (size_t i = 0; i < entries.count; i++) {
        struct elf_symbol raw;
        if (elf_entries_symbol(&entries, i, &raw) && is_function(&symbols, &raw))
            add_symbol(&symbols, &raw);
    }
    drop_shadowed(&symbols);
    *ret_count = (uint32_t)symbols.count;
    write_symbols(&symbols, section->type == SHT_DYNSYM, writer);
    mem_free(symbols.symbols);
    return ERR_NONE;
}
