#include "tests/unit/lib/profile/reports.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/formats/perf_script.h"
#include "lib/profile/report/flame_binary.h"

#include <jansson.h>

static uint32_t u32_at(const struct buf *raw, uint64_t offset)
{
    uint32_t number;
    assert_true(offset + sizeof(number) <= raw->size);
    memcpy(&number, raw->data + offset, sizeof(number));
    return number;
}

static double f64_at(const struct buf *raw, uint64_t offset)
{
    double number;
    assert_true(offset + sizeof(number) <= raw->size);
    memcpy(&number, raw->data + offset, sizeof(number));
    return number;
}

/* The bytes of a section; size 0 if it does not exist. */
static struct span section(const struct buf *raw, uint32_t id)
{
    for (uint32_t i = 0; i < u32_at(raw, 40); i++) {
        uint64_t at = 64 + i * 24, offset, length;
        memcpy(&offset, raw->data + at + 8, 8);
        memcpy(&length, raw->data + at + 16, 8);
        assert_int_equal(offset % 8, 0);
        assert_true(offset + length <= raw->size);
        if (u32_at(raw, at) == id)
            return span_of(raw->data + offset, (size_t)length);
    }
    return span_of(NULL, 0);
}

static uint32_t item(struct span bytes, uint32_t index)
{
    uint32_t number;
    assert_true(((size_t)index + 1) * sizeof(number) <= bytes.size);
    memcpy(&number, bytes.data + (size_t)index * sizeof(number), sizeof(number));
    return number;
}

/* An element of a section whose numbers have 16 bits if all fit, else 32. */
static uint32_t number(const struct buf *raw, uint32_t id, uint32_t node)
{
    struct span bytes = section(raw, id);
    uint32_t count = u32_at(raw, 12);
    if (bytes.size != 2 * (size_t)count) {
        assert_int_equal(bytes.size, 4 * (size_t)count);
        return item(bytes, node);
    }
    uint16_t small;
    assert_true(node < count);
    memcpy(&small, bytes.data + (size_t)node * 2, sizeof(small));
    return small;
}

/* The own value of a node: values other than 0 are listed with their distances. */
static double own(const struct buf *raw, uint32_t gaps_id, uint32_t values_id, uint32_t node)
{
    struct span gaps = section(raw, gaps_id), values = section(raw, values_id);
    assert_int_equal(values.size, 2 * gaps.size);
    for (uint32_t i = 0, at = 0; i < gaps.size / 4; i++) {
        double value;
        at += item(gaps, i);
        memcpy(&value, values.data + (size_t)i * 8, 8);
        if (at == node)
            return value;
    }
    return 0;
}

static struct span string_at(const struct buf *raw, uint32_t index)
{
    struct span offsets = section(raw, 10), bytes = section(raw, 11);
    uint32_t start = item(offsets, index), end = item(offsets, index + 1);
    assert_true(start <= end && end <= bytes.size);
    return span_of(bytes.data + start, end - start);
}

static struct span node_name(const struct buf *raw, uint32_t node)
{
    return string_at(raw, item(section(raw, 5), number(raw, 1, node)));
}

static void write(const struct view *view, uint32_t max_nodes,
                  const struct flame_binary_options *options, struct buf *raw)
{
    arena_auto arena = arena_create();
    const struct flame *flame;
    struct err err;
    buf_init(raw, 1 << 24);
    assert_int_equal(flame_create(arena, view, max_nodes, &flame, &err), ERR_NONE);
    assert_int_equal(flame_binary_write(flame, options, raw, &err), ERR_NONE);
    assert_memory_equal(raw->data, "PFFLAME2", 8);
    assert_int_equal(raw->size % 8, 0);
    assert_int_equal(section(raw, 10).size, 4 * ((size_t)u32_at(raw, 20) + 1));
}

