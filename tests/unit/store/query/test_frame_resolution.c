/* Names from a resolver, in blocks and merged profiles: what filters match and reports show. */
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mem.h"
#include "lib/base/wait_limit.h"
#include "lib/profile/batch/batch_from_profile.h"
#include "lib/profile/profile_builder.h"
#include "lib/profile/report/filter.h"
#include "store/block/block_read.h"
#include "store/query/frame_resolution.h"
#include "store/query/row_labels.h"
#include "store/query/stack_filter.h"
#include "store/query/stack_union.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { TENANT = 7, STACKS = 5 };

/* ---- a resolver: the functions at the offsets of one binary ---- */

struct place {
    uint64_t address;
    const char *functions[3]; /* leaf first */
};

struct knowing {
    const struct place *places;
    size_t count;
    uint32_t lookup_count;
    bool fails;
    bool is_incomplete;
};

static enum err_code resolve(void *context, const struct frame_query *query, struct arena *arena,
                             struct symbolize_frames *ret_frames, struct err *err)
{
    struct knowing *knowing = context;
    knowing->lookup_count++;
    *query->is_incomplete = knowing->is_incomplete;
    assert_int_equal(query->tenant_id, TENANT);
    assert_true(span_equal_text(query->build_id, "abc1"));
    assert_true(span_equal_text(query->file, "/usr/bin/app"));
    if (knowing->fails)
        return err_set(err, ERR_IO, "the symbols cannot be read");
    for (uint32_t i = 0; i < query->address_count; i++) {
        assert_true(i == 0 || query->addresses[i] > query->addresses[i - 1]);
        for (size_t j = 0; j < knowing->count; j++) {
            const struct place *place = &knowing->places[j];
            struct symbolize_frame *frames = arena_new(arena, struct symbolize_frame, 3);
            uint32_t count = 0;
            for (; count < 3 && place->functions[count]; count++)
                frames[count] =
                    (struct symbolize_frame){.function = span_text(place->functions[count]),
                                             .file = SPAN_LITERAL("app.c"),
                                             .line = 10 + count};
            if (place->address == query->addresses[i])
                ret_frames[i] = (struct symbolize_frames){.frames = frames, .count = count};
        }
    }
    return ERR_NONE;
}

static const struct place places[] = {
    {0x1010, {"tiny", "alpha"}}, {0x1020, {"beta"}}, {0x1024, {"beta"}}};
/* Later, the last address of the binary is known, too. */
static const struct place all_places[] = {
    {0x1010, {"tiny", "alpha"}}, {0x1020, {"beta"}}, {0x1024, {"beta"}}, {0x1030, {"gamma"}}};

/* ---- a block ---- */

/* main, and below it 0x1010, 0x1020, 0x1024, 0x1030 of the binary and code without a binary; the
 * values are 1, 2, 4, 8, 16 times `times`. */
static struct batch *make_batch(int64_t times)
{
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("cpu"), SPAN_LITERAL("nanoseconds"));
    const struct profile_mapping binary = {
        .start = 0x400000,
        .limit = 0x500000,
        .offset = 0x1000,
        .filename = profile_builder_string(builder, SPAN_LITERAL("/usr/bin/app")),
        .build_id = profile_builder_string(builder, SPAN_LITERAL("abc1"))};
    const uint32_t mapping = profile_builder_mapping(builder, &binary);
    const struct profile_builder_frame named = {.name = SPAN_LITERAL("main")};
    const uint32_t root = profile_builder_frame(builder, &named);
    static const uint64_t addresses[STACKS] = {0x400010, 0x400020, 0x400024, 0x400030, 0x99};
    for (int i = 0; i < STACKS; i++) {
        const struct profile_location location = {
            .address = addresses[i], .mapping = i == STACKS - 1 ? PROFILE_NONE : mapping};
        const uint32_t stack[] = {profile_builder_location(builder, &location, NULL, 0), root};
        const int64_t value = times << i;
        profile_builder_add_sample(builder, stack, 2, &value, NULL, 0);
    }
    struct profile *fields = profile_builder_fields(builder);
    fields->time_ns = INT64_C(1790000000000000000);
    fields->duration_ns = INT64_C(1000000000);
    struct batch_source source = {0};
    struct batch *batch;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &source.profile, &err), ERR_NONE);
    assert_int_equal(batch_from_profile(&source, NULL, &batch, &err), ERR_NONE);
    return batch;
}

struct stored {
    struct buf bytes;
    struct span span;
    struct block *block;
};

