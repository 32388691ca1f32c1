/*
 * Any bytes as input of the symbol table builder, and as its package of split files: the readers of
 * ELF, DWARF, packages, Go's table, symbols and xz, and the demangler. The reader must accept the
 * resulting table.
 */
#include "tests/fuzz/fuzz.h"

#include "debuginfod/build.h"
#include "lib/base/err.h"
#include "lib/symbols/symbol_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct span file = span_of(data, size);
    const struct build_inputs inputs = {
        .file = file, .split_files = &file, .split_file_count = 1, .is_first_names = size % 8 == 7};
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
