#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/io/parquet.h"

/* tests/integration/store/test_export.py reads the files with DuckDB; these tests check what such a
 * reader does not see. */

static const struct parquet_column columns[] = {
    {SPAN_LITERAL("number"), PARQUET_ONE, {{"", PARQUET_I64}}, 1},
    {SPAN_LITERAL("texts"), PARQUET_LIST, {{"", PARQUET_TEXT}}, 1},
};

struct file {
    struct buf bytes;
    size_t append_count;
    size_t fails_at; /* 0: never */
};

static enum err_code append(void *context, struct span bytes, struct err *err)
{
    struct file *file = context;
    if (++file->append_count == file->fails_at)
        return err_set(err, ERR_IO, "no space");
    buf_append_span(&file->bytes, bytes);
    return ERR_NONE;
}

static struct parquet_writer *begin(struct file *file)
{
    buf_init(&file->bytes, 1 << 30);
    return parquet_writer_create(columns, 2, (struct parquet_limits){0},
                                 (struct parquet_sink){.append = append, .context = file});
}

static enum err_code add_row(struct parquet_writer *writer, int64_t number, uint32_t text_count,
                             struct err *err)
{
    uint32_t texts[8];
    const uint32_t value = parquet_add(writer, 0, &(struct parquet_value){.number = number});
    for (uint32_t i = 0; i < text_count; i++)
        texts[i] = parquet_add(writer, 1, &(struct parquet_value){.text = span_text("a text")});
    parquet_append(writer, 0, &value, 1);
    parquet_append(writer, 1, texts, text_count);
    return parquet_end_row(writer, err);
}

static void check_ends(const struct file *file)
{
    const struct span bytes = buf_span(&file->bytes);
    uint32_t footer_bytes;
    assert_true(bytes.size > 12);
    assert_memory_equal(bytes.data, "PAR1", 4);
    assert_memory_equal(bytes.data + bytes.size - 4, "PAR1", 4);
    memcpy(&footer_bytes, bytes.data + bytes.size - 8, sizeof(footer_bytes));
    assert_true(footer_bytes < bytes.size - 8);
    assert_int_equal(bytes.data[bytes.size - 9], 0); /* the end of its struct */
}

static void a_file_without_rows_is_valid(void **state)
{
    struct file file = {.fails_at = 0};
    struct err err;
    struct parquet_writer *writer = begin(&file);
    (void)state;
    assert_int_equal(parquet_finish(writer, NULL, 0, &err), ERR_NONE);
    check_ends(&file);
    parquet_writer_destroy(writer);
    buf_fini(&file.bytes);
}

static void equal_values_are_one_entry_until_their_group_is_written(void **state)
{
    struct file file = {.fails_at = 0};
    struct err err;
    struct parquet_writer *writer = begin(&file);
    const struct parquet_value text = {.text = SPAN_LITERAL("x")};
    (void)state;
    const uint32_t epoch = parquet_epoch(writer);
    assert_int_equal(parquet_add(writer, 1, &text), parquet_add(writer, 1, &text));
    for (uint32_t i = 0; i < PARQUET_GROUP_ROWS; i++) {
        assert_int_equal(parquet_epoch(writer), epoch);
        assert_int_equal(add_row(writer, i, i % 8, &err), ERR_NONE);
    }
    assert_int_not_equal(parquet_epoch(writer), epoch);
    assert_true(parquet_memory(writer) < 1 << 16);
    assert_int_equal(parquet_finish(writer, NULL, 0, &err), ERR_NONE);
    check_ends(&file);
    parquet_writer_destroy(writer);
    buf_fini(&file.bytes);
}

static void errors_of_the_sink_are_returned(void **state)
{
    (void)state;
    for (size_t fails_at = 1; fails_at <= 4; fails_at++) { /* magic, two columns, the end */
        struct file file = {.fails_at = fails_at};
        struct err err;
        struct parquet_writer *writer = begin(&file);
        assert_int_equal(add_row(writer, 1, 3, &err), ERR_NONE);
        assert_int_equal(parquet_finish(writer, NULL, 0, &err), ERR_IO);
        assert_string_equal(err.message, "no space");
        parquet_writer_destroy(writer);
        buf_fini(&file.bytes);
    }
}

/* Appends 1,000 rows in one row group; checks the magic, the pages and the end. */
static size_t count_appends(struct parquet_limits limits)
{
    struct file file = {.fails_at = 0};
    struct err err;
    buf_init(&file.bytes, 1 << 30);
    struct parquet_writer *writer = parquet_writer_create(
        columns, 2, limits, (struct parquet_sink){.append = append, .context = &file});
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(add_row(writer, i, i % 8, &err), ERR_NONE);
    assert_int_equal(parquet_finish(writer, NULL, 0, &err), ERR_NONE);
    check_ends(&file);
    parquet_writer_destroy(writer);
    buf_fini(&file.bytes);
    return file.append_count;
}

/* test_export.py reads the values. 3,500 texts need 4 bytes each with a dictionary, 10 without;
 * 1,000 numbers need 8. */
static void large_column_chunks_have_several_pages_and_large_dictionaries_none(void **state)
{
    (void)state;
    assert_int_equal(count_appends((struct parquet_limits){0}), 2 + 1 + 2);
    assert_in_range(count_appends((struct parquet_limits){.page_bytes = 2000}), 2 + 1 + 4 + 6,
                    2 + 1 + 4 + 7);
    assert_in_range(
        count_appends((struct parquet_limits){.page_bytes = 2000, .dictionary_bytes = 9}),
        2 + 4 + 16, 2 + 4 + 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_without_rows_is_valid),
        cmocka_unit_test(equal_values_are_one_entry_until_their_group_is_written),
        cmocka_unit_test(errors_of_the_sink_are_returned),
        cmocka_unit_test(large_column_chunks_have_several_pages_and_large_dictionaries_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
