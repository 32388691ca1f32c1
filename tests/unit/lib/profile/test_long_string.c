#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/formats/folded.h"
#include "lib/profile/long_string.h"
#include "lib/profile/otlp/otlp.h"
#include "lib/profile/pprof/pprof.h"
#include "lib/profile/profile.h"
#include "tests/unit/lib/profile/protobuf.h"

enum { LONG = 100000, LIMIT = 1000 };

static struct span make_text(struct arena *arena, const char *unit, const char *end)
{
    struct buf buf;
    buf_init(&buf, LONG * 8);
    while (buf.size < LONG)
        buf_append_text(&buf, unit);
    buf_append_text(&buf, end);
    struct span text = span_of(arena_strndup(arena, (const char *)buf.data, buf.size), buf.size);
    buf_fini(&buf);
    return text;
}

static void long_strings_are_cut_and_stay_different(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    uint32_t count = 0;
    const struct span short_text = SPAN_LITERAL("std::vector<int>");
    assert_ptr_equal(long_string_cut(arena, short_text, LIMIT, &count).data, short_text.data);
    assert_int_equal(count, 0);
    const struct span a = long_string_cut(arena, make_text(arena, "f", "a"), LIMIT, &count);
    const struct span b = long_string_cut(arena, make_text(arena, "f", "b"), LIMIT, &count);
    const struct span again = long_string_cut(arena, make_text(arena, "f", "a"), LIMIT, &count);
    assert_int_equal(count, 3);
    assert_int_equal(a.size, LIMIT);
    assert_int_equal(a.data[LIMIT - 33], '#');
    assert_false(span_equal(a, b));
    assert_true(span_equal(a, again));
}

static void no_character_is_cut_in_two(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    static const char *const units[] = {"é", "語", "🎉", "aé", "ab語", "abc🎉", "x"};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        for (size_t limit = LIMIT; limit < LIMIT + 8; limit++) {
            uint32_t count = 0;
            const struct span cut =
                long_string_cut(arena, make_text(arena, units[i], ""), limit, &count);
            assert_true(span_is_utf8(cut));
            assert_true(cut.size <= limit && cut.size > limit - 4);
        }
    }
    uint32_t count = 0; /* bytes that are not UTF-8 are cut exactly at the limit */
    assert_int_equal(long_string_cut(arena, make_text(arena, "\x80", ""), LIMIT, &count).size,
                     LIMIT);
}

static void put_function(struct buf *raw, int64_t id, int64_t name)
{
    WIRE(raw, 5, 1, id, 2, name, 3, name);
    buf_auto location;
    buf_init(&location, 100);
    protobuf_number(&location, 1, id);
    WIRE(&location, 4, 1, id);
    protobuf_bytes(raw, 4, location.data, location.size);
}

static void pprof_with_long_names_takes_little_memory(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto raw;
    struct err err = {0};
    struct profile *profile;
    buf_init(&raw, 1 << 24);
    WIRE(&raw, 1, 1, 1, 2, 1);
    WIRE(&raw, 2, 1, 1, 1, 2, 1, 3, 2, 7);
    protobuf_text(&raw, 6, "");
    protobuf_text(&raw, 6, "samples");
    for (int64_t i = 1; i <= 3; i++) {
        const struct span name = make_text(arena, "f", i == 2 ? "b" : "a");
        put_function(&raw, i, i + 1);
        protobuf_bytes(&raw, 6, name.data, name.size);
    }
    const struct profile_limits limits = {.string_bytes = LIMIT, .memory_bytes = LONG};
    assert_int_equal(pprof_decode(buf_span(&raw), &limits, &profile, &err), ERR_NONE);
    assert_int_equal(profile->cut_string_count, 3);
    assert_int_equal(profile->string_count, 4); /* two of the three are equal */
    assert_int_equal(profile->functions[0].name, profile->functions[2].name);
    assert_int_not_equal(profile->functions[0].name, profile->functions[1].name);
    for (uint32_t i = 0; i < profile->string_count; i++)
        assert_true(profile->strings[i].size <= LIMIT);
    profile_destroy(profile);
}

static void folded_stacks_with_long_names_are_cut(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct err err = {0};
    struct profile *profile;
    const struct span name = make_text(arena, "f", "");
    buf_auto text;
    buf_init(&text, 1 << 24);
    for (int i = 0; i < 2; i++)
        buf_printf(&text, "main;%.*s;leaf%d 1\n", SPAN_PRINT(name), i);
    const struct profile_limits limits = {.string_bytes = LIMIT};
    assert_int_equal(folded_decode(buf_span(&text), &limits, &profile, &err), ERR_NONE);
    assert_int_equal(profile->cut_string_count, 1);
    for (uint32_t i = 0; i < profile->string_count; i++)
        assert_true(profile->strings[i].size <= LIMIT);
    profile_destroy(profile);
}

static void otlp_with_long_names_and_attributes_is_cut(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct span name = make_text(arena, "f", "");
    buf_auto json;
    struct err err = {0};
    struct batch *batch;
    struct otlp_result result;
    buf_init(&json, 1 << 24);
    buf_printf(&json,
               "{\"dictionary\":{\"stringTable\":[\"\",\"samples\",\"count\",\"k\",\"%.*s\"],"
               "\"mappingTable\":[{}],\"linkTable\":[{}],\"functionTable\":[{},"
               "{\"nameStrindex\":4}],\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]}],"
               "\"stackTable\":[{},{\"locationIndices\":[1]}],\"attributeTable\":[{},"
               "{\"keyStrindex\":3,\"value\":{\"stringValue\":\"%.*sx\"}}]},\"resourceProfiles\":"
               "[{\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":{\"typeStrindex\":1,"
               "\"unitStrindex\":2},\"samples\":[{\"stackIndex\":1,\"values\":[\"3\"],"
               "\"attributeIndices\":[1]}]}]}]}]}",
               SPAN_PRINT(name), SPAN_PRINT(name));
    const struct profile_limits limits = {.string_bytes = LIMIT};
    const struct otlp_options options = {.limits = &limits, .now_ns = 1700000000000000000};
    assert_int_equal(otlp_decode(buf_span(&json), OTLP_JSON, &options, &batch, &result, &err),
                     ERR_NONE);
    assert_int_equal(result.profile_count, 1);
    assert_int_equal(batch->tables->cut_string_count, 2);
    for (uint32_t i = 0; i < batch->tables->string_count; i++)
        assert_true(batch->tables->strings[i].size <= LIMIT);
    batch_destroy(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_strings_are_cut_and_stay_different),
        cmocka_unit_test(no_character_is_cut_in_two),
        cmocka_unit_test(pprof_with_long_names_takes_little_memory),
        cmocka_unit_test(folded_stacks_with_long_names_are_cut),
        cmocka_unit_test(otlp_with_long_names_and_attributes_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
