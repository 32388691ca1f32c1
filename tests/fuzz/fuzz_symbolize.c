/*
 * Any bytes as a file to make a symbol table of: the readers of ELF, DWARF, Go's table, symbols and
 * xz, and the demangler. What comes out is a table that its reader accepts whole.
 */
#include "tests/fuzz/fuzz.h"

#include "debuginfod/build.h"
#include "lib/symbols/symbol_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct build_inputs inputs = {.file = span_of(data, size)};
    struct build_report report;
    struct symbol_table *table;
    struct err err;
    buf_auto output;
    buf_init(&output, 64 << 20);
    if (build_table(&inputs, &output, &report, &err))
        return 0;
    fuzz_check(symbol_table_open(buf_span(&output), &table, &err) == ERR_NONE);
    fuzz_check(symbol_table_verify(table, &err) == ERR_NONE);
    symbol_table_close(table);
    return 0;
}
