/* The labels of rows: those of their series, and their own labels with other names. */
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/batch/batch_from_profile.h"
#include "lib/profile/profile_builder.h"
#include "store/block/block_read.h"
#include "store/block/selector.h"
#include "store/query/row_labels.h"

#include <stdio.h>
#include <string.h>

enum { TENANT = 7, SAMPLES = 4, LABELS_MAX = 2, TEXT_BYTES = 100 };

static const struct batch_text_label series_labels[] = {
    {SPAN_LITERAL("ep"), SPAN_LITERAL("x")}, {SPAN_LITERAL("thread_name"), SPAN_LITERAL("main")}};

/* Sample i has the value 1 << i. */
static const char *const sample_labels[SAMPLES][LABELS_MAX][2] = {
    {{"ep", "y"}, {"zone", "a"}},
    {{"ep", "x"}, {"thread.name", "worker"}},
    {{"zone", "b"}, {"zone", "c"}},
    {{"k8s.ns", "p"}, {"k8s-ns", "q"}},
};

static struct batch *make_batch(void)
{
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("cpu"), SPAN_LITERAL("nanoseconds"));
    const struct profile_builder_frame named = {.name = SPAN_LITERAL("main")};
    const uint32_t stack = profile_builder_frame(builder, &named);
    for (int i = 0; i < SAMPLES; i++) {
        struct profile_label labels[LABELS_MAX] = {0};
        for (int j = 0; j < LABELS_MAX; j++) {
            labels[j].key = profile_builder_string(builder, span_text(sample_labels[i][j][0]));
            labels[j].text = profile_builder_string(builder, span_text(sample_labels[i][j][1]));
        }
        const int64_t value = INT64_C(1) << i;
        profile_builder_add_sample(builder, &stack, 1, &value, labels, LABELS_MAX);
    }
    struct profile *fields = profile_builder_fields(builder);
    fields->time_ns = INT64_C(1790000000000000000);
    fields->duration_ns = INT64_C(1000000000);
    struct batch_source source = {.labels = series_labels, .label_count = 2};
    struct batch *batch;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &source.profile, &err), ERR_NONE);
    assert_int_equal(batch_from_profile(&source, NULL, &batch, &err), ERR_NONE);
    return batch;
}

struct fixture {
    struct arena *arena;
    struct buf bytes;
    struct span span;
    struct block *block;
    struct block_cursor *cursor;
    const struct block_granule *granule;
    struct block_rows rows;
};

static int set_up(void **state)
{
    struct fixture *fixture = mem_new(struct fixture, 1);
    struct batch *batch = make_batch();
    struct block_summary summary;
    struct err err;
    uint32_t granule_count;
    fixture->arena = arena_create();
    buf_init(&fixture->bytes, 1u << 30);
    assert_int_equal(block_write_batch(batch, TENANT, 1, &fixture->bytes, &summary, &err),
                     ERR_NONE);
    batch_destroy(batch);
    fixture->span = buf_span(&fixture->bytes);
    assert_int_equal(
        block_open(block_source_memory(&fixture->span, "test"), TENANT, 1, &fixture->block, &err),
        ERR_NONE);
    fixture->granule = block_granules(fixture->block, &granule_count);
    assert_int_equal(granule_count, 1);
    fixture->cursor = block_cursor_create();
    assert_int_equal(block_read_rows(fixture->block, fixture->granule, fixture->cursor, true,
                                     &fixture->rows, &err),
                     ERR_NONE);
    assert_int_equal(fixture->rows.row_count, SAMPLES);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    block_cursor_destroy(fixture->cursor);
    block_close(fixture->block);
    buf_fini(&fixture->bytes);
    arena_destroy(fixture->arena);
    mem_free(fixture);
    return 0;
}

static uint32_t set_of_sample(const struct fixture *fixture, int sample)
{
    for (uint32_t i = 0; i < fixture->rows.row_count; i++) {
        if (fixture->rows.values[i] == INT64_C(1) << sample)
            return fixture->rows.label_sets[i];
    }
    fail_msg("no row of sample %d", sample);
    return 0;
}

