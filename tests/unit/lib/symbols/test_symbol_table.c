#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "tests/unit/lib/symbols/random_table.h"

#include <sys/mman.h>
#include <unistd.h>

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

/* ---- comparison with a model ---- */

static void assert_same_at(const struct random_table *model, struct symbol_cursor *cursor,
                           struct symbol_names *names, uint64_t address)
{
    buf_auto expected, actual;
    buf_init(&expected, TEXT_MAX_BYTES);
    buf_init(&actual, TEXT_MAX_BYTES);
    random_table_describe(model, address, &expected);
    assert_true(symbols_describe(cursor, names, address, &actual));
    if (!span_equal(buf_span(&expected), buf_span(&actual)))
        fail_msg("0x%" PRIx64 "\nexpected:\n%.*s\nsaid:\n%.*s", address,
                 SPAN_PRINT(buf_span(&expected)), SPAN_PRINT(buf_span(&actual)));
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

static void finds_the_same_as_a_search_of_all_ranges(void **state)
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

static void an_empty_table_has_no_results(void **state)
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

static void the_same_input_gives_the_same_bytes(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    static const struct random_shape shape = {0x400000, 3000, 40, 9, 30, 60, 300, 20, 500, false};
    struct random_table model;
    uint64_t random = 3;
    random_table_make(arena, &random, &shape, &model);
    buf_auto one, other;
    buf_init(&one, TABLE_MAX_BYTES);
    buf_init(&other, TABLE_MAX_BYTES);
    random_table_write(&model, &one);
    random_table_write(&model, &other);
    assert_true(span_equal(buf_span(&one), buf_span(&other)));
}

/* ---- the writer ---- */

struct made {
    struct buf bytes;
    struct symbol_table *table;
    struct symbol_names *names;
    struct symbol_cursor cursor;
};

static void made_open(struct made *made, struct symbol_table_writer *writer)
{
    const struct symbol_table_facts facts = {0};
    struct err err = {0};
    buf_init(&made->bytes, TABLE_MAX_BYTES);
    assert_int_equal(symbol_table_writer_finish(writer, &facts, &made->bytes, &err), ERR_NONE);
    symbol_table_writer_destroy(writer);
    made->table = open_table(&made->bytes);
    assert_sound(made->table);
    made->names = symbol_names_create(made->table);
    symbol_cursor_init(&made->cursor, made->table);
}

static void made_close(struct made *made)
{
    symbol_names_destroy(made->names);
    symbol_table_close(made->table);
    buf_fini(&made->bytes);
}

static void assert_says(struct made *made, uint64_t address, const char *expected)
{
    buf_auto actual;
    buf_init(&actual, TEXT_MAX_BYTES);
    assert_true(symbols_describe(&made->cursor, made->names, address, &actual));
    if (!span_equal_text(buf_span(&actual), expected))
        fail_msg("0x%" PRIx64 " has the description\n%.*s", address, SPAN_PRINT(buf_span(&actual)));
}

static void code_outside_of_executable_segments_is_dropped(void **state)
{
    (void)state;
    struct symbol_table_writer *writer = symbol_table_writer_create(NULL);
    const uint32_t node = symbol_table_writer_node(
        writer, SYMBOL_NONE,
        symbol_table_writer_function(
            writer,
            &(struct symbol_function){.linkage_name = SPAN_LITERAL("f"), .file = SYMBOL_NONE}),
        SYMBOL_NONE, 0);
    symbol_table_writer_segment(
        writer, &(struct symbol_segment){.address = 0x1000, .memory_bytes = 0x800, .flags = 5});
    symbol_table_writer_segment(
        writer, &(struct symbol_segment){.address = 0x3000, .memory_bytes = 0x800, .flags = 6});
    symbol_table_writer_range(writer, 0, 0x100, node, SYMBOL_NONE, 1);
    symbol_table_writer_range(writer, 0x1700, 0x1900, node, SYMBOL_NONE, 2);
    symbol_table_writer_range(writer, 0x3000, 0x3100, node, SYMBOL_NONE, 3);
    symbol_table_writer_range(writer, UINT64_MAX - 10, UINT64_MAX, node, SYMBOL_NONE, 4);
    symbol_table_writer_symbol(writer, 0x10, 0x20, SPAN_LITERAL("g"));
    struct made made;
    made_open(&made, writer);
    assert_int_equal(symbol_table_sizes(made.table).functions, 1);
    assert_says(&made, 0x10, "");
    assert_says(&made, 0x1700, "f [f] ?:2\n");
    assert_says(&made, 0x17ff, "f [f] ?:2\n");
    assert_says(&made, 0x1800, "");
    assert_says(&made, 0x3000, "");
    made_close(&made);
}

static void no_name_and_no_depth_is_too_long(void **state)
{
    (void)state;
    struct symbol_table_writer *writer = symbol_table_writer_create(NULL);
    char *name = mem_new(char, 100001);
    memset(name, 'n', 100000);
    const uint32_t file = symbol_table_writer_file(writer, span_text(name));
    memcpy(name + SYMBOL_NAME_MAX_BYTES - 4, "\u00e4\u00e4", 4); /* truncated within one of them */
    const uint32_t function = symbol_table_writer_function(
        writer, &(struct symbol_function){.name = span_text(name), .file = file, .line = 7});
    uint32_t node = SYMBOL_NONE, depth = 0;
    for (uint32_t next; depth < 1000; depth++, node = next) {
        next = symbol_table_writer_node(writer, node, function, file, depth);
        if (next == SYMBOL_NONE)
            break;
    }
    assert_int_equal(depth, SYMBOL_DEPTH_MAX);
    symbol_table_writer_range(writer, 0x1000, 0x1001, node, file, SYMBOL_LINE_MAX + 1);
    struct made made;
    made_open(&made, writer);
    assert_int_equal(symbol_cursor_find(&made.cursor, 0x1000), SYMBOL_DEPTH_MAX);
    assert_int_equal(made.cursor.frames[0].line, 0);
    assert_int_equal(made.cursor.frames[1].line, SYMBOL_DEPTH_MAX - 1);
    struct symbol_name actual;
    struct span path;
    struct err err;
    assert_int_equal(symbol_names_function(made.names, 0, &actual, &err), ERR_NONE);
    assert_true(actual.full.size <= SYMBOL_NAME_MAX_BYTES && span_is_utf8(actual.full));
    assert_true(span_ends_with(actual.full, "n\u2026"));
    assert_int_equal(symbol_names_file(made.names, 0, &path, &err), ERR_NONE);
    assert_int_equal(path.size, SYMBOL_PATH_MAX_BYTES);
    assert_int_equal(symbol_names_file(made.names, 1, &path, &err), ERR_NOT_FOUND);
    made_close(&made);
    mem_free(name);
}

static void an_exceeded_limit_is_reported_at_the_end(void **state)
{
    (void)state;
    struct symbol_table_writer *writer = symbol_table_writer_create(NULL);
    const struct symbol_table_facts facts = {0};
    for (uint32_t i = 0; i <= SYMBOL_FILE_MAX_COUNT; i++)
        symbol_table_writer_file(writer, span_of(&i, sizeof(i)));
    buf_auto bytes;
    buf_init(&bytes, TABLE_MAX_BYTES);
    struct err err;
    assert_int_equal(symbol_table_writer_finish(writer, &facts, &bytes, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, "1048576 files"));
    symbol_table_writer_destroy(writer);

    writer = symbol_table_writer_create(NULL);
    symbol_table_writer_symbol(writer, 0, 1, SPAN_LITERAL("f"));
    symbol_table_writer_symbol(writer, UINT64_C(3) << 30, (UINT64_C(3) << 30) + 1,
                               SPAN_LITERAL("g"));
    assert_int_equal(symbol_table_writer_finish(writer, &facts, &bytes, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, "2 GiB"));
    symbol_table_writer_destroy(writer);
}

static void better_quality_ranks_higher(void **state)
{
    (void)state;
    static const struct symbol_table_facts best_first[] = {
        {.quality = SYMBOL_HAS_DWARF | SYMBOL_HAS_LINES | SYMBOL_HAS_INLINES | SYMBOL_HAS_SYMTAB},
        {.quality = SYMBOL_HAS_DWARF | SYMBOL_HAS_LINES | SYMBOL_HAS_INLINES | SYMBOL_IS_PARTIAL},
        {.quality = SYMBOL_HAS_DWARF | SYMBOL_HAS_LINES | SYMBOL_HAS_INLINES | SYMBOL_IS_PARTIAL |
                    SYMBOL_LACKS_SHARED},
        {.quality = SYMBOL_HAS_LINES | SYMBOL_HAS_SYMTAB | SYMBOL_IS_PARTIAL},
        {.quality = SYMBOL_HAS_SYMTAB | SYMBOL_HAS_DYNSYM},
        {.quality = SYMBOL_HAS_MINI | SYMBOL_HAS_DYNSYM},
        {.quality = SYMBOL_HAS_DYNSYM},
        {.quality = 0}};
    for (size_t i = 1; i < sizeof(best_first) / sizeof(best_first[0]); i++)
        assert_true(symbol_quality_rank(&best_first[i - 1]) > symbol_quality_rank(&best_first[i]));
}

/* ---- damaged tables ---- */

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

/* Whether open or verify refuses the table. */
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

static void every_changed_byte_is_detected(void **state)
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

static void every_truncation_is_detected(void **state)
{
    (void)state;
    buf_auto bytes;
    buf_init(&bytes, TABLE_MAX_BYTES);
    small_table(&bytes);
    for (size_t size = 0; size < bytes.size; size++) {
        /* An exact copy, so that a sanitizer detects reads beyond the end. */
        uint8_t *copy = mem_new(uint8_t, size);
        memcpy(copy, bytes.data, size);
        assert_true(is_refused(span_of(copy, size)));
        mem_free(copy);
    }
}

/* With valid checksums, the table is refused or has a result for every address. */
static void invalid_contents_with_valid_checksums_do_no_harm(void **state)
{
    (void)state;
    buf_auto bytes, actual;
    buf_init(&bytes, TABLE_MAX_BYTES);
    buf_init(&actual, TEXT_MAX_BYTES);
    small_table(&bytes);
    uint8_t *copy = mem_new(uint8_t, bytes.size);
    uint64_t random = 7;
    uint32_t opened = 0, refused = 0;
    const uint32_t rounds = (uint32_t)test_rounds(6000);
    for (size_t round = 0; round < rounds; round++) {
        memcpy(copy, bytes.data, bytes.size);
        for (uint32_t i = 1 + random_below(&random, 3); i; i--) {
            const size_t at = 608 + random_below(&random, (uint32_t)bytes.size - 608);
            copy[at] = (uint8_t)random_next(&random);
        }
        symbols_seal(copy, bytes.size);
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
            buf_clear(&actual);
            const bool has_names = symbols_describe(&cursor, names, address, &actual);
            assert_true(has_names || !is_sound);
        }
        symbol_names_destroy(names);
        symbol_table_close(table);
    }
    mem_free(copy);
    assert_true(opened > rounds / 2 && refused > rounds / 12);
}

