#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "lib/symbols/symbol_address.h"
#include "tests/unit/lib/symbols/random_table.h"

enum { READ = 4, WRITE = 2, EXECUTE = 1, TABLE_MAX_BYTES = 1 << 20 };

static void write_table(const struct symbol_segment *segments, size_t count, struct buf *output)
{
    struct symbol_table_writer *writer = symbol_table_writer_create(NULL);
    const struct symbol_table_facts facts = {0};
    struct err err;
    for (size_t i = 0; i < count; i++)
        symbol_table_writer_segment(writer, &segments[i]);
    assert_int_equal(symbol_table_writer_finish(writer, &facts, output, &err), ERR_NONE);
    symbol_table_writer_destroy(writer);
}

struct lookup {
    struct symbol_mapping mapping;
    uint64_t address;
    enum symbol_address_result result;
    uint64_t expected;
};

static void assert_found(const struct symbol_segment *segments, size_t segment_count,
                         const struct lookup *lookups, size_t count)
{
    buf_auto bytes;
    buf_init(&bytes, TABLE_MAX_BYTES);
    write_table(segments, segment_count, &bytes);
    struct symbol_table *table;
    struct err err;
    assert_int_equal(symbol_table_open(buf_span(&bytes), &table, &err), ERR_NONE);
    assert_int_equal(symbol_table_verify(table, &err), ERR_NONE);
    for (size_t i = 0; i < count; i++) {
        uint64_t found = 0;
        assert_int_equal(
            symbol_address_find(table, &lookups[i].mapping, lookups[i].address, &found),
            lookups[i].result);
        assert_int_equal(found, lookups[i].expected);
    }
    symbol_table_close(table);
}
#define ASSERT_FOUND(segments, lookups)                                                            \
    assert_found(segments, sizeof(segments) / sizeof(segments[0]), lookups,                        \
                 sizeof(lookups) / sizeof(lookups[0]))

/* Program headers of Debian 12's libc; a process maps its code at 0x7f0000026000. */
static void program_headers_convert_offsets_to_addresses(void **state)
{
    (void)state;
    static const struct symbol_segment libc[] = {
        {0x000000, 0x000000, 0x025388, 0x025388, 0x1000, READ},
        {0x026000, 0x026000, 0x1550fc, 0x1550fc, 0x1000, READ | EXECUTE},
        {0x17c000, 0x17c000, 0x052c31, 0x052c31, 0x1000, READ},
        {0x1cf8d0, 0x1cf8d0, 0x004f98, 0x012680, 0x1000, READ | WRITE}};
    static const struct symbol_mapping code = {0x7f0000026000, 0x7f000017c000, 0x26000};
    static const struct symbol_mapping data = {0x7f000017c000, 0x7f00001cf000, 0x17c000};
    const struct lookup lookups[] = {
        {code, 0x7f0000026123, SYMBOL_ADDRESS_EXACT, 0x26123},
        {code, 0x7f000017b0fb, SYMBOL_ADDRESS_EXACT, 0x17b0fb},
        {code, 0x7f000017b0fc, SYMBOL_ADDRESS_NONE, 0}, /* after the last function */
        {code, 0x7f0000025fff, SYMBOL_ADDRESS_NONE, 0},
        {code, 0x7f000017c000, SYMBOL_ADDRESS_NONE, 0},
        {data, 0x7f000017c123, SYMBOL_ADDRESS_NONE, 0}};
    ASSERT_FOUND(libc, lookups);
}

/* In LLD's layout, addresses of code differ from its offsets; a process may map a part of it. */
static void code_may_have_another_offset_than_address(void **state)
{
    (void)state;
    static const struct symbol_segment segments[] = {
        {0, 0x200000, 0x5f0, 0x5f0, 0x1000, READ},
        {0x5f0, 0x2015f0, 0x3000, 0x3000, 0x1000, READ | EXECUTE}};
    static const struct symbol_mapping whole = {0x2015f0 - 0x5f0, 0x205000, 0};
    static const struct symbol_mapping second_page = {0x555500001000, 0x555500002000, 0x1000};
    const struct lookup lookups[] = {{whole, 0x2015f0, SYMBOL_ADDRESS_EXACT, 0x2015f0},
                                     {second_page, 0x555500001010, SYMBOL_ADDRESS_EXACT, 0x202010}};
    ASSERT_FOUND(segments, lookups);
}