static void contains_nodes_frames_and_strings(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto raw;
    write(folded_view(arena, "main;a;x 1\nmain;b 5\n"), 0, NULL, &raw);
    assert_int_equal(u32_at(&raw, 8), 0);
    assert_int_equal(u32_at(&raw, 12), 5);
    assert_true(f64_at(&raw, 24) == 6 && f64_at(&raw, 32) == 0);
    static const char *const names[] = {"root", "main", "b", "a", "x"};
    static const uint32_t depths[] = {0, 1, 2, 2, 3};
    static const double selfs[] = {0, 0, 5, 0, 1};
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(span_equal_text(node_name(&raw, i), names[i]));
        assert_int_equal(number(&raw, 2, i), depths[i]);
        assert_true(own(&raw, 3, 4, i) == selfs[i]);
    }
    assert_int_equal(section(&raw, 4).size, 2 * 8);
    assert_int_equal(section(&raw, 16).size, 0);
    assert_int_equal(section(&raw, 13).size, 0);
    assert_true(string_at(&raw, 0).size == 0);
}

static void a_diff_carries_both_sides(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto raw;
    write(folded_diff(arena, "a 5\n", "a 7\nb 2\n", DIFF_ABSOLUTE), 0, NULL, &raw);
    assert_int_equal(u32_at(&raw, 8), 1);
    assert_true(f64_at(&raw, 24) == 9 && f64_at(&raw, 32) == 5);
    for (uint32_t i = 0; i < 3; i++) {
        bool is_a = span_equal_text(node_name(&raw, i), "a");
        bool is_b = span_equal_text(node_name(&raw, i), "b");
        assert_true(own(&raw, 3, 4, i) == (is_a ? 7 : is_b ? 2 : 0));
        assert_true(own(&raw, 15, 16, i) == (is_a ? 5 : 0));
    }
}

static void a_cut_tree_is_marked(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto raw, text;
    buf_init(&text, 1 << 16);
    for (int i = 0; i < 500; i++)
        buf_printf(&text, "m;f%d 1\n", i);
    buf_append_text(&text, "m;large 1000\n");
    buf_append_byte(&text, '\0');
    write(folded_view(arena, (const char *)text.data), 100, NULL, &raw);
    assert_int_equal(u32_at(&raw, 8), 2);
    assert_int_equal(section(&raw, 14).size, 8);
    uint32_t node = item(section(&raw, 14), 0);
    assert_int_equal(item(section(&raw, 14), 1), 500);
    assert_true(span_equal_text(node_name(&raw, node), "other"));
    assert_int_equal(section(&raw, 9).data[number(&raw, 1, node)], FRAME_OTHER);
}

static void numbers_above_16_bits_use_32(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto raw, text;
    buf_init(&text, 1 << 22);
    for (int i = 0; i < 65535; i++)
        buf_printf(&text, "f%d;", i);
    buf_append_text(&text, "leaf 7\n");
    buf_append_byte(&text, '\0');
    write(folded_view(arena, (const char *)text.data), 0, NULL, &raw);
    assert_int_equal(u32_at(&raw, 12), 65537);
    assert_int_equal(section(&raw, 1).size, 4 * 65537);
    for (uint32_t i = 0; i < 65537; i++)
        assert_int_equal(number(&raw, 2, i), i);
    assert_true(span_equal_text(node_name(&raw, 65536), "leaf"));
    assert_true(own(&raw, 3, 4, 65536) == 7);
}

static void values_beyond_a_double_are_marked(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto raw;
    write(folded_view(arena, "a 9007199254740993\n"), 0, NULL, &raw);
    assert_int_equal(u32_at(&raw, 8), 4);
}

static void strings_are_utf8(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct view view = *folded_view(arena, "cafe 1\n");
    struct frame frames[2] = {view.frames[0], view.frames[1]};
    frames[1].name = SPAN_LITERAL("caf\xe9\xc3\xa9");
    view.frames = frames;
    buf_auto raw;
    write(&view, 0, NULL, &raw);
    assert_true(span_equal_text(node_name(&raw, 1), "caf\xef\xbf\xbd\xc3\xa9"));
}

