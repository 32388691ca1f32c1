/*
 * Packed symbol tables (lib/symbols/symbol_pack.h). An input is read twice: as packed bytes, and as
 * uncompressed columns (tests/unit/lib/symbols/flat_pack.h), whose lengths and checksums are then
 * corrected, so that every number is reached. An unpacked table is valid, and packing and unpacking
 * it again gives the same table.
 *
 *    fuzz_symbol_pack --seeds FOLDER      writes the seeds, columns of small random tables
 */
#include "tests/fuzz/fuzz.h"

#include "tests/unit/lib/symbols/flat_pack.h"
#include "tests/unit/lib/symbols/random_table.h"

enum { SEEDS = 8, TABLE_MAX_BYTES = 64 << 20 };

static void check_table(struct span bytes)
{
    struct symbol_table *table;
    struct err err;
    buf_auto packed, again;
    buf_init(&packed, TABLE_MAX_BYTES);
    buf_init(&again, TABLE_MAX_BYTES);
    fuzz_check(symbol_table_open(bytes, &table, &err) == ERR_NONE);
    fuzz_check(symbol_table_verify(table, &err) == ERR_NONE);
    fuzz_check(symbol_pack(table, &packed, &err) == ERR_NONE);
    fuzz_check(symbol_unpack(buf_span(&packed), &again, &err) == ERR_NONE);
    fuzz_check(span_equal(bytes, buf_span(&again)));
    symbol_table_close(table);
}

static void unpack(struct span packed)
{
    struct err err;
    buf_auto table;
    buf_init(&table, TABLE_MAX_BYTES);
    const enum err_code code = symbol_unpack(packed, &table, &err);
    if (!code)
        check_table(buf_span(&table));
    else
        fuzz_check(code == err.code && err.message[0] &&
                   (code == ERR_INVALID || code == ERR_UNSUPPORTED || code == ERR_CORRUPT ||
                    code == ERR_TOO_LARGE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = mem_new(uint8_t, size);
    buf_auto packed;
    buf_init(&packed, TABLE_MAX_BYTES);
    memcpy(copy, data, size);
    unpack(span_of(copy, size));
    flat_pack_close(span_of(copy, size), &packed);
    unpack(buf_span(&packed));
    mem_free(copy);
    return 0;
}

/* ---- seeds ---- */

static void write_seed(const char *folder, uint32_t number)
{
    arena_auto arena = arena_create();
    uint64_t state = number + 1;
    const struct random_shape shape = {.first_address = 0x1000,
                                       .span = 300,
                                       .range_bytes_max = 20,
                                       .files = number,
                                       .functions = 1 + number * 4,
                                       .nodes = 1 + number * 7,
                                       .ranges = number * 9,
                                       .symbols = number % 3,
                                       .line_max = number % 2 ? 100 : 100000,
                                       .is_ascending = number % 4 == 1};
    struct random_table model;
    struct symbol_table *table;
    struct err err;
    buf_auto bytes, packed, flat;
    buf_init(&bytes, TABLE_MAX_BYTES);
    buf_init(&packed, TABLE_MAX_BYTES);
    buf_init(&flat, TABLE_MAX_BYTES);
    random_table_make(arena, &state, &shape, &model);
    random_table_write(&model, &bytes);
    fuzz_check(!symbol_table_open(buf_span(&bytes), &table, &err));
    fuzz_check(!symbol_pack(table, &packed, &err));
    symbol_table_close(table);
    flat_pack_open(buf_span(&packed), &flat);
    FILE *file = fopen(arena_printf(arena, "%s/pack-%02u", folder, number), "wb");
    fuzz_check(file && fwrite(flat.data, 1, flat.size, file) == flat.size && !fclose(file));
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    if (*count < 3 || strcmp((*arguments)[1], "--seeds") != 0)
        return 0;
    for (uint32_t i = 0; i < SEEDS; i++)
        write_seed((*arguments)[2], i);
    exit(0);
}
