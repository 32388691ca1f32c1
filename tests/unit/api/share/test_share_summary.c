#include "tests/unit/test.h"

#include "api/share/share_summary.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/profile.h"
#include "lib/profile/profile_builder.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct profile *build_with(const char *type, const char *extra_type,
                                  uint32_t extra_type_count, int64_t value)
{
    struct err err = {0};
    struct profile *profile;
    struct profile_builder *builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, span_text(type), SPAN_LITERAL("count"));
    for (uint32_t i = 0; i < extra_type_count; i++)
        profile_builder_add_value_type(builder, span_text(extra_type), SPAN_LITERAL(""));
    int64_t values[SHARE_SUMMARY_SAMPLE_TYPES + 1] = {value};
    for (int i = 0; i < 3; i++) {
        char name[8];
        int length = snprintf(name, sizeof(name), "f%d", i);
        struct profile_builder_frame frame = {.name = span_of(name, (size_t)length)};
        uint32_t stack[] = {profile_builder_frame(builder, &frame)};
        profile_builder_add_sample(builder, stack, 1, values, NULL, 0);
    }
    profile_builder_add_comment(builder, SPAN_LITERAL("made \"by\" hand"));
    profile_builder_fields(builder)->duration_ns = 5;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(builder);
    return profile;
}

static struct profile *build(const char *type, uint32_t extra_type_count, int64_t value)
{
    return build_with(type, "more", extra_type_count, value);
}

static bool contains(const struct buf *buf, const char *text)
{
    return memmem(buf->data, buf->size, text, strlen(text)) != NULL;
}

static void contains_types_totals_and_counts(void **state)
{
    (void)state;
    struct err err = {0};
    struct buf json;
    buf_init(&json, SHARE_SUMMARY_BYTES);
    struct profile *profile = build("hits", 0, 7);
    assert_int_equal(share_summary_append(profile, 4711, &json, &err), ERR_NONE);
    assert_true(contains(&json, ",\"sample_types\":[{\"type\":\"hits\",\"unit\":\"count\"}]"));
    assert_true(contains(&json, "\"totals\":[21]"));
    assert_true(contains(&json, "\"sample_count\":3,"));
    assert_true(contains(&json, "\"duration_ns\":5,"));
    assert_true(contains(&json, "\"comments\":[\"made \\\"by\\\" hand\"],\"comment_count\":1"));
    profile_destroy(profile);
    buf_fini(&json);
}

static void describes_total_and_top_function(void **state)
{
    (void)state;
    struct err err = {0};
    struct buf json;
    arena_auto arena = arena_create();
    struct profile *profile = build("hits", 0, 7);
    buf_init(&json, SHARE_SUMMARY_BYTES);
    assert_int_equal(share_summary_append(profile, 0, &json, &err), ERR_NONE);
    assert_true(contains(&json, ",\"top_function\":{\"name\":\"f0\",\"self\":7}"));
    buf_append_byte(&json, 0);
    assert_string_equal(share_summary_describe((const char *)json.data, arena),
                        "21 hits in total. Top function: f0, 33.3 %.");
    profile_destroy(profile);
    buf_fini(&json);
    assert_string_equal(share_summary_describe("{}", arena), "");
    assert_string_equal(
        share_summary_describe("{\"default_sample_type_index\":0,\"totals\":[3],"
                               "\"sample_types\":[{\"type\":\"a\",\"unit\":\"a\"}]}",
                               arena),
        "3 a in total.");
}

static size_t allocated_bytes;

static void *count_malloc(size_t size)
{
    allocated_bytes += size;
    return malloc(size);
}

static struct profile *build_with_comments(uint32_t count, size_t bytes)
{
    struct err err = {0};
    struct profile *profile;
    uint8_t text[600];
    struct profile_builder *builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("hits"), SPAN_LITERAL("count"));
    assert_true(bytes <= sizeof(text));
    memset(text, 1, sizeof(text)); /* \u0001 in JSON */
    for (uint32_t i = 0; i < count; i++) {
        text[0] = (uint8_t)('A' + i);
        profile_builder_add_comment(builder, span_of(text, bytes));
    }
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(builder);
    return profile;
}

static size_t cost_of_description(const struct profile *profile)
{
    struct err err = {0};
    struct buf json;
    json_malloc_t malloc_before;
    json_free_t free_before;
    arena_auto arena = arena_create();
    buf_init(&json, SHARE_SUMMARY_BYTES);
    assert_int_equal(share_summary_append(profile, 0, &json, &err), ERR_NONE);
    buf_append_byte(&json, 0);
    json_get_alloc_funcs(&malloc_before, &free_before);
    allocated_bytes = 0;
    json_set_alloc_funcs(count_malloc, free);
    assert_string_equal(share_summary_describe((const char *)json.data, arena), "0 hits in total.");
    json_set_alloc_funcs(malloc_before, free_before);
    buf_fini(&json);
    return allocated_bytes;
}

