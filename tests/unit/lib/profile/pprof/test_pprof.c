#include "tests/unit/lib/profile/stacks.h"

#include "lib/base/err.h"
#include "lib/profile/pprof/pprof.h"
#include "tests/unit/lib/profile/protobuf.h"

#include <stdlib.h>

/* One type, one function, one location, one sample of depth 2; tests append to it. */
static void put_strings(struct buf *raw)
{
    static const char *const strings[] = {"", "cpu", "nanoseconds", "main", "main.c", "other"};
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        protobuf_text(raw, 6, strings[i]);
}

static void put_small(struct buf *raw)
{
    WIRE(raw, 1, 1, 1, 2, 2);
    WIRE(raw, 2, 1, 1, 1, 1, 2, 7);
    WIRE(raw, 5, 1, 1, 2, 3, 4, 4);
    static const uint8_t location[] = {0x08, 1, 0x22, 4, 0x08, 1, 0x10, 12};
    protobuf_bytes(raw, 4, location, sizeof(location));
    put_strings(raw);
}

static struct profile *decode(const struct buf *raw)
{
    return decode_text(pprof_decode, buf_span(raw));
}

static void assert_malformed(const struct buf *raw, enum err_code code, const char *words)
{
    struct profile *profile = NULL;
    struct err err = {0};
    assert_int_equal(pprof_decode(buf_span(raw), NULL, &profile, &err), code);
    if (!strstr(err.message, words))
        print_error("message: %s\n", err.message);
    assert_non_null(strstr(err.message, words));
    assert_null(profile);
}

/* Appends fields to the small profile and expects a refusal. */
#define ASSERT_REFUSED(words, ...)                                                                 \
    do {                                                                                           \
        buf_auto raw;                                                                              \
        buf_init(&raw, 1 << 16);                                                                   \
        put_small(&raw);                                                                           \
        __VA_ARGS__;                                                                               \
        assert_malformed(&raw, ERR_INVALID, words);                                                \
    } while (0)

static void reads_a_small_profile(void **state)
{
    (void)state;
    buf_auto raw;
    buf_init(&raw, 1 << 16);
    put_small(&raw);
    struct profile *profile = decode(&raw);
    assert_int_equal(profile->sample_count, 1);
    assert_int_equal(profile->lines[0].line, 12);
    assert_type(profile, 0, "cpu", "nanoseconds");
    assert_stacks(profile, "", "main;main 7\n");
    profile_destroy(profile);
}

static void equal_strings_become_one(void **state)
{
    (void)state;
    buf_auto raw;
    buf_init(&raw, 1 << 16);
    put_small(&raw);
    protobuf_text(&raw, 6, "main"); /* string 6 */
    protobuf_text(&raw, 6, "new");
    WIRE(&raw, 5, 1, 2, 2, 6, 4, 7);
    struct profile *profile = decode(&raw);
    assert_int_equal(profile->functions[0].name, profile->functions[1].name);
    assert_int_equal(profile->string_count, 7);
    assert_true(span_equal_text(profile->strings[profile->functions[1].filename], "new"));
    profile_destroy(profile);
}

static void order_of_fields_does_not_matter(void **state)
{
    (void)state;
    buf_auto raw;
    buf_init(&raw, 1 << 16);
    put_strings(&raw);
    WIRE(&raw, 5, 1, 1, 2, 3, 4, 4);
    WIRE(&raw, 2, 2, 5);
    WIRE(&raw, 1, 1, 1, 2, 2);
    WIRE(&raw, 2, 2, -5);
    struct profile *profile = decode(&raw);
    assert_int_equal(profile->sample_count, 2);
    assert_int_equal(profile->values[0], 5);
    assert_int_equal(profile->values[1], -5);
    profile_destroy(profile);
}

