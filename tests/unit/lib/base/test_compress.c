#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

enum { ROOM_BYTES = 1 << 20 };

static void fill(struct buf *buf, size_t size)
{
    uint32_t state = 1;
    while (buf->size < size) {
        state = state * 1664525 + 1013904223;
        buf_append_byte(buf, (uint8_t)(state >> 28)); /* half random, half not */
    }
}

static enum err_code pack(enum compress_method method, struct span bytes, struct buf *output)
{
    struct err err;
    if (method == COMPRESS_GZIP)
        return compress_gzip(bytes, COMPRESS_GZIP_DEFAULT, output, &err);
    return compress_zstd(bytes, COMPRESS_ZSTD_DEFAULT, output, &err);
}

static void data_survives_compression(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 65536, 300000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int method = COMPRESS_GZIP; method <= COMPRESS_ZSTD; method++) {
            buf_auto plain, packed, again;
            struct err err;
            buf_init(&plain, ROOM_BYTES);
            buf_init(&packed, ROOM_BYTES);
            buf_init(&again, sizes[i]); /* exactly the size is not too large */
            fill(&plain, sizes[i]);
            assert_int_equal(pack(method, buf_span(&plain), &packed), ERR_NONE);
            assert_int_equal(compress_sniff(buf_span(&packed)), method);
            assert_int_equal(compress_expand(method, buf_span(&packed), &again, &err), ERR_NONE);
            assert_true(span_equal(buf_span(&plain), buf_span(&again)));
        }
    }
}

static void consecutive_members_and_frames_are_joined(void **state)
{
    (void)state;
    for (int method = COMPRESS_GZIP; method <= COMPRESS_ZSTD; method++) {
        buf_auto packed, output;
        struct err err;
        buf_init(&packed, ROOM_BYTES);
        buf_init(&output, ROOM_BYTES);
        for (int i = 0; i < 300; i++)
            assert_int_equal(pack(method, SPAN_LITERAL("one after the other;"), &packed), 0);
        assert_int_equal(pack(method, SPAN_LITERAL(""), &packed), ERR_NONE);
        assert_int_equal(compress_expand(method, buf_span(&packed), &output, &err), ERR_NONE);
        assert_int_equal(output.size, 300 * strlen("one after the other;"));
        assert_memory_equal(output.data + output.size - 6, "other;", 6);
    }
}

static void a_skippable_zstd_frame_is_skipped(void **state)
{
    (void)state;
    static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
    buf_auto packed, output;
    struct err err;
    buf_init(&packed, ROOM_BYTES);
    buf_init(&output, ROOM_BYTES);
    buf_append(&packed, skippable, sizeof(skippable));
    assert_int_equal(compress_sniff(buf_span(&packed)), COMPRESS_ZSTD);
    assert_int_equal(pack(COMPRESS_ZSTD, SPAN_LITERAL("text"), &packed), ERR_NONE);
    assert_int_equal(compress_expand(COMPRESS_ZSTD, buf_span(&packed), &output, &err), ERR_NONE);
    assert_true(span_equal_text(buf_span(&output), "text"));
}

static void a_bomb_is_refused(void **state)
{
    (void)state;
    enum { BOMB_BYTES = 32 << 20, LIMIT_BYTES = 1 << 20 };
    for (int method = COMPRESS_GZIP; method <= COMPRESS_ZSTD; method++) {
        buf_auto packed, output;
        struct err err;
        buf_init(&packed, ROOM_BYTES);
        buf_init(&output, LIMIT_BYTES);
        uint8_t *zeros = mem_alloc(BOMB_BYTES, 1);
        assert_int_equal(pack(method, span_of(zeros, BOMB_BYTES), &packed), ERR_NONE);
        mem_free(zeros);
        assert_int_equal(compress_expand(method, buf_span(&packed), &output, &err), ERR_TOO_LARGE);
        assert_int_equal(output.size, 0);
        assert_int_equal(output.capacity,
                         0);         /* the header contains the size, so nothing was allocated */
        if (method == COMPRESS_GZIP) /* and a trailer with a wrong size */
            memset(packed.data + packed.size - 4, 0, 4);
        else
            packed.data[4] &= 0x3f; /* a changed header must be refused, whatever it means */
        assert_int_not_equal(compress_expand(method, buf_span(&packed), &output, &err), ERR_NONE);
        assert_true(output.capacity <= LIMIT_BYTES);
    }
}

