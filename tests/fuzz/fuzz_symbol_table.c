/*
 * Symbol tables (lib/symbols/symbol_table.h). An input is the bytes of a table. It is opened
 * unchanged, and then with corrected checksums, so that the code after the checks is reached. If
 * the table opens, addresses are looked up in two orders, with the same results. If the table is
 * valid, every number must have a name.
 *
 *    fuzz_symbol_table --seeds FOLDER      writes the seeds, small tables of random functions
 */
#include "tests/fuzz/fuzz.h"

#include "lib/base/err.h"
#include "lib/symbols/symbol_address.h"
#include "tests/unit/lib/symbols/random_table.h"

enum { SEEDS = 8, ADDRESSES = 200, TEXT_MAX_BYTES = 4 << 20, SEED_MAX_BYTES = 1 << 20 };

static bool is_damage(enum err_code code)
{
    return code == ERR_CORRUPT || code == ERR_INVALID || code == ERR_UNSUPPORTED;
}

static void check_frames(const struct symbol_table *table, const struct symbol_cursor *cursor,
                         uint32_t count)
{
    const struct symbol_table_sizes sizes = symbol_table_sizes(table);
    fuzz_check(count <= SYMBOL_DEPTH_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol_frame *frame = &cursor->frames[i];
        fuzz_check(frame->function < sizes.functions && frame->line <= SYMBOL_LINE_MAX);
        fuzz_check(frame->file == SYMBOL_NONE || frame->file < sizes.files);
    }
}

/* Looks addresses up with one cursor for all, and with a new cursor for each. */
static void check_address(const struct symbol_table *table, struct symbol_cursor *going,
                          uint64_t address)
{
    struct symbol_cursor fresh;
    symbol_cursor_init(&fresh, table);
    const uint32_t count = symbol_cursor_find(going, address);
    check_frames(table, going, count);
    fuzz_check(symbol_cursor_find(&fresh, address) == count);
    fuzz_check(memcmp(going->frames, fresh.frames, count * sizeof(fresh.frames[0])) == 0);
}

static void check_addresses(const struct symbol_table *table)
{
    const struct symbol_table_sizes sizes = symbol_table_sizes(table);
    const uint64_t step = (sizes.end_address - sizes.first_address) / ADDRESSES + 1;
    struct symbol_cursor cursor;
    symbol_cursor_init(&cursor, table);
    uint64_t address = sizes.first_address - 1;
    for (uint32_t i = 0; i < ADDRESSES + 2; i++, address += step)
        check_address(table, &cursor, address);
    for (uint32_t i = 0; i < ADDRESSES; i += 7, address -= 5 * step)
        check_address(table, &cursor, address);
}

static void check_names(const struct symbol_table *table, bool is_sound)
{
    const struct symbol_table_sizes sizes = symbol_table_sizes(table);
    struct symbol_names *names = symbol_names_create(table);
    struct symbol_name name;
    struct span path;
    struct err err;
    for (uint32_t i = 0; i < sizes.functions && i < ADDRESSES; i++) {
        const enum err_code code = symbol_names_function(names, i, &name, &err);
        fuzz_check(code == ERR_NONE || (!is_sound && code == ERR_CORRUPT));
    }
    for (uint32_t i = 0; i < sizes.files && i < ADDRESSES; i++) {
        const enum err_code code = symbol_names_file(names, i, &path, &err);
        fuzz_check(code == ERR_NONE || (!is_sound && code == ERR_CORRUPT));
    }
    fuzz_check(symbol_names_function(names, sizes.functions, &name, &err) == ERR_NOT_FOUND);
    symbol_names_destroy(names);
}

static void check_mapping(const struct symbol_table *table)
{
    const struct symbol_mapping mapping = {0x7f0000000000, 0x7f0000100000, 0x1000};
    const struct symbol_mapping kernel = {UINT64_C(1) << 63, UINT64_MAX, 0};
    uint64_t address;
    symbol_address_find(table, &mapping, 0x7f0000000123, &address);
    symbol_address_find(table, &kernel, UINT64_MAX - 1, &address);
}

static void read_table(struct span bytes)
{
    struct symbol_table *table;
    struct err err;
    enum err_code code = symbol_table_open(bytes, &table, &err);
    if (code) {
        fuzz_check(is_damage(code) && code == err.code && err.message[0]);
        return;
    }
    code = symbol_table_verify(table, &err);
    fuzz_check(!code || (code == ERR_CORRUPT && err.message[0]));
    check_addresses(table);
    check_names(table, code == ERR_NONE);
    check_mapping(table);
    symbol_table_close(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = mem_new(uint8_t, size);
    memcpy(copy, data, size);
    read_table(span_of(copy, size));
    symbols_seal(copy, size);
    read_table(span_of(copy, size));
    mem_free(copy);
    return 0;
}

/* ---- seeds ---- */

static void write_seed(const char *folder, uint32_t number)
{
    arena_auto arena = arena_create();
    uint64_t state = number + 1;
    const struct random_shape shape = {.first_address = 0x1000,
                                       .span = 400,
                                       .range_bytes_max = 20,
                                       .files = number,
                                       .functions = 1 + number * 5,
                                       .nodes = 1 + number * 9,
                                       .ranges = number * 12,
                                       .symbols = number % 3,
                                       .line_max = number % 2 ? 100 : 100000,
                                       .is_ascending = number % 4 == 1};
    struct random_table table;
    buf_auto bytes;
    buf_init(&bytes, SEED_MAX_BYTES);
    random_table_make(arena, &state, &shape, &table);
    random_table_write(&table, &bytes);
    FILE *file = fopen(arena_printf(arena, "%s/table-%02u", folder, number), "wb");
    fuzz_check(file && fwrite(bytes.data, 1, bytes.size, file) == bytes.size && !fclose(file));
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    if (*count < 3 || strcmp((*arguments)[1], "--seeds") != 0)
        return 0;
    for (uint32_t i = 0; i < SEEDS; i++)
        write_seed((*arguments)[2], i);
    exit(0);
}