static void ids_may_be_sparse_and_huge(void **state)
{
    (void)state;
    buf_auto raw;
    buf_init(&raw, 1 << 20);
    WIRE(&raw, 1, 1, 1, 2, 2);
    for (int64_t i = 0; i < 500; i++) {
        WIRE(&raw, 4, 1, INT64_MIN + i * 7919 * 65537, 3, i);
        WIRE(&raw, 2, 1, INT64_MIN + i * 7919 * 65537, 2, i + 1);
    }
    put_strings(&raw);
    struct profile *profile = decode(&raw);
    for (uint32_t i = 0; i < 500; i++)
        assert_int_equal(profile->locations[profile->stack[i]].address, i);
    profile_destroy(profile);
}

static void packed_and_single_numbers_may_mix(void **state)
{
    (void)state;
    buf_auto raw, sample;
    buf_init(&raw, 1 << 16);
    buf_init(&sample, 100);
    put_small(&raw);
    protobuf_bytes(&sample, 1, "\x01\x01", 2);
    protobuf_number(&sample, 1, 1);
    protobuf_bytes(&sample, 1, "\x01", 1);
    protobuf_bytes(&sample, 2, "\x09", 1);
    protobuf_bytes(&raw, 2, sample.data, sample.size);
    struct profile *profile = decode(&raw);
    assert_stacks(profile, "", "main;main 7\nmain;main;main;main 9\n");
    profile_destroy(profile);
}

static void unknown_fields_are_skipped(void **state)
{
    (void)state;
    buf_auto raw;
    buf_init(&raw, 1 << 16);
    protobuf_text(&raw, 1000, "later");
    protobuf_varint(&raw, 1001 << 3 | 1);
    buf_append_u64(&raw, 1);
    protobuf_varint(&raw, 1002 << 3 | 5);
    buf_append_u32(&raw, 1);
    put_small(&raw);
    WIRE(&raw, 5, 1, 2, 2, 3, 77, 1);
    profile_destroy(decode(&raw));
}

/* As written in .NET: proto3 omits numbers that are 0. */
static void ids_of_functions_and_locations_may_begin_at_0(void **state)
{
    (void)state;
    for (int is_packed = 0; is_packed < 2; is_packed++) {
        buf_auto raw;
        buf_init(&raw, 1 << 16);
        WIRE(&raw, 1, 1, 1, 2, 1);
        if (is_packed)
            protobuf_bytes(&raw, 2, "\x0a\x02\x01\x00\x12\x01\x07", 7);
        else
            WIRE(&raw, 2, 1, 1, 1, 0, 2, 7);
        protobuf_bytes(&raw, 4, "\x22\x02\x10\x05", 4); /* location 0: line 5 of function 0 */
        protobuf_bytes(&raw, 4, "\x08\x01\x22\x02\x08\x01", 6); /* location 1: function 1 */
        WIRE(&raw, 5, 2, 2);
        WIRE(&raw, 5, 1, 1, 2, 3);
        static const char *const texts[] = {"", "samples", "Main", "Work"};
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
            protobuf_text(&raw, 6, texts[i]);
        struct profile *profile = decode(&raw);
        assert_int_equal(profile->stack_start[1], 2);
        assert_int_equal(profile->stack[0], 1);
        assert_int_equal(profile->stack[1], 0);
        assert_int_equal(profile->lines[0].function, 0);
        assert_int_equal(profile->lines[0].line, 5);
        assert_int_equal(profile->lines[1].function, 1);
        assert_true(span_equal_text(profile_string(profile, profile->functions[0].name), "Main"));
        profile_destroy(profile);
    }
}

