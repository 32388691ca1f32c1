/*
 * Any bytes as Go's table, and as the data of an otherwise valid program, so that inlined calls and
 * module data are found in them.
 */
#include "tests/fuzz/fuzz.h"

#include "debuginfod/elf_input.h"
#include "debuginfod/go_table.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/symbols/symbol_table.h"
#include "lib/symbols/symbol_table_writer.h"

#include <elf.h>

static void add(struct elf_input *elf, struct symbol_table_writer *writer)
{
    struct symbol_table_facts facts = {0};
    struct symbol_table *table;
    struct go_result result;
    struct err err;
    buf_auto output;
    buf_init(&output, 64 << 20);
    if (go_table_add(elf, writer, &result, &err) ||
        symbol_table_writer_finish(writer, &facts, &output, &err))
        return;
    fuzz_check(symbol_table_open(buf_span(&output), &table, &err) == ERR_NONE);
    fuzz_check(symbol_table_verify(table, &err) == ERR_NONE);
    symbol_table_close(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena_auto arena = arena_create();
    struct elf_section sections[] = {
        {.name = SPAN_LITERAL(".text"),
         .type = SHT_PROGBITS,
         .flags = SHF_ALLOC | SHF_EXECINSTR,
         .address = 0x1000,
         .memory_bytes = 0x10000},
        {.name = SPAN_LITERAL(".gopclntab"),
         .type = SHT_PROGBITS,
         .flags = SHF_ALLOC,
         .address = 0x20000,
         .memory_bytes = size,
         .stored = span_of(data, size)},
    };
    struct elf_input elf = {.arena = arena,
                            .is_64_bit = true,
                            .type = ET_EXEC,
                            .machine = EM_X86_64,
                            .sections = sections,
                            .section_count = 2};
    struct symbol_table_writer *writer = symbol_table_writer_create(NULL);
    if (size)
        add(&elf, writer);
    symbol_table_writer_destroy(writer);
    return 0;
}