static void store_block(struct stored *stored, int64_t times)
{
    struct batch *batch = make_batch(times);
    struct block_summary summary;
    struct err err;
    buf_init(&stored->bytes, 1u << 30);
    assert_int_equal(block_write_batch(batch, TENANT, 1, &stored->bytes, &summary, &err), ERR_NONE);
    stored->span = buf_span(&stored->bytes);
    assert_int_equal(
        block_open(block_source_memory(&stored->span, "test"), TENANT, 1, &stored->block, &err),
        ERR_NONE);
    batch_destroy(batch);
}

static void forget_block(struct stored *stored)
{
    block_close(stored->block);
    buf_fini(&stored->bytes);
}

static void add_block(struct stack_union *stacks, const struct block *block)
{
    struct block_cursor *cursor = block_cursor_create();
    uint32_t count;
    const struct block_granule *granules = block_granules(block, &count);
    int64_t *sums = mem_new(int64_t, block_dictionary(block)->stacks.stack_count);
    struct err err;
    assert_int_equal(count, 1);
    assert_int_equal(block_add_totals(block, granules, cursor, sums, &err), ERR_NONE);
    stack_union_add(stacks, block, sums, 0);
    mem_free(sums);
    block_cursor_destroy(cursor);
}

/* The merged profile of two blocks, with the resolver's names. */
static struct profile *merge(const struct frame_resolver *resolver,
                             struct store_symbolization *names)
{
    struct stored stored[2];
    struct stack_union *stacks = stack_union_create();
    for (int i = 0; i < 2; i++) {
        store_block(&stored[i], i + 1);
        add_block(stacks, stored[i].block);
    }
    arena_auto arena = arena_create();
    struct row_labels *labels = row_labels_create(arena, NULL, NULL, NULL, 0, ROW_LABELS_EXACT);
    const struct stack_union_type type = {.sample_type = "cpu",
                                          .sample_unit = "nanoseconds",
                                          .period_type = "",
                                          .period_unit = "",
                                          .labels = labels};
    const int64_t *starts;
    struct profile *profile;
    struct err err;
    assert_int_equal(stack_union_profile(stacks, &type, &profile, &starts, &err), ERR_NONE);
    assert_int_equal(frame_resolution_resolve(resolver, TENANT, NULL, profile, profile->arena,
                                              profile, names, &err),
                     ERR_NONE);
    row_labels_destroy(labels);
    stack_union_destroy(stacks);
    forget_block(&stored[0]);
    forget_block(&stored[1]);
    return profile;
}

/* The leaf of the sample with this value: its functions, leaf first, or binary+0xoffset. */
static const char *leaf_of(const struct profile *profile, int64_t value, struct buf *text)
{
    buf_clear(text);
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        if (profile->values[i] != value)
            continue;
        const struct profile_location *location =
            &profile->locations[profile->stack[profile->stack_start[i]]];
        for (uint32_t j = 0; j < location->line_count; j++) {
            const struct profile_line *line = &profile->lines[location->first_line + j];
            const struct profile_function *function = &profile->functions[line->function];
            buf_printf(text, "%s%.*s:%d", j ? " < " : "",
                       SPAN_PRINT(profile->strings[function->name]), (int)line->line);
        }
        if (!location->line_count && location->mapping != PROFILE_NONE) {
            const struct profile_mapping *mapping = &profile->mappings[location->mapping];
            buf_printf(text, "%.*s+0x%x", SPAN_PRINT(profile->strings[mapping->filename]),
                       (unsigned)location->address);
        }
    }
    buf_append_byte(text, 0);
    return (const char *)text->data;
}

