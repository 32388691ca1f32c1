#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/profile/otlp/otlp_indexes.h"

enum { BYTES_MAX = 400, ROUNDS = 20000 };

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

static void put_varint(struct buf *bytes, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(bytes, (uint8_t)(number | 0x80));
    buf_append_byte(bytes, (uint8_t)number);
}

/* Encodes and decodes; the bytes end at the end of the allocation, for sanitizers. */
static uint32_t *read_both(struct span bytes, uint64_t limit, uint32_t *entries)
{
    static const uint8_t none[1];
    uint32_t twin[BYTES_MAX + OTLP_INDEXES_SLACK];
    uint8_t *copy = mem_alloc(bytes.size, 1);
    struct otlp_indexes table;
    memcpy(copy, bytes.size ? bytes.data : none, bytes.size);
    const struct span exact = span_of(copy, bytes.size);
    uint32_t *end = otlp_indexes_read_portable(exact, entries, limit);
    if (otlp_indexes_can()) {
        otlp_indexes_init(&table);
        const uint32_t *behind = otlp_indexes_read(&table, exact, twin, limit);
        assert_int_equal(behind != NULL, end != NULL);
        if (end) {
            assert_int_equal(behind - twin, end - entries);
            assert_memory_equal(twin, entries, (size_t)(end - entries) * sizeof(*entries));
        }
    }
    mem_free(copy);
    return end;
}

static void numbers_are_read_as_they_were_written(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t numbers[100], entries[BYTES_MAX + OTLP_INDEXES_SLACK];
        const size_t count = next(&seed) % 60;
        uint32_t greatest = 0;
        buf_auto bytes;
        buf_init(&bytes, BYTES_MAX);
        for (size_t i = 0; i < count; i++) {
            const uint64_t kind = next(&seed) % 32;
            const unsigned bits = kind < 18 ? 7 : kind < 31 || round % 2 ? 14 : 32;
            numbers[i] = (uint32_t)(next(&seed) >> (64 - bits));
            greatest = numbers[i] > greatest ? numbers[i] : greatest;
            put_varint(&bytes, numbers[i]);
        }
        const uint32_t *end = read_both(buf_span(&bytes), greatest + UINT64_C(1), entries);
        assert_non_null(end);
        assert_int_equal(end - entries, count);
        assert_memory_equal(entries, numbers, count * sizeof(*numbers));
        if (count)
            assert_null(read_both(buf_span(&bytes), greatest, entries));
    }
}

static void both_readers_agree_on_any_bytes(void **state)
{
    (void)state;
    uint64_t seed = 42;
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t bytes[64];
        uint32_t entries[BYTES_MAX + OTLP_INDEXES_SLACK];
        const size_t size = next(&seed) % sizeof(bytes);
        const uint64_t wildness = 1 + next(&seed) % 10;
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)(next(&seed) % wildness ? next(&seed) & 0x7f : next(&seed));
        (void)read_both(span_of(bytes, size), next(&seed) % 3 ? UINT32_MAX : next(&seed) % 9000,
                        entries);
    }
}

static void truncated_and_empty_numbers_are_refused(void **state)
{
    (void)state;
    uint32_t entries[BYTES_MAX + OTLP_INDEXES_SLACK];
    static const uint8_t cut[] = {1, 2, 3, 4, 5, 6, 7, 0x81}, zeros[16];
    assert_null(read_both(span_of(cut, sizeof(cut)), 1000, entries));
    assert_null(read_both(span_of(zeros, sizeof(zeros)), 0, entries));
    assert_ptr_equal(read_both(span_of(zeros, sizeof(zeros)), 1, entries), entries + 16);
    assert_ptr_equal(read_both(span_of(zeros, 0), 0, entries), entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_as_they_were_written),
        cmocka_unit_test(both_readers_agree_on_any_bytes),
        cmocka_unit_test(truncated_and_empty_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
