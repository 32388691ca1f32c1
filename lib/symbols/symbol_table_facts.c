#include "lib/symbols/symbol_table_facts.h"

uint32_t symbol_quality_rank(const struct symbol_table_facts *facts)
{
    static const uint32_t best_first[] = {SYMBOL_HAS_INLINES, SYMBOL_HAS_LINES,  SYMBOL_HAS_GO,
                                          SYMBOL_HAS_DWARF,   SYMBOL_HAS_SYMTAB, SYMBOL_HAS_MINI,
                                          SYMBOL_HAS_DYNSYM};
    const uint32_t kinds = sizeof(best_first) / sizeof(best_first[0]);
    const uint32_t is_whole = facts->quality & SYMBOL_IS_PARTIAL ? 0 : 1;
    const uint32_t is_lacking = facts->quality & SYMBOL_LACKS_SHARED ? 1 : 0;
    for (uint32_t i = 0; i < kinds; i++) {
        if (facts->quality & best_first[i])
            return (kinds - i) * 2 + is_whole - is_lacking;
    }
    return 0;
}