/* The value of a label in each sample; "-" for none. */
static void expect_values(const struct fixture *fixture, const char *name,
                          const char *const wanted[SAMPLES])
{
    static const enum row_labels_kind kinds[] = {ROW_LABELS_EXACT, ROW_LABELS_TEXTS,
                                                 ROW_LABELS_ALL};
    const struct span names[] = {span_text(name)};
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        struct row_labels *labels =
            row_labels_create(fixture->arena, NULL, NULL, names, 1, kinds[kind]);
        row_labels_begin(labels, fixture->block, fixture->granule);
        for (int i = 0; i < SAMPLES; i++) {
            uint32_t count;
            char text[TEXT_BYTES] = "";
            const struct label_words *words =
                row_labels_get(labels, row_labels_group(labels, set_of_sample(fixture, i)), &count);
            for (uint32_t j = 0; j < count; j++) {
                const size_t used = strlen(text);
                if (span_equal(words[j].key, names[0]))
                    snprintf(text + used, sizeof(text) - used, "%s%.*s", used ? "," : "",
                             SPAN_PRINT(words[j].text));
            }
            assert_string_equal(*text ? text : "-", wanted[i]);
        }
        row_labels_destroy(labels);
    }
}

static void a_label_of_the_series_hides_that_of_a_sample(void **state)
{
    expect_values(*state, "ep", (const char *const[]){"x", "x", "x", "x"});
    expect_values(*state, "zone", (const char *const[]){"a", "-", "b,c", "-"});
    expect_values(*state, "absent", (const char *const[]){"-", "-", "-", "-"});
}

static void label_names_of_samples_are_normalized_like_those_of_series(void **state)
{
    expect_values(*state, "thread_name", (const char *const[]){"main", "main", "main", "main"});
    expect_values(*state, "thread.name", (const char *const[]){"main", "main", "main", "main"});
    expect_values(*state, "k8s_ns", (const char *const[]){"-", "-", "-", "p,q"});
    expect_values(*state, "k8s.ns", (const char *const[]){"-", "-", "-", "p"});
}

/* The remaining samples, as bits. */
static unsigned staying(struct fixture *fixture, const char *filter, const char *selector_text)
{
    const struct label_filter *rules = NULL;
    struct selector *selector = NULL;
    const struct span rule = filter ? span_text(filter) : (struct span){0};
    struct err err;
    unsigned found = 0;
    if (filter)
        assert_int_equal(label_filter_create(fixture->arena, &rule, 1, &rules, &err), ERR_NONE);
    if (selector_text)
        assert_int_equal(selector_parse(fixture->arena, span_text(selector_text), &selector, &err),
                         ERR_NONE);
    const struct selector_set set = {.selectors = &selector, .count = 1};
    struct row_labels *labels = row_labels_create(
        fixture->arena, rules, selector_text ? &set : NULL, NULL, 0, ROW_LABELS_EXACT);
    row_labels_begin(labels, fixture->block, fixture->granule);
    for (int i = 0; i < SAMPLES; i++) {
        const uint32_t group = row_labels_group(labels, set_of_sample(fixture, i));
        found |= (unsigned)row_labels_stays(group) << i;
    }
    assert_int_equal(row_labels_check(labels, &err), ERR_NONE);
    row_labels_destroy(labels);
    return found;
}

static void filters_and_selectors_match_the_same_rows(void **state)
{
    static const struct {
        const char *filter;
        const char *selector;
        unsigned found;
    } cases[] = {
        {"ep=x", "{ep=\"x\"}", 15},
        {"ep=y", "{ep=\"y\"}", 0},
        {"ep!=y", "{ep!=\"y\"}", 15},
        {"zone=a", "{zone=\"a\"}", 1},
        {"zone!=a", "{zone!=\"a\"}", 14},
        {"thread.name=worker", "{thread.name=\"worker\"}", 0},
        {"thread_name=main", "{thread_name=\"main\"}", 15},
        {"thread.name=main", "{thread.name=\"main\"}", 15},
        {"k8s_ns=p", "{k8s_ns=\"p\"}", 8},
        {"k8s_ns=q", "{k8s_ns=\"q\"}", 8},
        {"k8s_ns!=p", "{k8s_ns!=\"p\"}", 7},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(staying(*state, cases[i].filter, NULL), cases[i].found);
        assert_int_equal(staying(*state, NULL, cases[i].selector), cases[i].found);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_label_of_the_series_hides_that_of_a_sample),
        TEST(label_names_of_samples_are_normalized_like_those_of_series),
        TEST(filters_and_selectors_match_the_same_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
