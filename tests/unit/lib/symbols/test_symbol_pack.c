#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "tests/unit/lib/symbols/flat_pack.h"
#include "tests/unit/lib/symbols/random_table.h"

enum { TABLE_MAX_BYTES = 64 << 20, TEXT_MAX_BYTES = 1 << 20 };

static const struct random_shape shapes[] = {
    {0x400000, 3000, 40, 9, 30, 60, 300, 20, 500, false},
    {0, 100, 5, 0, 1, 1, 3, 0, 2, false},
    {0x1000, 2000, 300, 3, 5, 10, 50, 5, 100000, false},
    {UINT64_C(0xffffffff81000000), 5000, 12, 40, 200, 900, 600, 50, 3000, true},
    {0x7000, 3000, 60, 9, 30, 60, 0, 60, 500, false},
    {0x400000, 20000, 30, 2000, 3000, 9000, 800, 400, SYMBOL_LINE_MAX, false},
};

static void make_table(uint64_t seed, const struct random_shape *shape, struct buf *bytes)
{
    arena_auto arena = arena_create();
    struct random_table model;
    uint64_t state = seed;
    buf_init(bytes, TABLE_MAX_BYTES);
    random_table_make(arena, &state, shape, &model);
    random_table_write(&model, bytes);
}

static struct symbol_table *open_sound(struct span bytes)
{
    struct symbol_table *table = NULL;
    struct err err = {0};
    if (symbol_table_open(bytes, &table, &err) || symbol_table_verify(table, &err))
        fail_msg("%s", err.message);
    return table;
}

static void pack(struct span bytes, struct buf *packed)
{
    struct err err = {0};
    struct symbol_table *table = open_sound(bytes);
    buf_init(packed, TABLE_MAX_BYTES);
    if (symbol_pack(table, packed, &err))
        fail_msg("%s", err.message);
    symbol_table_close(table);
    assert_true(symbol_pack_is(buf_span(packed)));
}

static void small_pack(struct buf *packed)
{
    static const struct random_shape shape = {0x1000, 500, 20, 5, 9, 20, 60, 3, 200, false};
    buf_auto bytes;
    make_table(42, &shape, &bytes);
    pack(buf_span(&bytes), packed);
}

static void assert_equal_tables(const struct symbol_table *one, const struct symbol_table *other)
{
    const struct symbol_table_sizes sizes = symbol_table_sizes(one);
    struct symbol_cursor one_cursor, other_cursor;
    struct symbol_names *one_names = symbol_names_create(one);
    struct symbol_names *other_names = symbol_names_create(other);
    buf_auto one_text, other_text;
    buf_init(&one_text, TEXT_MAX_BYTES);
    buf_init(&other_text, TEXT_MAX_BYTES);
    symbol_cursor_init(&one_cursor, one);
    symbol_cursor_init(&other_cursor, other);
    for (uint64_t at = sizes.first_address; at <= sizes.end_address; at++) {
        buf_clear(&one_text);
        buf_clear(&other_text);
        assert_true(symbols_describe(&one_cursor, one_names, at, &one_text));
        assert_true(symbols_describe(&other_cursor, other_names, at, &other_text));
        assert_true(span_equal(buf_span(&one_text), buf_span(&other_text)));
    }
    symbol_names_destroy(one_names);
    symbol_names_destroy(other_names);
}

static void an_unpacked_table_has_the_same_results(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            struct err err = {0};
            buf_auto bytes, packed, unpacked;
            make_table(seed * 1000 + i, &shapes[i], &bytes);
            pack(buf_span(&bytes), &packed);
            buf_init(&unpacked, TABLE_MAX_BYTES);
            if (symbol_unpack(buf_span(&packed), &unpacked, &err))
                fail_msg("%s", err.message);
            struct symbol_table *before = open_sound(buf_span(&bytes));
            struct symbol_table *after = open_sound(buf_span(&unpacked));
            const struct symbol_table_sizes old = symbol_table_sizes(before);
            const struct symbol_table_sizes new = symbol_table_sizes(after);
            assert_int_equal(old.records, new.records);
            assert_int_equal(old.nodes, new.nodes);
            assert_int_equal(old.first_address, new.first_address);
            assert_int_equal(old.end_address, new.end_address);
            assert_memory_equal(symbol_table_facts(before), symbol_table_facts(after),
                                sizeof(struct symbol_table_facts));
            assert_equal_tables(before, after);
            symbol_table_close(before);
            symbol_table_close(after);
        }
    }
}

