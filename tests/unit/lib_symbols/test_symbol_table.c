#include "tests/unit/test.h"

#include "lib/base/crc32c.h"
#include "lib/symbols/symbol_table_format.h"
#include "tests/unit/lib_symbols/random_table.h"

enum { TABLE_MAX_BYTES = 64 << 20, TEXT_MAX_BYTES = 1 << 20 };

static struct symbol_table *open_table(const struct buf *bytes)
{
    struct symbol_table *table = NULL;
    struct err err = {0};
    if (symbol_table_open(buf_span(bytes), &table, &err))
        print_error("%s\n", err.message);
    assert_non_null(table);
    return table;
}

static void assert_sound(const struct symbol_table *table)
{
    struct err err = {0};
    if (symbol_table_verify(table, &err))
        fail_msg("%s", err.message);
}

/* ---- against a model ---- */

static void assert_same_at(const struct random_table *model, struct symbol_cursor *cursor,
                           struct symbol_names *names, uint64_t address)
{
    buf_auto expected, said;
    buf_init(&expected, TEXT_MAX_BYTES);
    buf_init(&said, TEXT_MAX_BYTES);
    random_table_say(model, address, &expected);
    assert_true(symbols_say(cursor, names, address, &said));
    if (!span_equal(buf_span(&expected), buf_span(&said)))
        fail_msg("0x%" PRIx64 "\nexpected:\n%.*s\nsaid:\n%.*s", address,
                 SPAN_PRINT(buf_span(&expected)), SPAN_PRINT(buf_span(&said)));
}

static void assert_says_the_same(uint64_t seed, const struct random_shape *shape)
{
    arena_auto arena = arena_create();
    struct random_table model;
    buf_auto bytes;
    buf_init(&bytes, TABLE_MAX_BYTES);
    uint64_t state = seed;
    random_table_make(arena, &state, shape, &model);
    random_table_write(&model, &bytes);
    struct symbol_table *table = open_table(&bytes);
    assert_sound(table);
    struct symbol_names *names = symbol_names_create(table);
    struct symbol_cursor cursor;
    symbol_cursor_init(&cursor, table);
    const uint64_t before = shape->first_address > 10 ? shape->first_address - 10 : 0;
    const uint64_t end = shape->first_address + shape->span + 5 * shape->range_bytes_max;
    for (uint64_t at = before; at < end; at++)
        assert_same_at(&model, &cursor, names, at);
    for (uint32_t i = 0; i < 2000; i++)
        assert_same_at(&model, &cursor, names,
                       before + random_below(&state, (uint32_t)(end - before)));
    symbol_names_destroy(names);
    symbol_table_close(table);
}

static void finds_what_trying_every_range_finds(void **state)
{
    (void)state;
    static const struct random_shape shapes[] = {
        {0x400000, 3000, 40, 9, 30, 60, 300, 20, 500, false},
        {0, 100, 5, 0, 1, 1, 3, 0, 2, false},
        {0x1000, 2000, 300, 3, 5, 10, 50, 5, 100000, false},
        {UINT64_C(0xffffffff81000000), 5000, 12, 40, 200, 900, 600, 50, 3000, true},
        {0x7000, 3000, 60, 9, 30, 60, 0, 60, 500, false},
        {0x400000, 20000, 30, 2000, 3000, 9000, 800, 400, SYMBOL_LINE_MAX, false},
    };
    for (uint64_t seed = 1; seed <= 4; seed++) {
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
            assert_says_the_same(seed * 1000 + i, &shapes[i]);
    }
}

static void knows_nothing_in_an_empty_table(void **state)
{
    (void)state;
    buf_auto bytes;
    buf_init(&bytes, TABLE_MAX_BYTES);
    const struct random_table nothing = {0};
    random_table_write(&nothing, &bytes);
    struct symbol_table *table = open_table(&bytes);
    assert_sound(table);
    struct symbol_cursor cursor;
    symbol_cursor_init(&cursor, table);
    assert_int_equal(symbol_cursor_find(&cursor, 0), 0);
    assert_int_equal(symbol_cursor_find(&cursor, UINT64_MAX), 0);
    assert_int_equal(symbol_table_facts(table)->machine, 62);
    assert_int_equal(symbol_table_facts(table)->id_bytes, 20);
    symbol_table_close(table);
}

/* ---- damage ---- */

static void small_table(struct buf *bytes)
{
    arena_auto arena = arena_create();
    static const struct random_shape shape = {.first_address = 0x1000,
                                              .span = 600,
                                              .range_bytes_max = 20,
                                              .files = 5,
                                              .functions = 20,
                                              .nodes = 50,
                                              .ranges = 60,
                                              .symbols = 5,
                                              .line_max = 200};
    struct random_table model;
    uint64_t state = 42;
    random_table_make(arena, &state, &shape, &model);
    random_table_write(&model, bytes);
}

/* Is the table refused by open or verify? */
static bool is_refused(struct span bytes)
{
    struct symbol_table *table = NULL;
    struct err err = {0};
    enum err_code code = symbol_table_open(bytes, &table, &err);
    if (!code)
        code = symbol_table_verify(table, &err);
    symbol_table_close(table);
    assert_int_equal(code, err.code);
    return code != ERR_NONE;
}