/* Headers after objcopy --only-keep-debug: code has no bytes, and its offset has no meaning. */
static void moved_headers_are_matched_by_length_and_layout(void **state)
{
    (void)state;
    static const struct symbol_segment position_independent[] = {
        {0, 0, 0x3b4, 0x25388, 0x1000, READ},
        {0, 0x26000, 0, 0x1550fc, 0x1000, READ | EXECUTE},
        {0, 0x17c000, 0, 0x52c31, 0x1000, READ}};
    static const struct symbol_mapping code = {0x7f0000026000, 0x7f000017c000, 0x26000};
    static const struct symbol_mapping part = {0x7f0000027000, 0x7f0000028000, 0x27000};
    const struct lookup lookups[] = {{code, 0x7f0000026123, SYMBOL_ADDRESS_GUESSED, 0x26123},
                                     {part, 0x7f0000027123, SYMBOL_ADDRESS_GUESSED, 0x27123}};
    ASSERT_FOUND(position_independent, lookups);

    static const struct symbol_segment fixed[] = {{0, 0x400000, 0x39c, 0x4e8, 0x1000, READ},
                                                  {0, 0x401000, 0, 0x5151, 0x1000, READ | EXECUTE}};
    static const struct symbol_mapping fixed_part = {0x402000, 0x403000, 0x2000};
    static const struct symbol_mapping lld = {0x555500001000, 0x555500007000, 0x400};
    const struct lookup fixed_lookups[] = {{fixed_part, 0x402010, SYMBOL_ADDRESS_GUESSED, 0x402010},
                                           {lld, 0x555500001010, SYMBOL_ADDRESS_GUESSED, 0x401010},
                                           {lld, 0x555500006800, SYMBOL_ADDRESS_NONE, 0}};
    ASSERT_FOUND(fixed, fixed_lookups);
}

static void a_kernel_is_where_it_was_linked_or_moved_as_a_whole(void **state)
{
    (void)state;
    static const struct symbol_segment kernel[] = {
        {0x200000, 0xffffffff81000000, 0xe00000, 0xe00000, 0x200000, READ | EXECUTE},
        {0x1200000, 0xffffffff82a00000, 0x100000, 0x200000, 0x200000, READ | WRITE | EXECUTE}};
    static const struct symbol_mapping linked = {0xffffffff81000000, 0xffffffffffffffff,
                                                 0xffffffff81000000};
    static const struct symbol_mapping moved = {0xffffffffa3000000, 0xffffffffa4000000,
                                                0xffffffffa3000000};
    const struct lookup lookups[] = {
        {linked, 0xffffffff81000123, SYMBOL_ADDRESS_EXACT, 0xffffffff81000123},
        {linked, 0xffffffff82a00123, SYMBOL_ADDRESS_EXACT, 0xffffffff82a00123},
        {moved, 0xffffffffa3000123, SYMBOL_ADDRESS_GUESSED, 0xffffffff81000123},
        {moved, 0xffffffffa3f00000, SYMBOL_ADDRESS_NONE, 0}};
    ASSERT_FOUND(kernel, lookups);
}

static void without_headers_nothing_is_known(void **state)
{
    (void)state;
    const struct lookup lookups[] = {{{0x1000, 0x2000, 0}, 0x1010, SYMBOL_ADDRESS_NONE, 0}};
    assert_found(NULL, 0, lookups, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_headers_convert_offsets_to_addresses),
        cmocka_unit_test(code_may_have_another_offset_than_address),
        cmocka_unit_test(moved_headers_are_matched_by_length_and_layout),
        cmocka_unit_test(a_kernel_is_where_it_was_linked_or_moved_as_a_whole),
        cmocka_unit_test(without_headers_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