static void repacking_gives_the_same_bytes(void **state)
{
    (void)state;
    buf_auto bytes, once, unpacked, twice;
    struct err err = {0};
    make_table(7, &shapes[3], &bytes);
    pack(buf_span(&bytes), &once);
    buf_init(&unpacked, TABLE_MAX_BYTES);
    assert_int_equal(symbol_unpack(buf_span(&once), &unpacked, &err), ERR_NONE);
    pack(buf_span(&unpacked), &twice);
    assert_true(span_equal(buf_span(&once), buf_span(&twice)));
}

static void an_empty_table_stays_one(void **state)
{
    (void)state;
    static const struct random_shape nothing = {0};
    buf_auto bytes, packed, unpacked;
    struct err err = {0};
    make_table(1, &nothing, &bytes);
    pack(buf_span(&bytes), &packed);
    buf_init(&unpacked, TABLE_MAX_BYTES);
    assert_int_equal(symbol_unpack(buf_span(&packed), &unpacked, &err), ERR_NONE);
    assert_true(span_equal(buf_span(&bytes), buf_span(&unpacked)));
}

static void segments_are_kept(void **state)
{
    (void)state;
    const struct symbol_table_facts facts = {0};
    const struct symbol_segment given = {.offset = 0x1000,
                                         .address = 0x401000,
                                         .file_bytes = 500,
                                         .memory_bytes = 600,
                                         .alignment = 4096,
                                         .flags = 5};
    struct err err = {0};
    buf_auto bytes, packed, unpacked;
    buf_init(&bytes, TABLE_MAX_BYTES);
    buf_init(&unpacked, TABLE_MAX_BYTES);
    struct symbol_table_writer *writer = symbol_table_writer_create(NULL);
    symbol_table_writer_segment(writer, &given);
    symbol_table_writer_symbol(writer, 0x401010, 0x401020, SPAN_LITERAL("main"));
    assert_int_equal(symbol_table_writer_finish(writer, &facts, &bytes, &err), ERR_NONE);
    symbol_table_writer_destroy(writer);
    pack(buf_span(&bytes), &packed);
    assert_int_equal(symbol_unpack(buf_span(&packed), &unpacked, &err), ERR_NONE);
    struct symbol_table *table = open_sound(buf_span(&unpacked));
    const struct symbol_segment segment = symbol_table_segment(table, 0);
    assert_memory_equal(&segment, &given, offsetof(struct symbol_segment, flags));
    assert_int_equal(segment.flags, given.flags);
    symbol_table_close(table);
}

/* ---- hostile bytes ---- */

static bool is_refused(struct span packed)
{
    struct err err = {0};
    buf_auto table;
    buf_init(&table, TABLE_MAX_BYTES);
    const enum err_code code = symbol_unpack(packed, &table, &err);
    assert_int_equal(code, err.code);
    return code != ERR_NONE;
}

static void every_changed_byte_is_detected(void **state)
{
    (void)state;
    buf_auto packed;
    small_pack(&packed);
    assert_false(is_refused(buf_span(&packed)));
    for (size_t i = 0; i < packed.size; i++) {
        packed.data[i] ^= 0x11;
        assert_true(is_refused(buf_span(&packed)));
        packed.data[i] ^= 0x11;
    }
}

static void every_truncation_is_detected(void **state)
{
    (void)state;
    buf_auto packed;
    small_pack(&packed);
    for (size_t size = 0; size < packed.size; size++) {
        /* An exact copy, so that a sanitizer detects reads beyond the end. */
        uint8_t *copy = mem_new(uint8_t, size);
        memcpy(copy, packed.data, size);
        assert_true(is_refused(span_of(copy, size)));
        mem_free(copy);
    }
}

/* Whatever the columns contain, the table is refused or valid. */
static void invalid_columns_with_valid_checksums_do_no_harm(void **state)
{
    (void)state;
    buf_auto packed, flat;
    small_pack(&packed);
    buf_init(&flat, TABLE_MAX_BYTES);
    flat_pack_open(buf_span(&packed), &flat);
    uint64_t random = 7;
    uint32_t unpacked = 0, refused = 0;
    uint8_t *copy = mem_new(uint8_t, flat.size);
    const uint32_t rounds = (uint32_t)test_rounds(4000);
    for (size_t round = 0; round < rounds; round++) {
        struct err err = {0};
        buf_auto changed, table;
        buf_init(&changed, TABLE_MAX_BYTES);
        buf_init(&table, TABLE_MAX_BYTES);
        memcpy(copy, flat.data, flat.size);
        for (uint32_t i = 1 + random_below(&random, 3); i; i--) {
            const uint32_t at = 8 + random_below(&random, (uint32_t)flat.size - 8);
            copy[at] = (uint8_t)random_next(&random);
        }
        flat_pack_close(span_of(copy, flat.size), &changed);
        if (symbol_unpack(buf_span(&changed), &table, &err)) {
            refused++;
            continue;
        }
        unpacked++;
        struct symbol_table *opened = open_sound(buf_span(&table));
        assert_equal_tables(opened, opened);
        symbol_table_close(opened);
    }
    mem_free(copy);
    assert_true(unpacked > rounds / 14 && refused > rounds / 4);
}

