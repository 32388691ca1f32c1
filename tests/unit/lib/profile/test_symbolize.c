/* Symbolization of a profile: which addresses are queried, what stays and what is replaced. */
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/profile_builder.h"
#include "lib/profile/symbolize.h"

#include <stdio.h>

/* Locations in the order of the profile: raw, with a name only, with a line, and raw in another
 * binary without symbols. */
enum { RAW, NAME_ALONE, WITH_LINE, UNKNOWN, LOCATION_COUNT };

static struct profile *make(void)
{
    struct profile_builder *builder = profile_builder_create(NULL);
    struct err err;
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    const struct profile_mapping app = {
        .start = 0x5000,
        .limit = 0x6000,
        .offset = 0x1000,
        .filename = profile_builder_string(builder, SPAN_LITERAL("/usr/bin/app")),
        .build_id = profile_builder_string(builder, SPAN_LITERAL("abc1"))};
    const struct profile_mapping other = {
        .start = 0x7000,
        .limit = 0x8000,
        .filename = profile_builder_string(builder, SPAN_LITERAL("/usr/lib/other"))};
    const uint32_t name = profile_builder_string(builder, SPAN_LITERAL("from_sender"));
    const struct profile_line line = {
        .function = profile_builder_function(
            builder, &(struct profile_function){.name = name, .system_name = name})};
    struct profile_line placed = line;
    placed.line = 12;
    const uint32_t in_app = profile_builder_mapping(builder, &app);
    const uint32_t in_other = profile_builder_mapping(builder, &other);
    struct profile_location location = {.mapping = in_app, .address = 0x5030};
    const uint32_t stack[LOCATION_COUNT] = {
        profile_builder_location(builder, &location, NULL, 0),
        profile_builder_location(
            builder, &(struct profile_location){.mapping = in_app, .address = 0x5010}, &line, 1),
        profile_builder_location(
            builder, &(struct profile_location){.mapping = in_app, .address = 0x5020}, &placed, 1),
        profile_builder_location(
            builder, &(struct profile_location){.mapping = in_other, .address = 0x7040}, NULL, 0)};
    profile_builder_add_sample(builder, stack, LOCATION_COUNT, &(int64_t){5}, NULL, 0);
    struct profile *profile;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(builder);
    return profile;
}

struct lookups {
    int64_t line; /* of the results */
    uint32_t address_count;
    uint32_t prepared_count; /* binaries that were prepared */
};

static enum err_code prepare(void *context, const struct symbolize_binary *binaries, uint32_t count,
                             struct err *err)
{
    struct lookups *lookups = context;
    (void)err;
    assert_int_equal(lookups->prepared_count, 0);
    assert_int_equal(lookups->address_count, 0);
    lookups->prepared_count = count;
    assert_int_equal(count, 2);
    assert_true(span_equal_text(binaries[0].build_id, "abc1"));
    assert_int_equal(binaries[1].build_id.size, 0);
    assert_true(span_equal_text(binaries[1].file, "/usr/lib/other"));
    assert_int_equal(binaries[1].address_count, 1);
    return ERR_NONE;
}

static enum err_code resolve(void *context, const struct symbolize_query *query,
                             struct arena *arena, struct symbolize_frames *ret_frames,
                             struct err *err)
{
    struct lookups *lookups = context;
    (void)err;
    lookups->address_count += query->address_count;
    if (!span_equal_text(query->build_id, "abc1"))
        return ERR_NONE;
    for (uint32_t i = 0; i < query->address_count; i++) {
        assert_true(query->addresses[i] >= 0x1010 && query->addresses[i] <= 0x1030);
        struct symbolize_frame *frames = arena_new(arena, struct symbolize_frame, 2);
        frames[0] = (struct symbolize_frame){.function = SPAN_LITERAL("inner"),
                                             .file = SPAN_LITERAL("app.c"),
                                             .line = lookups->line};
        frames[1] = (struct symbolize_frame){.function = SPAN_LITERAL("outer"),
                                             .system_name = SPAN_LITERAL("_Z5outer")};
        ret_frames[i] = (struct symbolize_frames){.frames = frames, .count = 2};
    }
    return ERR_NONE;
}

static const char *name_of(const struct profile *profile, uint32_t location, uint32_t line)
{
    const uint32_t at = profile->locations[location].first_line + line;
    return (const char *)profile->strings[profile->functions[profile->lines[at].function].name]
        .data;
}