static void one_byte_over_the_limit_is_too_large(void **state)
{
    (void)state;
    for (int method = COMPRESS_GZIP; method <= COMPRESS_ZSTD; method++) {
        buf_auto plain, packed, output;
        struct err err;
        buf_init(&plain, ROOM_BYTES);
        buf_init(&packed, ROOM_BYTES);
        buf_init(&output, 99999);
        fill(&plain, 100000);
        assert_int_equal(pack(method, buf_span(&plain), &packed), ERR_NONE);
        assert_int_equal(compress_expand(method, buf_span(&packed), &output, &err), ERR_TOO_LARGE);
        assert_non_null(strstr(err.message, "99999"));
    }
}

static void truncated_data_and_trailing_bytes_are_refused(void **state)
{
    (void)state;
    for (int method = COMPRESS_GZIP; method <= COMPRESS_ZSTD; method++) {
        buf_auto plain, packed, output;
        struct err err;
        buf_init(&plain, ROOM_BYTES);
        buf_init(&packed, ROOM_BYTES);
        buf_init(&output, ROOM_BYTES);
        fill(&plain, 200);
        assert_int_equal(pack(method, buf_span(&plain), &packed), ERR_NONE);
        for (size_t size = 0; size < packed.size; size++) {
            struct span cut = span_of(packed.data, size);
            assert_int_equal(compress_expand(method, cut, &output, &err), ERR_INVALID);
            assert_int_equal(output.size, 0);
        }
        buf_append_byte(&packed, 'x');
        assert_int_equal(compress_expand(method, buf_span(&packed), &output, &err), ERR_INVALID);
    }
}

static void a_wrong_checksum_is_refused(void **state)
{
    (void)state;
    buf_auto packed, output;
    struct err err;
    buf_init(&packed, ROOM_BYTES);
    buf_init(&output, ROOM_BYTES);
    assert_int_equal(pack(COMPRESS_GZIP, SPAN_LITERAL("some text"), &packed), ERR_NONE);
    packed.data[packed.size - 8] ^= 1;
    assert_int_equal(compress_expand(COMPRESS_GZIP, buf_span(&packed), &output, &err), ERR_INVALID);
}

static void a_frame_with_a_huge_window_is_refused(void **state)
{
    (void)state;
    /* Magic, no content size, window descriptor 0xa8: 2^31 bytes; then one empty last block. */
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00};
    buf_auto output;
    struct err err;
    buf_init(&output, ROOM_BYTES);
    struct span bytes = span_of(frame, sizeof(frame));
    assert_int_equal(compress_expand(COMPRESS_ZSTD, bytes, &output, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, "window"));
}

static void output_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    for (int method = COMPRESS_GZIP; method <= COMPRESS_ZSTD; method++) {
        buf_auto plain, packed;
        buf_init(&plain, ROOM_BYTES);
        buf_init(&packed, 64);
        fill(&plain, 10000);
        assert_int_equal(pack(method, buf_span(&plain), &packed), ERR_TOO_LARGE);
        assert_true(buf_failed(&packed));
        buf_auto exact;
        buf_init(&exact, 64); /* less than the bound, yet enough for this text */
        assert_int_equal(pack(method, SPAN_LITERAL("short"), &exact), ERR_NONE);
    }
}

static void other_bytes_are_not_detected_as_compressed(void **state)
{
    (void)state;
    assert_int_equal(compress_sniff(SPAN_LITERAL("")), COMPRESS_NONE);
    assert_int_equal(compress_sniff(SPAN_LITERAL("\x1f\x8b")), COMPRESS_NONE);
    assert_int_equal(compress_sniff(SPAN_LITERAL("main;run 12")), COMPRESS_NONE);
    buf_auto output;
    struct err err;
    buf_init(&output, 4);
    struct span bytes = SPAN_LITERAL("four");
    assert_int_equal(compress_expand(COMPRESS_NONE, bytes, &output, &err), ERR_NONE);
    assert_true(span_equal(buf_span(&output), bytes));
    bytes = SPAN_LITERAL("more than four");
    assert_int_equal(compress_expand(COMPRESS_NONE, bytes, &output, &err), ERR_TOO_LARGE);
}