static void a_description_costs_the_same_whatever_the_lists_contain(void **state)
{
    (void)state;
    struct profile *plain = build_with_comments(0, 0);
    struct profile *commented = build_with_comments(90, 600);
    assert_int_equal(cost_of_description(commented), cost_of_description(plain));
    profile_destroy(plain);
    profile_destroy(commented);
}

static void reads_a_summary_with_another_order(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    assert_string_equal(
        share_summary_describe("{\"cost\":{},\"sample_count\":1,\"default_sample_type_index\":0,"
                               "\"totals\":[3],\"sample_types\":[{\"type\":\"a\",\"unit\":\"a\"}]}",
                               arena),
        "3 a in total.");
}

/* The text in a name is not the key behind the members that are parsed. */
static void reads_a_total_behind_a_name_that_looks_like_a_key(void **state)
{
    (void)state;
    struct err err = {0};
    struct share_total total;
    struct buf json;
    arena_auto arena = arena_create();
    buf_init(&json, SHARE_SUMMARY_BYTES);
    struct profile *profile = build("x\",\"sample_count\":1", 0, 7);
    assert_int_equal(share_summary_append(profile, 0, &json, &err), ERR_NONE);
    buf_append_byte(&json, 0);
    assert_int_equal(
        share_summary_read_total((const char *)json.data, span_of(NULL, 0), arena, &total, &err),
        ERR_NONE);
    assert_int_equal(total.value, 21);
    profile_destroy(profile);
    buf_fini(&json);
}

static void the_top_function_is_no_dropped_frame(void **state)
{
    (void)state;
    struct err err = {0};
    buf_auto json;
    buf_init(&json, SHARE_SUMMARY_BYTES);
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("hits"), SPAN_LITERAL("count"));
    static const char *const names[] = {"malloc", "work", "main"};
    uint32_t stack[3];
    for (int i = 0; i < 3; i++) {
        const struct profile_builder_frame frame = {.name = span_text(names[i])};
        stack[i] = profile_builder_frame(builder, &frame);
    }
    const int64_t value = 7;
    profile_builder_add_sample(builder, stack, 3, &value, NULL, 0);
    profile_builder_fields(builder)->drop_frames =
        profile_builder_string(builder, SPAN_LITERAL("malloc"));
    struct profile *profile;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    assert_int_equal(share_summary_append(profile, 0, &json, &err), ERR_NONE);
    assert_true(contains(&json, ",\"top_function\":{\"name\":\"work\",\"self\":7}"));
    profile_destroy(profile);
}

static void has_no_top_function_without_a_positive_value(void **state)
{
    (void)state;
    static const int64_t values[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
    struct err err = {0};
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        struct buf json;
        struct profile *profile = build("hits", 0, values[i]);
        buf_init(&json, SHARE_SUMMARY_BYTES);
        assert_int_equal(share_summary_append(profile, 0, &json, &err), ERR_NONE);
        assert_true(contains(&json, "top_function") == (values[i] > 0));
        profile_destroy(profile);
        buf_fini(&json);
    }
}

static void contains_the_cost_of_a_report(void **state)
{
    (void)state;
    struct err err = {0};
    struct share_cost cost;
    struct buf json;
    buf_init(&json, SHARE_SUMMARY_BYTES);
    /* A name that looks like a cost is not one. */
    struct profile *profile = build("{\"cost\":{\"decode_bytes\":1", 0, 7);
    assert_int_equal(share_summary_append(profile, 4711, &json, &err), ERR_NONE);
    buf_append_byte(&json, 0);
    assert_true(share_summary_read_cost((const char *)json.data, &cost));
    assert_int_equal(cost.decode_bytes, 4711);
    assert_int_equal(cost.decoded_bytes, arena_bytes(profile->arena));
    assert_int_equal(cost.stack_frames, 3);
    assert_int_equal(cost.sample_count, 3);
    assert_false(share_summary_read_cost("{}", &cost));
    profile_destroy(profile);
    buf_fini(&json);
}