static struct profile name_it(const struct profile *profile, enum symbolize_scope scope,
                              int64_t line, struct symbolize_counts *counts)
{
    struct lookups lookups = {.line = line};
    const struct symbolize_resolver resolver = {
        .context = &lookups, .prepare = prepare, .resolve = resolve};
    struct profile named;
    struct err err;
    *counts = (struct symbolize_counts){0};
    assert_int_equal(
        symbolize_profile(&resolver, scope, profile, profile->arena, &named, counts, &err),
        ERR_NONE);
    assert_int_equal(lookups.prepared_count, 2);
    assert_int_equal(lookups.address_count, counts->address_count);
    return named;
}

static void locations_without_names_are_symbolized(void **state)
{
    (void)state;
    struct profile *profile = make();
    struct symbolize_counts counts;
    const struct profile named = name_it(profile, SYMBOLIZE_UNNAMED, 3, &counts);
    assert_int_equal(counts.address_count, 2);
    assert_int_equal(counts.unknown_count, 1);
    assert_int_equal(named.locations[RAW].line_count, 2);
    assert_string_equal(name_of(&named, RAW, 0), "inner");
    assert_string_equal(name_of(&named, RAW, 1), "outer");
    assert_string_equal(name_of(&named, NAME_ALONE, 0), "from_sender");
    assert_int_equal(named.locations[UNKNOWN].line_count, 0);
    const struct profile_mapping *mapping = &named.mappings[named.locations[RAW].mapping];
    assert_true(mapping->has_functions && mapping->has_filenames && mapping->has_line_numbers &&
                mapping->has_inline_frames);
    assert_false(named.mappings[named.locations[UNKNOWN].mapping].has_functions);
    /* The original profile is unchanged. */
    assert_int_equal(profile->locations[RAW].line_count, 0);
    assert_false(profile->mappings[profile->locations[RAW].mapping].has_functions);
    profile_destroy(profile);
}

static void names_are_replaced_only_by_lines(void **state)
{
    (void)state;
    struct profile *profile = make();
    struct symbolize_counts counts;
    const struct profile named = name_it(profile, SYMBOLIZE_WITHOUT_LINES, 3, &counts);
    assert_int_equal(counts.address_count, 3);
    assert_string_equal(name_of(&named, NAME_ALONE, 0), "inner");
    assert_string_equal(name_of(&named, WITH_LINE, 0), "from_sender");
    const struct profile poor = name_it(profile, SYMBOLIZE_WITHOUT_LINES, 0, &counts);
    assert_string_equal(name_of(&poor, RAW, 0), "inner");
    assert_string_equal(name_of(&poor, NAME_ALONE, 0), "from_sender");
    profile_destroy(profile);
}

static void binaries_without_symbols_are_reported(void **state)
{
    (void)state;
    struct profile *profile = make();
    const struct symbolize_binary *binaries;
    assert_int_equal(symbolize_find_binaries(profile, profile->arena, &binaries), 2);
    assert_true(span_equal_text(binaries[0].build_id, "abc1"));
    assert_int_equal(binaries[0].address_count, 1);
    assert_true(span_equal_text(binaries[1].file, "/usr/lib/other"));
    struct symbolize_counts counts;
    const struct profile named = name_it(profile, SYMBOLIZE_UNNAMED, 3, &counts);
    assert_int_equal(symbolize_find_binaries(&named, profile->arena, &binaries), 1);
    assert_true(symbolize_wants(&named, SYMBOLIZE_UNNAMED));
    profile_destroy(profile);
}

/* A profile with a location per address: mapping_count binaries with address_count addresses each.
 */
static struct profile *make_large(uint32_t mapping_count, uint32_t address_count)
{
    struct profile_builder *builder = profile_builder_create(NULL);
    struct err err;
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    for (uint32_t i = 0; i < mapping_count; i++) {
        const uint64_t start = (uint64_t)i << 20;
        char id[16];
        snprintf(id, sizeof(id), "%08x", i + 1);
        const struct profile_mapping mapping = {.start = start,
                                                .limit = start + (1 << 20),
                                                .build_id =
                                                    profile_builder_string(builder, span_text(id))};
        const uint32_t number = profile_builder_mapping(builder, &mapping);
        for (uint32_t at = 0; at < address_count; at++) {
            const struct profile_location location = {.mapping = number, .address = start + at};
            const uint32_t stack = profile_builder_location(builder, &location, NULL, 0);
            profile_builder_add_sample(builder, &stack, 1, &(int64_t){1}, NULL, 0);
        }
    }
    struct profile *profile;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(builder);
    return profile;
}