static void refuses_what_is_inconsistent(void **state)
{
    (void)state;
    ASSERT_REFUSED("location that does not exist", WIRE(&raw, 2, 1, 2, 2, 1));
    ASSERT_REFUSED("location that does not exist", WIRE(&raw, 2, 1, 0, 2, 1));
    ASSERT_REFUSED("location that does not exist", WIRE(&raw, 2, 1, -1, 2, 1));
    ASSERT_REFUSED("has 2 values", WIRE(&raw, 2, 1, 1, 2, 1, 2, 1));
    ASSERT_REFUSED("has 0 values", WIRE(&raw, 2, 1, 1));
    ASSERT_REFUSED("two functions have the id 1", WIRE(&raw, 5, 1, 1, 2, 3));
    ASSERT_REFUSED("two locations have the id 1", WIRE(&raw, 4, 1, 1));
    ASSERT_REFUSED("two mappings have the id 9", WIRE(&raw, 3, 1, 9); WIRE(&raw, 3, 1, 9));
    ASSERT_REFUSED("two functions have the id 0", WIRE(&raw, 5, 2, 3); WIRE(&raw, 5, 2, 3));
    ASSERT_REFUSED("mapping 0 has the id 0", WIRE(&raw, 3, 2, 3));
    ASSERT_REFUSED("refers to string 6 of 6", WIRE(&raw, 5, 1, 2, 2, 6));
    ASSERT_REFUSED("refers to string -1", WIRE(&raw, 3, 1, 1, 5, -1));
    ASSERT_REFUSED("refers to string", protobuf_number(&raw, 7, 99));
    ASSERT_REFUSED("refers to string", protobuf_number(&raw, 13, 99));
    ASSERT_REFUSED("without a known function",
                   protobuf_bytes(&raw, 4, "\x08\x02\x22\x02\x08\x05", 6));
    ASSERT_REFUSED("without a known function", protobuf_bytes(&raw, 4, "\x08\x02\x22\x00", 4));
    ASSERT_REFUSED("one behind the other", protobuf_number(&raw, 9, 5);
                   protobuf_number(&raw, 9, 5));
    ASSERT_REFUSED("wrong wire type", protobuf_number(&raw, 2, 1));
    ASSERT_REFUSED("wrong wire type", protobuf_text(&raw, 9, "x"));
    ASSERT_REFUSED("wrong wire type", protobuf_bytes(&raw, 5, "\x0a\x00", 2));
}