static void totals_that_overflow_are_unknown(void **state)
{
    (void)state;
    struct err err = {0};
    struct buf json;
    buf_init(&json, SHARE_SUMMARY_BYTES);
    for (int i = 0; i < 2; i++) {
        struct profile *profile = build("hits", 0, i ? INT64_MIN : INT64_MAX);
        assert_int_equal(share_summary_append(profile, 4711, &json, &err), ERR_NONE);
        assert_true(contains(&json, "\"totals\":[null]"));
        profile_destroy(profile);
        arena_auto arena = arena_create();
        struct share_total total;
        buf_append_byte(&json, 0);
        const char *text = (const char *)json.data;
        assert_int_equal(share_summary_read_total(text, span_of(NULL, 0), arena, &total, &err),
                         ERR_NONE);
        assert_false(total.is_known);
        buf_clear(&json);
    }
    buf_fini(&json);
}

static void finds_the_default_sample_type_behind_quotes(void **state)
{
    (void)state;
    struct err err = {0};
    struct buf json;
    buf_init(&json, SHARE_SUMMARY_BYTES);
    struct profile *profile = build("a\"b\\", 0, 1);
    assert_int_equal(share_summary_append(profile, 4711, &json, &err), ERR_NONE);
    struct span found = share_summary_default_sample_type(buf_span(&json));
    assert_true(span_equal_text(found, "\"a\\\"b\\\\\""));
    assert_true(span_equal_text(share_summary_default_sample_type(SPAN_LITERAL("{}")), "\"\""));
    struct span cut = SPAN_LITERAL("{\"default_sample_type\":\"a\\");
    assert_true(span_equal_text(share_summary_default_sample_type(cut), "\"\""));
    profile_destroy(profile);
    buf_fini(&json);
}

static void refuses_a_summary_that_does_not_fit(void **state)
{
    (void)state;
    struct err err = {0};
    struct buf json;
    buf_init(&json, SHARE_SUMMARY_BYTES);
    struct profile *profile = build("hits", SHARE_SUMMARY_SAMPLE_TYPES, 1);
    assert_int_equal(share_summary_append(profile, 4711, &json, &err), ERR_TOO_LARGE);
    profile_destroy(profile);
    buf_fini(&json);
    buf_init(&json, 100);
    profile = build("hits", 10, 1);
    assert_int_equal(share_summary_append(profile, 4711, &json, &err), ERR_TOO_LARGE);
    profile_destroy(profile);
    buf_fini(&json);
}

static enum err_code append_types(const char *name, uint32_t count)
{
    struct err err = {0};
    struct buf json;
    buf_init(&json, SHARE_SUMMARY_BYTES);
    struct profile *profile = build_with("hits", name, count, 1);
    enum err_code code = share_summary_append(profile, 4711, &json, &err);
    profile_destroy(profile);
    buf_fini(&json);
    return code;
}

static void refuses_long_names_of_sample_types(void **state)
{
    (void)state;
    char name[200] = "";
    memset(name, 'n', sizeof(name) - 1);
    assert_int_equal(append_types(name, SHARE_SUMMARY_SAMPLE_TYPES_BYTES / 300), ERR_NONE);
    assert_int_equal(append_types(name, SHARE_SUMMARY_SAMPLE_TYPES_BYTES / 200), ERR_TOO_LARGE);
}

static void lists_show_a_part_of_the_summary(void **state)
{
    (void)state;
    struct buf json;
    buf_init(&json, SHARE_SUMMARY_BYTES);
    struct profile *profile = build("hits", 0, 7);
    share_summary_append_list(profile, &json);
    assert_true(span_equal_text(
        buf_span(&json), "{\"sample_count\":3,\"time_ns\":0,\"duration_ns\":5,\"sample_types\":"
                         "[{\"type\":\"hits\",\"unit\":\"count\"}],"
                         "\"default_sample_type\":\"hits\"}"));
    profile_destroy(profile);
    buf_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contains_types_totals_and_counts),
        cmocka_unit_test(describes_total_and_top_function),
        cmocka_unit_test(a_description_costs_the_same_whatever_the_lists_contain),
        cmocka_unit_test(reads_a_summary_with_another_order),
        cmocka_unit_test(reads_a_total_behind_a_name_that_looks_like_a_key),
        cmocka_unit_test(the_top_function_is_no_dropped_frame),
        cmocka_unit_test(has_no_top_function_without_a_positive_value),
        cmocka_unit_test(contains_the_cost_of_a_report),
        cmocka_unit_test(totals_that_overflow_are_unknown),
        cmocka_unit_test(finds_the_default_sample_type_behind_quotes),
        cmocka_unit_test(refuses_a_summary_that_does_not_fit),
        cmocka_unit_test(refuses_long_names_of_sample_types),
        cmocka_unit_test(lists_show_a_part_of_the_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
