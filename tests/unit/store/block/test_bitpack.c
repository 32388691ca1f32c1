#include "tests/unit/store/random_batch.h"
#include "tests/unit/test.h"

#include "store/block/bitpack.h"

/* Fills values with numbers, nearly all of which are below 2^width. */
static void fill(uint64_t *state, uint64_t *values, size_t count, unsigned width, unsigned wild)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned bits = wild && random_below(state, wild) == 0 ? 64 : width;
        values[i] = bits ? random_next(state) >> (64 - bits) : 0;
    }
}

static void numbers_are_unpacked_unchanged(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 7, 8, 31, 255, 256, 257, 511, 512, 1000};
    uint64_t seed = 88172645463325252;
    for (unsigned width = 0; width <= 64; width++) {
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            uint64_t values[1000], read[1000];
            uint32_t narrow[1000], narrow_read[1000], portable[1000];
            const size_t count = counts[i];
            fill(&seed, values, count, width, width % 3 * 20);
            for (size_t j = 0; j < count; j++)
                narrow[j] = (uint32_t)values[j];
            buf_auto packed;
            buf_init(&packed, 1 << 20);
            bitpack_append_u64(&packed, values, count,
                               random_below(&seed, 2) ? BITPACK_QUICK : BITPACK_SMALL);
            struct span rest = buf_span(&packed);
            assert_true(bitpack_take_u64(&rest, read, count));
            assert_int_equal(rest.size, 0);
            assert_memory_equal(values, read, count * sizeof(*values));
            buf_clear(&packed);
            const enum bitpack_effort effort =
                random_below(&seed, 2) ? BITPACK_QUICK : BITPACK_SMALL;
            bitpack_append_u32(&packed, narrow, count, effort);
            buf_auto twin;
            buf_init(&twin, 1 << 20);
            bitpack_append_u32_portable(&twin, narrow, count, effort);
            assert_true(span_equal(buf_span(&packed), buf_span(&twin)));
            rest = buf_span(&packed);
            assert_true(bitpack_take_u32(&rest, narrow_read, count));
            assert_int_equal(rest.size, 0);
            assert_memory_equal(narrow, narrow_read, count * sizeof(*narrow));
            rest = buf_span(&packed);
            assert_true(bitpack_take_u32_portable(&rest, portable, count));
            assert_memory_equal(narrow, portable, count * sizeof(*narrow));
        }
    }
}

static void malformed_columns_are_refused_and_never_read_beyond(void **state)
{
    (void)state;
    uint64_t seed = 42;
    for (int round = 0; round < 2000; round++) {
        uint64_t values[600], read[600];
        const size_t count = 1 + random_below(&seed, 600);
        fill(&seed, values, count, random_below(&seed, 65), 1 + random_below(&seed, 30));
        struct buf packed;
        buf_init(&packed, 1 << 20);
        bitpack_append_u64(&packed, values, count,
                           random_below(&seed, 2) ? BITPACK_QUICK : BITPACK_SMALL);
        /* Truncated input is always detected. */
        const size_t size = random_below(&seed, (uint32_t)packed.size);
        uint8_t *cut = mem_new(uint8_t, size + 1);
        memcpy(cut, packed.data, size);
        struct span rest = span_of(cut, size);
        assert_false(bitpack_take_u64(&rest, read, count));
        mem_free(cut);
        /* A changed byte may result in other numbers, but never in a read beyond the end (which
         * the sanitizers check). */
        uint8_t *copy = mem_new(uint8_t, packed.size);
        memcpy(copy, packed.data, packed.size);
        copy[random_below(&seed, (uint32_t)packed.size)] = (uint8_t)random_next(&seed);
        rest = span_of(copy, packed.size);
        (void)!bitpack_take_u64(&rest, read, count);
        mem_free(copy);
        buf_fini(&packed);
    }
}

static void few_bits_take_few_bytes(void **state)
{
    (void)state;
    uint32_t values[BITPACK_RUN * 4] = {0};
    buf_auto packed;
    buf_init(&packed, 1 << 20);
    bitpack_append_u32(&packed, values, BITPACK_RUN * 4, BITPACK_SMALL);
    assert_int_equal(packed.size, 4 * 3);
    /* A single large number costs its own bytes only. */
    values[300] = UINT32_MAX;
    buf_clear(&packed);
    bitpack_append_u32(&packed, values, BITPACK_RUN * 4, BITPACK_SMALL);
    assert_int_equal(packed.size, 4 * 3 + 1 + 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_unpacked_unchanged),
        cmocka_unit_test(malformed_columns_are_refused_and_never_read_beyond),
        cmocka_unit_test(few_bits_take_few_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