/* A few kilobytes must not cause an allocation of hundreds of megabytes. */
static void a_bomb_is_refused_before_it_expands(void **state)
{
    (void)state;
    buf_auto packed, flat, bomb, table;
    struct err err = {0};
    small_pack(&packed);
    buf_init(&flat, SYMBOL_PACK_FLAT_MAX_BYTES);
    flat_pack_open(buf_span(&packed), &flat);
    const uint32_t bytes = 32 << 20;
    const size_t at =
        sizeof(struct symbol_table_header) + SYMBOL_PACK_FILE_NAMES * sizeof(uint32_t);
    memcpy(flat.data + at, &bytes, sizeof(bytes));
    uint8_t *space = buf_reserve(&flat, bytes);
    memset(space, 'a', bytes);
    buf_commit(&flat, bytes);
    buf_init(&bomb, TABLE_MAX_BYTES);
    buf_init(&table, TABLE_MAX_BYTES);
    flat_pack_close(buf_span(&flat), &bomb);
    assert_true(bomb.size < 64 << 10);
    assert_int_equal(symbol_unpack(buf_span(&bomb), &table, &err), ERR_TOO_LARGE);
}

static void other_data_is_not_a_packed_table(void **state)
{
    (void)state;
    buf_auto packed, table;
    struct err err;
    buf_init(&table, TABLE_MAX_BYTES);
    assert_int_equal(symbol_unpack(SPAN_LITERAL(""), &table, &err), ERR_INVALID);
    assert_int_equal(symbol_unpack(SPAN_LITERAL("PFSYMTB1"), &table, &err), ERR_INVALID);
    assert_int_equal(symbol_unpack(SPAN_LITERAL("PFSYMPK1"), &table, &err), ERR_INVALID);
    small_pack(&packed);
    packed.data[8] = SYMBOL_PACK_VERSION + 1;
    assert_int_equal(symbol_unpack(buf_span(&packed), &table, &err), ERR_UNSUPPORTED);
}

static void a_table_past_the_callers_limit_is_refused(void **state)
{
    (void)state;
    buf_auto packed, table;
    struct err err;
    small_pack(&packed);
    buf_init(&table, 1000);
    assert_int_equal(symbol_unpack(buf_span(&packed), &table, &err), ERR_TOO_LARGE);
}

static void the_memory_for_unpacking_is_known_in_advance(void **state)
{
    (void)state;
    buf_auto packed, table;
    struct err err = {0};
    small_pack(&packed);
    buf_init(&table, TABLE_MAX_BYTES);
    assert_int_equal(symbol_unpack(buf_span(&packed), &table, &err), ERR_NONE);
    assert_true(symbol_unpack_bytes(buf_span(&packed)) > 2 * table.size);
    /* A table that its header makes invalid needs no memory. */
    assert_int_equal(symbol_unpack_bytes(buf_span(&table)), 0);
    assert_int_equal(symbol_unpack_bytes(span_of(packed.data, packed.size - 1)), 0);
    packed.data[packed.size - 1] ^= 1;
    assert_int_equal(symbol_unpack_bytes(buf_span(&packed)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unpacked_table_has_the_same_results),
        cmocka_unit_test(repacking_gives_the_same_bytes),
        cmocka_unit_test(an_empty_table_stays_one),
        cmocka_unit_test(segments_are_kept),
        cmocka_unit_test(every_changed_byte_is_detected),
        cmocka_unit_test(every_truncation_is_detected),
        cmocka_unit_test(invalid_columns_with_valid_checksums_do_no_harm),
        cmocka_unit_test(a_bomb_is_refused_before_it_expands),
        cmocka_unit_test(other_data_is_not_a_packed_table),
        cmocka_unit_test(a_table_past_the_callers_limit_is_refused),
        cmocka_unit_test(the_memory_for_unpacking_is_known_in_advance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