static void every_changed_byte_is_noticed(void **state)
{
    (void)state;
    buf_auto bytes;
    buf_init(&bytes, TABLE_MAX_BYTES);
    small_table(&bytes);
    assert_false(is_refused(buf_span(&bytes)));
    for (size_t i = 0; i < bytes.size; i++) {
        for (unsigned bit = 0; bit < 8; bit += 3) {
            bytes.data[i] ^= (uint8_t)(1u << bit);
            assert_true(is_refused(buf_span(&bytes)));
            bytes.data[i] ^= (uint8_t)(1u << bit);
        }
    }
    assert_false(is_refused(buf_span(&bytes)));
}

static void every_cut_is_noticed(void **state)
{
    (void)state;
    buf_auto bytes;
    buf_init(&bytes, TABLE_MAX_BYTES);
    small_table(&bytes);
    for (size_t size = 0; size < bytes.size; size++) {
        /* In memory of its own, so that a sanitizer sees what reads behind it. */
        uint8_t *copy = mem_new(uint8_t, size);
        memcpy(copy, bytes.data, size);
        assert_true(is_refused(span_of(copy, size)));
        mem_free(copy);
    }
}

/* Checksums for what is there now. */
static void seal(uint8_t *bytes, size_t size)
{
    struct symbol_table_header header;
    memcpy(&header, bytes, sizeof(header));
    const size_t places = sizeof(header);
    for (uint32_t i = 0; i < header.section_count; i++) {
        struct symbol_table_section_place place;
        memcpy(&place, bytes + places + i * sizeof(place), sizeof(place));
        const uint64_t padded = (place.bytes + 63) / 64 * 64;
        if (place.offset > size || padded > size - place.offset)
            continue;
        place.crc = crc32c(span_of(bytes + place.offset, (size_t)padded));
        memcpy(bytes + places + i * sizeof(place), &place, sizeof(place));
    }
    header.crc = 0;
    memcpy(bytes, &header, sizeof(header));
    const size_t head =
        (places + header.section_count * sizeof(struct symbol_table_section_place) + 63) / 64 * 64;
    header.crc = crc32c(span_of(bytes, head));
    memcpy(bytes, &header, sizeof(header));
}

/* Whatever stands there under right checksums: it is refused, or every address has an answer. */
static void what_is_sealed_but_wrong_does_no_harm(void **state)
{
    (void)state;
    buf_auto bytes, said;
    buf_init(&bytes, TABLE_MAX_BYTES);
    buf_init(&said, TEXT_MAX_BYTES);
    small_table(&bytes);
    uint8_t *copy = mem_new(uint8_t, bytes.size);
    uint64_t random = 7;
    uint32_t opened = 0, refused = 0;
    for (size_t round = 0; round < 6000; round++) {
        memcpy(copy, bytes.data, bytes.size);
        for (uint32_t i = 1 + random_below(&random, 3); i; i--) {
            const size_t at = 608 + random_below(&random, (uint32_t)bytes.size - 608);
            copy[at] = (uint8_t)random_next(&random);
        }
        seal(copy, bytes.size);
        struct symbol_table *table;
        struct err err;
        if (symbol_table_open(span_of(copy, bytes.size), &table, &err))
            continue;
        opened++;
        const bool is_sound = !symbol_table_verify(table, &err);
        refused += !is_sound;
        struct symbol_names *names = symbol_names_create(table);
        struct symbol_cursor cursor;
        symbol_cursor_init(&cursor, table);
        for (uint64_t address = 0xff0; address < 0x1300; address += 3) {
            buf_clear(&said);
            const bool has_names = symbols_say(&cursor, names, address, &said);
            assert_true(has_names || !is_sound);
        }
        symbol_names_destroy(names);
        symbol_table_close(table);
    }
    mem_free(copy);
    assert_true(opened > 3000 && refused > 500);
}

static void what_is_no_table_is_said_to_be_none(void **state)
{
    (void)state;
    struct symbol_table *table;
    struct err err;
    assert_int_equal(symbol_table_open(SPAN_LITERAL(""), &table, &err), ERR_INVALID);
    assert_int_equal(symbol_table_open(SPAN_LITERAL("\177ELF"), &table, &err), ERR_INVALID);
    buf_auto bytes;
    buf_init(&bytes, TABLE_MAX_BYTES);
    small_table(&bytes);
    bytes.data[8] = 2;
    assert_int_equal(symbol_table_open(buf_span(&bytes), &table, &err), ERR_UNSUPPORTED);
}

static void a_section_of_another_kind_is_skipped(void **state)
{
    (void)state;
    buf_auto bytes;
    buf_init(&bytes, TABLE_MAX_BYTES);
    small_table(&bytes);
    struct symbol_table_header header;
    memcpy(&header, bytes.data, sizeof(header));
    struct symbol_table_section_place place;
    const size_t end = sizeof(header) + header.section_count * sizeof(place);
    assert_true(end + sizeof(place) <= (end + 63) / 64 * 64); /* there is room for one more */
    static const char more[64] = "https://example.com/source";
    place = (struct symbol_table_section_place){
        .kind = 1000, .offset = bytes.size, .bytes = sizeof(more)};
    memcpy(bytes.data + end, &place, sizeof(place));
    buf_append(&bytes, more, sizeof(more));
    header.section_count++;
    header.table_bytes = bytes.size;
    memcpy(bytes.data, &header, sizeof(header));
    seal(bytes.data, bytes.size);
    assert_false(is_refused(buf_span(&bytes)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_trying_every_range_finds),
        cmocka_unit_test(knows_nothing_in_an_empty_table),
        cmocka_unit_test(every_changed_byte_is_noticed),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(what_is_sealed_but_wrong_does_no_harm),
        cmocka_unit_test(what_is_no_table_is_said_to_be_none),
        cmocka_unit_test(a_section_of_another_kind_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
