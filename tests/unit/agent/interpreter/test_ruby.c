#include "tests/unit/test.h"

#include "agent/interpreter/ruby.h"
#include "agent/interpreter/ruby_lines.h"
#include "agent/interpreter/ruby_text.h"

/* ---- lines ---- */

/* Entries at positions 0, 3 and 60, with lines 7, 9 and 12. */
static struct ruby_lines make_lines(int32_t entries[9], uint64_t index[16])
{
    const int32_t numbers[] = {7, 0, 0, 9, 0, 0, 12, 0, 0};
    memcpy(entries, numbers, sizeof(numbers));
    for (uint32_t position = 0; position < 54; position++)
        index[position / 9] |= (position < 3 ? UINT64_C(1) : 2) << (position % 9 * 7);
    index[6] = 2;                        /* entries before the block */
    index[8] = UINT64_C(1) << (60 - 54); /* entries before each part of the block */
    for (uint32_t part = 1; part < 8; part++)
        index[7] |= UINT64_C(1) << (9 * (part - 1));
    return (struct ruby_lines){
        .entries = span_of(entries, 36), .entry_bytes = 12, .index = span_of(index, 128)};
}

static void lines_are_found_by_the_index(void **state)
{
    (void)state;
    int32_t entries[9];
    uint64_t index[16] = {0};
    const struct ruby_lines lines = make_lines(entries, index);
    static const uint32_t wanted[][2] = {{0, 7},  {2, 7},   {3, 9},    {53, 9},   {54, 9},
                                         {59, 9}, {60, 12}, {117, 12}, {118, 12}, {565, 12}};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        assert_int_equal(ruby_lines_find(&lines, wanted[i][0]), wanted[i][1]);
    assert_int_equal(ruby_lines_find(&lines, 566), 0); /* after the end of the index */
    assert_int_equal(ruby_lines_find(&lines, UINT64_MAX), 0);
}

static void one_entry_needs_no_index(void **state)
{
    (void)state;
    const int32_t entry[2] = {5, 0};
    const struct ruby_lines lines = {.entries = span_of(entry, 8), .entry_bytes = 8};
    assert_int_equal(ruby_lines_find(&lines, 0), 5);
    assert_int_equal(ruby_lines_find(&lines, 100), 5);
}

static void an_index_is_as_long_as_its_sequence_needs(void **state)
{
    (void)state;
    assert_int_equal(ruby_lines_index_bytes(0), 0);
    assert_int_equal(ruby_lines_index_bytes(1), 8);
    assert_int_equal(ruby_lines_index_bytes(53), 48);
    assert_int_equal(ruby_lines_index_bytes(54), 48);
    assert_int_equal(ruby_lines_index_bytes(55), 128);
    assert_int_equal(ruby_lines_index_bytes(566), 128);
    assert_int_equal(ruby_lines_index_bytes(567), 208);
}

/* ---- text ---- */

static void short_and_long_strings_are_found(void **state)
{
    (void)state;
    const struct ruby_layout *old = ruby_layout_find(3 << 8 | 1);
    const struct ruby_layout *late = ruby_layout_find(3 << 8 | 3);
    struct ruby_text_location location;
    uint64_t object[5] = {5 | 3 << 14, 0, 4711, 0x1000, 0};
    assert_true(ruby_text_find(old, (const uint8_t *)object, &location));
    assert_true(location.address == 0 && location.offset == 16 && location.bytes == 3);
    assert_true(ruby_text_find(late, (const uint8_t *)object, &location));
    assert_true(location.address == 0 && location.offset == 24 &&
                location.bytes == RUBY_TEXT_MAX_BYTES);
    object[0] = 5 | 1 << 13;
    object[2] = 100;
    assert_true(ruby_text_find(old, (const uint8_t *)object, &location));
    assert_true(location.address == 0x1000 && location.bytes == 100);
    object[0] = 7; /* an array */
    assert_false(ruby_text_find(old, (const uint8_t *)object, &location));
}

static void invalid_utf8_is_replaced(void **state)
{
    (void)state;
    uint8_t good[] = {'a', 0xC3, 0xA4}, bad[] = {'a', 0xE4, 'b'};
    ruby_text_clean(good, sizeof(good));
    ruby_text_clean(bad, sizeof(bad));
    assert_memory_equal(good, "a\xC3\xA4", 3);
    assert_memory_equal(bad, "a?b", 3);
}

/* ---- layouts ---- */

static void layouts_fit_what_the_kernel_reads(void **state)
{
    (void)state;
    static const uint32_t versions[] = {2 << 8 | 7, 3 << 8,     3 << 8 | 1,
                                        3 << 8 | 2, 3 << 8 | 3, 3 << 8 | 4};
    for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
        const struct ruby_layout *layout = ruby_layout_find(versions[i]);
        assert_non_null(layout);
        const struct interpreter_layout *frames = &layout->frames;
        assert_true(frames->frame_bytes < INTERPRETER_PIECE_BYTES);
        assert_true(frames->code_bytes < INTERPRETER_PIECE_BYTES);
        for (int word = 0; word < 3; word++)
            assert_true(frames->code_words[word] + 8 <= frames->code_bytes);
        assert_true(frames->frame_environment + 8 <= frames->frame_bytes);
        assert_true(frames->frame_previous >= frames->frame_bytes);
        assert_true(layout->line_bytes >= 4 && layout->body_lines + 32 <= 256);
    }
    assert_null(ruby_layout_find(2 << 8 | 6));
    assert_null(ruby_layout_find(3 << 8 | 5));
    assert_null(ruby_layout_find(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_found_by_the_index),
        cmocka_unit_test(one_entry_needs_no_index),
        cmocka_unit_test(an_index_is_as_long_as_its_sequence_needs),
        cmocka_unit_test(short_and_long_strings_are_found),
        cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(layouts_fit_what_the_kernel_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