static void metadata_is_json_with_the_options(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto raw;
    const struct filter_rule rules[] = {{FILTER_FOCUS, SPAN_LITERAL("a\"b")},
                                        {FILTER_HIDE, SPAN_LITERAL("")}};
    const struct flame_binary_options options = {
        .title = SPAN_LITERAL("A <title>"), .rules = rules, .rule_count = 2};
    write(folded_view(arena, "a 3\n"), 0, &options, &raw);
    struct span text = section(&raw, 12);
    json_t *metadata = json_loadb((const char *)text.data, text.size, 0, NULL);
    assert_non_null(metadata);
    const char *title, *group_by, *action, *pattern;
    json_int_t total, kept;
    json_t *cut;
    assert_int_equal(json_unpack(metadata, "{s:s, s:s, s:I, s:I, s:o, s:[{s:s, s:s}!]}", "title",
                                 &title, "group_by", &group_by, "total", &total, "kept", &kept,
                                 "cut", &cut, "filters", "action", &action, "pattern", &pattern),
                     0);
    assert_string_equal(title, "A <title>");
    assert_string_equal(group_by, "function");
    assert_string_equal(pattern, "a\"b");
    assert_int_equal(total, 3);
    assert_true(json_is_null(cut));
    json_decref(metadata);
}

static void addresses_are_included_when_grouped_by_them(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view_options options = {.group_by = SPAN_LITERAL("address")};
    struct profile *profile = decode_text(
        perf_script_decode, SPAN_LITERAL("app 1 10.0: 1 cpu-clock:\n"
                                         "\tffffffff81012345 leaf+0x5 ([kernel.kallsyms])\n\n"));
    arena_on_destroy(arena, destroy_profile, profile);
    buf_auto raw;
    write(view_of(arena, profile, &options), 0, NULL, &raw);
    struct span addresses = section(&raw, 13);
    assert_int_equal(addresses.size, 8 * (size_t)u32_at(&raw, 16));
    const uint64_t kernel = UINT64_C(0xffffffff81012345);
    assert_non_null(memmem(addresses.data, addresses.size, &kernel, sizeof(kernel)));
}

static void several_locations_of_a_frame_are_included(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view_options options = {0};
    struct profile *profile =
        decode_text(perf_script_decode, SPAN_LITERAL("app 1 10.0: 1 cpu-clock:\n"
                                                     "\t1005 main+0x5 (/bin/a)\n\n"
                                                     "app 1 11.0: 1 cpu-clock:\n"
                                                     "\t1005 main+0x5 (/bin/b)\n\n"));
    arena_on_destroy(arena, destroy_profile, profile);
    buf_auto raw;
    write(view_of(arena, profile, &options), 0, NULL, &raw);
    struct span places = section(&raw, 17);
    assert_int_equal(places.size, 2 * 4);
    assert_true(span_equal_text(string_at(&raw, item(places, 0)), "/bin/a"));
    assert_true(span_equal_text(string_at(&raw, item(places, 1)), "/bin/b"));
}

static void output_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct flame *flame;
    struct err err;
    buf_auto raw;
    buf_init(&raw, 500);
    assert_int_equal(flame_create(arena, folded_view(arena, "a 1\n"), 0, &flame, &err), ERR_NONE);
    assert_int_equal(flame_binary_write(flame, NULL, &raw, &err), ERR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contains_nodes_frames_and_strings),
        cmocka_unit_test(a_diff_carries_both_sides),
        cmocka_unit_test(a_cut_tree_is_marked),
        cmocka_unit_test(numbers_above_16_bits_use_32),
        cmocka_unit_test(values_beyond_a_double_are_marked),
        cmocka_unit_test(strings_are_utf8),
        cmocka_unit_test(metadata_is_json_with_the_options),
        cmocka_unit_test(addresses_are_included_when_grouped_by_them),
        cmocka_unit_test(several_locations_of_a_frame_are_included),
        cmocka_unit_test(output_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