static void a_merged_profile_has_the_names_that_are_known(void **state)
{
    (void)state;
    struct knowing knowing = {.places = places, .count = 3};
    const struct frame_resolver resolver = {.context = &knowing, .resolve = resolve};
    struct store_symbolization names = {0};
    struct profile *profile = merge(&resolver, &names);
    buf_auto text;
    buf_init(&text, 1 << 16);
    assert_int_equal(profile->sample_count, STACKS);
    assert_string_equal(leaf_of(profile, 3, &text), "tiny:10 < alpha:11");
    assert_string_equal(leaf_of(profile, 6, &text), "beta:10");
    assert_string_equal(leaf_of(profile, 12, &text), "beta:10");
    assert_string_equal(leaf_of(profile, 24, &text), "/usr/bin/app+0x1030");
    assert_string_equal(leaf_of(profile, 48, &text), "");
    assert_int_equal(knowing.lookup_count, 1);
    assert_int_equal(names.address_count, 4);
    assert_int_equal(names.unknown_count, 1);
    /* Equal strings have equal indexes; beta is one function. */
    for (uint32_t i = 0; i < profile->string_count; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_false(span_equal(profile->strings[i], profile->strings[j]));
    assert_int_equal(profile->function_count, 4);
    /* Addresses and build ids stay, so that later names can be added. */
    for (uint32_t i = 0; i < profile->sample_count; i++)
        assert_true(profile->locations[profile->stack[profile->stack_start[i]]].address != 0);
    profile_destroy(profile);
}

static void without_a_resolver_binary_and_offset_stay(void **state)
{
    (void)state;
    struct store_symbolization names = {0};
    struct profile *profile = merge(NULL, &names);
    buf_auto text;
    buf_init(&text, 1 << 16);
    assert_string_equal(leaf_of(profile, 3, &text), "/usr/bin/app+0x1010");
    assert_int_equal(names.address_count, 4);
    assert_int_equal(names.unknown_count, 4);
    profile_destroy(profile);
}

static void later_names_appear_in_old_profiles(void **state)
{
    (void)state;
    struct knowing knowing = {.places = all_places, .count = 4};
    const struct frame_resolver resolver = {.context = &knowing, .resolve = resolve};
    struct store_symbolization names = {0};
    struct profile *profile = merge(&resolver, &names);
    buf_auto text;
    buf_init(&text, 1 << 16);
    assert_string_equal(leaf_of(profile, 24, &text), "gamma:10");
    assert_int_equal(names.unknown_count, 0);
    profile_destroy(profile);
}

/* ---- filters ---- */

/* Sums of the stacks that the rule keeps: bits of 1, 2, 4, 8, 16. */
static int64_t kept(const struct frame_resolver *resolver, enum filter_action action,
                    const char *pattern)
{
    struct stored stored;
    store_block(&stored, 1);
    arena_auto arena = arena_create();
    const struct filter_rule rule = {.action = action, .pattern = span_text(pattern)};
    const struct filter *filter;
    const bool *keeps;
    struct store_symbolization names = {0};
    struct err err;
    assert_int_equal(filter_create(arena, &rule, 1, &filter, &err), ERR_NONE);
    const struct dictionary *dictionary = block_dictionary(stored.block);
    assert_int_equal(
        stack_filter_apply(filter, resolver, TENANT, NULL, dictionary, arena, &names, &keeps, &err),
        ERR_NONE);
    struct block_cursor *cursor = block_cursor_create();
    uint32_t count;
    const struct block_granule *granules = block_granules(stored.block, &count);
    struct block_totals totals;
    int64_t sum = 0;
    assert_int_equal(block_read_totals(stored.block, granules, cursor, &totals, &err), ERR_NONE);
    for (uint32_t i = 0; i < totals.count; i++)
        sum += keeps[totals.stacks[i]] ? totals.sums[i] : 0;
    block_cursor_destroy(cursor);
    forget_block(&stored);
    return sum;
}

static void filters_match_resolved_names(void **state)
{
    (void)state;
    struct knowing knowing = {.places = places, .count = 3};
    const struct frame_resolver resolver = {.context = &knowing, .resolve = resolve};
    assert_int_equal(kept(&resolver, FILTER_FOCUS, "^alpha$"), 1);
    assert_int_equal(kept(&resolver, FILTER_FOCUS, "^tiny$"), 1); /* an inlined call */
    assert_int_equal(kept(&resolver, FILTER_FOCUS, "^beta$"), 2 + 4);
    assert_int_equal(kept(&resolver, FILTER_FOCUS, "app\\.c"), 1 + 2 + 4);
    assert_int_equal(kept(&resolver, FILTER_FOCUS, "^gamma$"), 0);
    assert_int_equal(kept(NULL, FILTER_FOCUS, "^alpha$"), 0);
}

static void no_filter_loses_a_frame_whose_name_is_not_known(void **state)
{
    (void)state;
    struct knowing knowing = {.places = places, .count = 3};
    const struct frame_resolver resolver = {.context = &knowing, .resolve = resolve};
    /* No name removes an unknown frame; its binary matches. */
    assert_int_equal(kept(&resolver, FILTER_IGNORE, "^(alpha|beta|gamma)$"), 8 + 16);
    assert_int_equal(kept(&resolver, FILTER_FOCUS, "/usr/bin/app"), 1 + 2 + 4 + 8);
    assert_int_equal(kept(&resolver, FILTER_FOCUS, "main"), 31);
    /* Once the frame is known, its name is matched: nothing was decided when it was stored. */
    knowing.places = all_places;
    knowing.count = 4;
    assert_int_equal(kept(&resolver, FILTER_IGNORE, "^(alpha|beta|gamma)$"), 16);
    assert_int_equal(kept(&resolver, FILTER_FOCUS, "^gamma$"), 8);
}

static void a_result_reports_names_that_are_left_out_temporarily(void **state)
{
    (void)state;
    struct knowing knowing = {.places = places, .count = 3};
    const struct frame_resolver resolver = {.context = &knowing, .resolve = resolve};
    for (int i = 0; i < 2; i++) {
        struct store_symbolization names = {0};
        knowing.is_incomplete = i;
        profile_destroy(merge(&resolver, &names));
        assert_int_equal(names.is_incomplete, i);
    }
}

/* ---- filters that several queries compute ---- */

/* Two queries: while the first waits for names, the other looks for the same filter. */
struct pair {
    struct stack_filters *filters;
    const struct block *block;
    struct stack_filter_query query;
    struct wait_limit wait_limit; /* of the other query */
    enum err_code code;           /* its result */
};

static void *look_up_meanwhile(void *context)
{
    struct pair *pair = context;
    struct stack_filter_query query = pair->query;
    struct store_symbolization names = {0};
    struct flight_entry *entry = NULL;
    const bool *keeps;
    struct err err;
    query.wait_limit = &pair->wait_limit;
    pair->code =
        stack_filters_ref(pair->filters, &query, pair->block, &names, &entry, &keeps, &err);
    flight_cache_unref(pair->code ? NULL : entry);
    return NULL;
}

static enum err_code resolve_after_another(void *context, const struct frame_query *query,
                                           struct arena *arena, struct symbolize_frames *ret_frames,
                                           struct err *err)
{
    (void)query, (void)arena, (void)ret_frames, (void)err;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look_up_meanwhile, context), 0);
    pthread_join(thread, NULL);
    return ERR_NONE;
}