/* A table whose pages became unreadable after it was opened: lookups do no harm, and are reported.
 */
static void pages_that_became_unreadable_are_reported(void **state)
{
    (void)state;
    struct symbol_table *table;
    struct err err = {0};
    buf_auto bytes;
    buf_init(&bytes, 1 << 20);
    small_table(&bytes);
    const int fd = memfd_create("table", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes.data, bytes.size), bytes.size);
    assert_int_equal(symbol_table_open_fd(fd, &table, &err), ERR_NONE);
    assert_int_equal(symbol_table_check(table, &err), ERR_NONE);
    assert_int_equal(ftruncate(fd, 0), 0); /* reading a page raises SIGBUS from now on */
    const struct symbol_table_sizes sizes = symbol_table_sizes(table);
    struct symbol_cursor cursor;
    symbol_cursor_init(&cursor, table);
    for (uint64_t at = sizes.first_address; at < sizes.end_address; at++)
        (void)symbol_cursor_find(&cursor, at);
    assert_int_equal(symbol_table_check(table, &err), ERR_IO);
    assert_true(err.is_unreadable);
    symbol_table_close(table);
    close(fd);
}

static void other_data_is_not_a_table(void **state)
{
    (void)state;
    struct symbol_table *table;
    struct err err;
    assert_int_equal(symbol_table_open(SPAN_LITERAL(""), &table, &err), ERR_INVALID);
    assert_int_equal(symbol_table_open(SPAN_LITERAL("\177ELF"), &table, &err), ERR_INVALID);
    buf_auto bytes;
    buf_init(&bytes, TABLE_MAX_BYTES);
    small_table(&bytes);
    bytes.data[8] = SYMBOL_TABLE_VERSION + 1;
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
    struct symbol_table_section_entry entry;
    const size_t end = sizeof(header) + header.section_count * sizeof(entry);
    assert_true(end + sizeof(entry) <= (end + 63) / 64 * 64); /* there is space for one more */
    static const char more[64] = "https://example.com/source";
    entry = (struct symbol_table_section_entry){
        .kind = 1000, .offset = bytes.size, .bytes = sizeof(more)};
    memcpy(bytes.data + end, &entry, sizeof(entry));
    buf_append(&bytes, more, sizeof(more));
    header.section_count++;
    header.table_bytes = bytes.size;
    memcpy(bytes.data, &header, sizeof(header));
    symbols_seal(bytes.data, bytes.size);
    assert_false(is_refused(buf_span(&bytes)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_same_as_a_search_of_all_ranges),
        cmocka_unit_test(an_empty_table_has_no_results),
        cmocka_unit_test(the_same_input_gives_the_same_bytes),
        cmocka_unit_test(code_outside_of_executable_segments_is_dropped),
        cmocka_unit_test(no_name_and_no_depth_is_too_long),
        cmocka_unit_test(an_exceeded_limit_is_reported_at_the_end),
        cmocka_unit_test(better_quality_ranks_higher),
        cmocka_unit_test(every_changed_byte_is_detected),
        cmocka_unit_test(every_truncation_is_detected),
        cmocka_unit_test(invalid_contents_with_valid_checksums_do_no_harm),
        cmocka_unit_test(pages_that_became_unreadable_are_reported),
        cmocka_unit_test(other_data_is_not_a_table),
        cmocka_unit_test(a_section_of_another_kind_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