static void refuses_what_is_cut_short(void **state)
{
    (void)state;
    ASSERT_REFUSED("cut short", protobuf_bytes(&raw, 2, "\x0a\x05\x01", 3));
    ASSERT_REFUSED("cut short", protobuf_bytes(&raw, 2, "\x12\x01\xff", 3));
    ASSERT_REFUSED("location that does not exist", protobuf_bytes(&raw, 2, "\x0a\x01\xff", 3));
    ASSERT_REFUSED("cut short", protobuf_bytes(&raw, 2, "\x1a\x01\x08", 3));
    ASSERT_REFUSED("cut short", protobuf_bytes(&raw, 5, "\x08", 1));
    ASSERT_REFUSED("cut short", protobuf_bytes(&raw, 4, "\x22\x01\x08", 3));
    ASSERT_REFUSED("at byte", protobuf_varint(&raw, 2 << 3 | 2); protobuf_varint(&raw, 1000));
    ASSERT_REFUSED("at byte", protobuf_varint(&raw, 2 << 3 | 3));
    ASSERT_REFUSED("at byte",
                   buf_append(&raw, "\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12));
}

/* Every prefix of a valid profile is refused or valid, and nothing after its end is read. */
static void nothing_is_read_after_a_prefix(void **state)
{
    (void)state;
    buf_auto raw;
    buf_init(&raw, 1 << 16);
    put_small(&raw);
    for (size_t size = 0; size < raw.size; size++) {
        uint8_t *exact = malloc(
            size ? size
                 : 1); /* of the exact size, so that AddressSanitizer detects reads beyond it */
        memcpy(exact, raw.data, size);
        struct profile *profile = NULL;
        struct err err;
        if (pprof_decode(span_of(exact, size), NULL, &profile, &err) == ERR_NONE)
            profile_destroy(profile);
        pprof_sniff(span_of(exact, size));
        free(exact);
    }
}

static void needs_types_and_strings(void **state)
{
    (void)state;
    buf_auto raw;
    buf_init(&raw, 1 << 16);
    assert_malformed(&raw, ERR_INVALID, "empty");
    put_strings(&raw);
    assert_malformed(&raw, ERR_INVALID, "no sample type");
    buf_clear(&raw);
    WIRE(&raw, 1, 1, 0);
    assert_malformed(&raw, ERR_INVALID, "no string table");
    protobuf_text(&raw, 6, "not empty");
    assert_malformed(&raw, ERR_INVALID, "string 0");
}

static void assert_limited(const struct profile_limits *limits, const char *words)
{
    buf_auto raw;
    buf_init(&raw, 1 << 16);
    put_small(&raw);
    WIRE(&raw, 2, 1, 1, 2, 3);
    struct profile *profile = NULL;
    struct err err = {0};
    assert_int_equal(pprof_decode(buf_span(&raw), limits, &profile, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, words));
    assert_null(profile);
}

static void limits_are_kept(void **state)
{
    (void)state;
    assert_limited(&(struct profile_limits){.raw_bytes = 50}, "bytes when expanded");
    assert_limited(&(struct profile_limits){.sample_count = 1}, "2 samples");
    assert_limited(&(struct profile_limits){.stack_depth = 1}, "2 frames deep");
    assert_limited(&(struct profile_limits){.stack_entries = 2}, "3 stack entries");
    assert_limited(&(struct profile_limits){.memory_bytes = 100}, "bytes when decoded");
}

/* Labels of two bytes each would need sixteen times the size of the file, so they are refused
 * first. */
static void empty_messages_do_not_multiply(void **state)
{
    (void)state;
    buf_auto raw, sample;
    buf_init(&raw, 1 << 22);
    buf_init(&sample, 1 << 22);
    put_small(&raw);
    protobuf_number(&sample, 2, 1);
    for (int i = 0; i < 100000; i++)
        protobuf_bytes(&sample, 3, NULL, 0);
    protobuf_bytes(&raw, 2, sample.data, sample.size);
    struct profile *profile = NULL;
    struct err err = {0};
    const struct profile_limits limits = {.memory_bytes = 1 << 20};
    assert_int_equal(pprof_decode(buf_span(&raw), &limits, &profile, &err), ERR_TOO_LARGE);
    assert_null(profile);
}

/* A profile with every field of the format survives decoding and encoding. */
static void put_everything(struct buf *raw)
{
    put_small(raw);
    WIRE(raw, 3, 1, 1, 2, 0x400000, 3, 0x500000, 4, 0x1000, 5, 4, 6, 5, 7, 1, 9, 1);
    WIRE(raw, 3, 1, 2, 8, 1, 10, 1);
    static const uint8_t folded[] = {0x08, 2, 0x10, 1, 0x18, 0x80, 0x20, 0x28, 1,    0x22, 6,
                                     0x08, 1, 0x10, 3, 0x18, 9,    0x22, 2,    0x08, 1};
    protobuf_bytes(raw, 4, folded, sizeof(folded));
    static const uint8_t sample[] = {0x0a, 2,    2,    1,    0x12, 1,    5,    0x1a, 4,
                                     0x08, 1,    0x10, 3,    0x1a, 6,    0x08, 5,    0x18,
                                     64,   0x20, 2,    0x1a, 2,    0x08, 4};
    protobuf_bytes(raw, 2, sample, sizeof(sample));
    for (uint32_t field = 7; field <= 8; field++)
        protobuf_number(raw, field, field - 4);
    protobuf_number(raw, 9, 1700000000000000001);
    protobuf_number(raw, 10, 30000000000);
    WIRE(raw, 11, 1, 1, 2, 2);
    protobuf_number(raw, 12, -10);
    protobuf_bytes(raw, 13, "\x03\x04", 2);
    protobuf_number(raw, 13, 5);
    protobuf_number(raw, 14, 1);
    protobuf_number(raw, 15, 5);
}

static void assert_everything(const struct profile *profile)
{
    const struct profile_mapping *mapping = &profile->mappings[0];
    assert_int_equal(mapping->start, 0x400000);
    assert_int_equal(mapping->limit, 0x500000);
    assert_int_equal(mapping->offset, 0x1000);
    assert_true(mapping->has_functions && mapping->has_line_numbers);
    assert_false(mapping->has_filenames || mapping->has_inline_frames);
    assert_true(profile->mappings[1].has_filenames && profile->mappings[1].has_inline_frames);
    const struct profile_location *location = &profile->locations[1];
    assert_int_equal(location->address, 0x1000);
    assert_int_equal(location->line_count, 2);
    assert_true(location->is_folded);
    assert_int_equal(profile->lines[location->first_line].column, 9);
    assert_int_equal(profile->label_start[2], 3);
    assert_false(profile->labels[0].is_numeric);
    assert_true(profile->labels[1].is_numeric);
    assert_int_equal(profile->labels[1].number, 64);
    assert_true(span_equal_text(profile->strings[profile->labels[1].unit], "nanoseconds"));
    assert_true(profile->labels[2].is_numeric);
    assert_int_equal(profile->comment_count, 3);
    assert_true(span_equal_text(profile->strings[profile->comments[2]], "other"));
    assert_int_equal(profile->time_ns, 1700000000000000001);
    assert_int_equal(profile->duration_ns, 30000000000);
    assert_int_equal(profile->period, -10);
    assert_true(span_equal_text(profile->strings[profile->period_type.type], "cpu"));
    assert_true(span_equal_text(profile->strings[profile->drop_frames], "main"));
    assert_true(span_equal_text(profile->strings[profile->keep_frames], "main.c"));
    assert_true(span_equal_text(profile->strings[profile->default_sample_type], "cpu"));
    assert_true(span_equal_text(profile->strings[profile->doc_url], "other"));
}

static void all_fields_survive_a_round_trip(void **state)
{
    (void)state;
    buf_auto raw, first, second;
    buf_init(&raw, 1 << 16);
    buf_init(&first, 1 << 16);
    buf_init(&second, 1 << 16);
    struct err err;
    put_everything(&raw);
    struct profile *profile = decode(&raw);
    assert_everything(profile);
    assert_int_equal(pprof_encode(profile, &first, &err), ERR_NONE);
    struct profile *again = decode(&first);
    assert_everything(again);
    assert_int_equal(pprof_encode(again, &second, &err), ERR_NONE);
    assert_true(span_equal(buf_span(&first), buf_span(&second)));
    profile_destroy(profile);
    profile_destroy(again);
}

static void an_encoding_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    buf_auto raw, small;
    buf_init(&raw, 1 << 16);
    buf_init(&small, 40);
    struct err err;
    put_small(&raw);
    struct profile *profile = decode(&raw);
    assert_int_equal(pprof_encode(profile, &small, &err), ERR_TOO_LARGE);
    profile_destroy(profile);
}

static void detection_checks_the_whole_file(void **state)
{
    (void)state;
    buf_auto raw;
    buf_init(&raw, 1 << 16);
    put_small(&raw);
    assert_true(pprof_sniff(buf_span(&raw)));
    assert_false(pprof_sniff(span_of(raw.data, raw.size - 1)));
    assert_false(pprof_sniff(SPAN_LITERAL("")));
    assert_false(pprof_sniff(SPAN_LITERAL("main;a 12\n")));
    assert_false(pprof_sniff(SPAN_LITERAL("{\"nodes\":[]}")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_small_profile),
        cmocka_unit_test(equal_strings_become_one),
        cmocka_unit_test(order_of_fields_does_not_matter),
        cmocka_unit_test(ids_may_be_sparse_and_huge),
        cmocka_unit_test(packed_and_single_numbers_may_mix),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(ids_of_functions_and_locations_may_begin_at_0),
        cmocka_unit_test(refuses_what_is_inconsistent),
        cmocka_unit_test(refuses_what_is_cut_short),
        cmocka_unit_test(nothing_is_read_after_a_prefix),
        cmocka_unit_test(needs_types_and_strings),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(empty_messages_do_not_multiply),
        cmocka_unit_test(all_fields_survive_a_round_trip),
        cmocka_unit_test(an_encoding_that_does_not_fit_is_refused),
        cmocka_unit_test(detection_checks_the_whole_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