/* A claimed size causes no allocation before it is plausible. Zeros compress best. */
static void an_implausible_frame_size_causes_no_allocation(void **state)
{
    (void)state;
    buf_auto plain, packed;
    buf_init(&plain, 16 << 20);
    buf_init(&packed, ROOM_BYTES);
    memset(buf_reserve(&plain, 16 << 20), 0, 16 << 20);
    buf_commit(&plain, 16 << 20);
    assert_int_equal(pack(COMPRESS_ZSTD, buf_span(&plain), &packed), ERR_NONE);
    assert_true(compress_can_expand_to(buf_span(&packed), plain.size));
    assert_false(compress_can_expand_to(buf_span(&packed), plain.size - 1));
    assert_false(compress_can_expand_to(span_of(packed.data, 12), plain.size));
    assert_false(compress_can_expand_to(SPAN_LITERAL("no frame at all"), 15));
}

static void ratios_of_expansion_have_a_limit_above_a_floor(void **state)
{
    (void)state;
    enum { FLOOR = COMPRESS_RATIO_FLOOR_BYTES, MOST = 64 << 20 };
    assert_int_equal(compress_ratio_bytes(1000, 0), SIZE_MAX);
    assert_int_equal(compress_ratio_bytes(1000, 200), FLOOR);
    assert_int_equal(compress_ratio_bytes(1 << 20, 200), 200 << 20);
    assert_int_equal(compress_ratio_bytes(SIZE_MAX, 200), SIZE_MAX);
    for (enum compress_method method = COMPRESS_GZIP; method <= COMPRESS_ZSTD; method++) {
        for (size_t size = FLOOR; size <= FLOOR + 1; size++) {
            buf_auto plain, packed, output;
            struct err err = {0};
            buf_init(&plain, MOST);
            buf_init(&packed, MOST);
            buf_init(&output, MOST);
            memset(buf_reserve(&plain, size), 'x', size);
            buf_commit(&plain, size);
            assert_int_equal(pack(method, buf_span(&plain), &packed), ERR_NONE);
            const enum err_code code =
                compress_expand_ratio(method, buf_span(&packed), 200, "max-ratio", &output, &err);
            assert_int_equal(code, size > FLOOR ? ERR_TOO_LARGE : ERR_NONE);
            assert_int_equal(output.max_size, MOST);
            assert_int_equal(output.size, size > FLOOR ? 0 : size);
            if (code) {
                assert_true(err.is_final);
                assert_non_null(strstr(err.message, "max-ratio"));
                assert_non_null(strstr(err.message, "200 times"));
            }
            output.max_size = FLOOR; /* the size limit is checked before the ratio */
            if (size > FLOOR) {
                assert_int_equal(
                    compress_expand_ratio(method, buf_span(&packed), 200, NULL, &output, &err),
                    ERR_TOO_LARGE);
                assert_false(err.is_final);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_survives_compression),
        cmocka_unit_test(consecutive_members_and_frames_are_joined),
        cmocka_unit_test(a_skippable_zstd_frame_is_skipped),
        cmocka_unit_test(a_bomb_is_refused),
        cmocka_unit_test(one_byte_over_the_limit_is_too_large),
        cmocka_unit_test(truncated_data_and_trailing_bytes_are_refused),
        cmocka_unit_test(a_wrong_checksum_is_refused),
        cmocka_unit_test(a_frame_with_a_huge_window_is_refused),
        cmocka_unit_test(output_that_does_not_fit_is_refused),
        cmocka_unit_test(an_implausible_frame_size_causes_no_allocation),
        cmocka_unit_test(other_bytes_are_not_detected_as_compressed),
        cmocka_unit_test(ratios_of_expansion_have_a_limit_above_a_floor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