static void waiting_for_a_filter_ends_with_the_query(void **state)
{
    (void)state;
    const atomic_bool is_cancelled = true;
    const struct wait_limit wait_limits[] = {{.deadline_ns = 1}, {.is_cancelled = &is_cancelled}};
    struct stored stored;
    store_block(&stored, 1);
    for (size_t i = 0; i < 2; i++) {
        arena_auto arena = arena_create();
        const struct filter_rule rule = {.action = FILTER_FOCUS, .pattern = SPAN_LITERAL("main")};
        struct pair pair = {.filters = stack_filters_create(1 << 20),
                            .block = stored.block,
                            .wait_limit = wait_limits[i]};
        const struct frame_resolver resolver = {.context = &pair, .resolve = resolve_after_another};
        struct store_symbolization names = {0};
        struct flight_entry *entry;
        const bool *keeps;
        struct err err;
        pair.query = (struct stack_filter_query){.resolver = &resolver, .tenant_id = TENANT};
        assert_int_equal(filter_create(arena, &rule, 1, &pair.query.filter, &err), ERR_NONE);
        pair.query.rules = stack_filter_key(arena, pair.query.filter);
        assert_int_equal(stack_filters_ref(pair.filters, &pair.query, stored.block, &names, &entry,
                                           &keeps, &err),
                         ERR_NONE);
        assert_int_equal(pair.code, ERR_CANCELLED);
        flight_cache_unref(entry);
        stack_filters_destroy(pair.filters);
    }
    forget_block(&stored);
}

static void errors_of_the_resolver_are_returned(void **state)
{
    (void)state;
    struct knowing knowing = {.fails = true};
    const struct frame_resolver resolver = {.context = &knowing, .resolve = resolve};
    struct stored stored;
    store_block(&stored, 1);
    arena_auto arena = arena_create();
    struct profile named;
    struct store_symbolization names = {0};
    struct err err;
    assert_int_equal(frame_resolution_resolve(&resolver, TENANT, NULL,
                                              block_dictionary(stored.block)->tables, arena, &named,
                                              &names, &err),
                     ERR_IO);
    assert_string_equal(err.message, "the symbols cannot be read");
    forget_block(&stored);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_merged_profile_has_the_names_that_are_known),
        cmocka_unit_test(without_a_resolver_binary_and_offset_stay),
        cmocka_unit_test(later_names_appear_in_old_profiles),
        cmocka_unit_test(filters_match_resolved_names),
        cmocka_unit_test(a_result_reports_names_that_are_left_out_temporarily),
        cmocka_unit_test(no_filter_loses_a_frame_whose_name_is_not_known),
        cmocka_unit_test(waiting_for_a_filter_ends_with_the_query),
        cmocka_unit_test(errors_of_the_resolver_are_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