struct counted {
    uint32_t query_count, address_count, most_addresses;
    size_t max_bytes; /* more are refused */
};

/* The function of an address is named by its last digits; it contains 9 inlined calls. */
static enum err_code resolve_deep(void *context, const struct symbolize_query *query,
                                  struct arena *arena, struct symbolize_frames *ret_frames,
                                  struct err *err)
{
    struct counted *counted = context;
    (void)err;
    counted->query_count++;
    counted->address_count += query->address_count;
    if (query->address_count > counted->most_addresses)
        counted->most_addresses = query->address_count;
    for (uint32_t i = 0; i < query->address_count; i++) {
        assert_true(!i || query->addresses[i] > query->addresses[i - 1]);
        struct symbolize_frame *frames = arena_new(arena, struct symbolize_frame, 10);
        const char *name = arena_printf(arena, "f%llu", (unsigned long long)query->addresses[i]);
        for (int at = 0; at < 10; at++)
            frames[at] = (struct symbolize_frame){.function = span_text(name), .line = at + 1};
        ret_frames[i] = (struct symbolize_frames){.frames = frames, .count = 10};
    }
    return ERR_NONE;
}

static enum err_code limit_memory(void *context, size_t bytes, struct err *err)
{
    const struct counted *counted = context;
    return bytes <= counted->max_bytes ? ERR_NONE
                                       : err_set(err, ERR_TOO_LARGE, "the names are too large");
}

static enum err_code name_large(const struct profile *profile, struct counted *counted,
                                struct arena *arena, struct profile *ret_named,
                                struct symbolize_counts *ret_counts)
{
    const struct symbolize_resolver resolver = {
        .context = counted, .resolve = resolve_deep, .check_memory = limit_memory};
    struct err err;
    *ret_counts = (struct symbolize_counts){0};
    return symbolize_profile(&resolver, SYMBOLIZE_UNNAMED, profile, arena, ret_named, ret_counts,
                             &err);
}

static void many_addresses_are_queried_in_parts(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    struct profile *profile = make_large(1, COUNT), named;
    struct counted counted = {.max_bytes = 64 << 20};
    struct symbolize_counts counts;
    arena_auto arena = arena_create();
    assert_int_equal(name_large(profile, &counted, arena, &named, &counts), ERR_NONE);
    assert_int_equal(counted.query_count, 3);
    assert_int_equal(counted.most_addresses, 2048);
    assert_int_equal(counts.address_count, COUNT);
    assert_int_equal(counts.unknown_count, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%u", (unsigned)profile->locations[i].address);
        assert_int_equal(named.locations[i].line_count, 10);
        assert_string_equal(name_of(&named, i, 9), name);
    }
    assert_int_equal(profile_count_frames(profile), COUNT);
    assert_int_equal(profile_count_frames(&named), 10 * COUNT);
    profile_destroy(profile);
}

static void names_that_need_too_much_memory_end_the_call(void **state)
{
    (void)state;
    struct profile *profile = make_large(1, 5000), named;
    struct counted counted = {.max_bytes = 1 << 20};
    struct symbolize_counts counts;
    arena_auto arena = arena_create();
    assert_int_equal(name_large(profile, &counted, arena, &named, &counts), ERR_TOO_LARGE);
    assert_int_equal(counted.query_count, 1);
    profile_destroy(profile);
}

static void addresses_of_too_many_mappings_stay_without_names(void **state)
{
    (void)state;
    const uint32_t count = SYMBOLIZE_MAX_MAPPINGS + 5;
    struct profile *profile = make_large(count, 1), named;
    struct counted counted = {.max_bytes = 64 << 20};
    struct symbolize_counts counts;
    arena_auto arena = arena_create();
    assert_int_equal(name_large(profile, &counted, arena, &named, &counts), ERR_NONE);
    assert_int_equal(counted.query_count, SYMBOLIZE_MAX_MAPPINGS);
    assert_int_equal(counts.address_count, count);
    assert_int_equal(counts.unknown_count, 5);
    assert_int_equal(named.locations[0].line_count, 10);
    assert_int_equal(named.locations[count - 1].line_count, 0);
    profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locations_without_names_are_symbolized),
        cmocka_unit_test(names_are_replaced_only_by_lines),
        cmocka_unit_test(binaries_without_symbols_are_reported),
        cmocka_unit_test(many_addresses_are_queried_in_parts),
        cmocka_unit_test(names_that_need_too_much_memory_end_the_call),
        cmocka_unit_test(addresses_of_too_many_mappings_stay_without_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
