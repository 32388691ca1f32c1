/*
 * maker: small profiles for tests, with types such as "cpu/nanoseconds" and samples whose stack is
 * main and one leaf. Calls: NEW_MAKER, then put_text and put_number for the labels of the next
 * sample, ADD for the sample, and in the end take.
 */
#ifndef TESTS_UNIT_LIB_PROFILE_MAKER_H
#define TESTS_UNIT_LIB_PROFILE_MAKER_H

#include "tests/unit/test.h"

#include "lib/profile/profile_builder.h"

#define MAKER_TIME_NS INT64_C(1700000000000000000)

struct maker {
    struct profile_builder *builder;
    struct profile_label labels[8];
    size_t label_count;
};

static inline struct maker new_maker(const char *const *types)
{
    struct maker maker = {.builder = profile_builder_create(NULL)};
    for (; *types; types++) {
        struct span type, unit;
        span_split(span_text(*types), '/', &type, &unit);
        profile_builder_add_value_type(maker.builder, type, unit);
    }
    profile_builder_fields(maker.builder)->time_ns = MAKER_TIME_NS;
    return maker;
}
#define NEW_MAKER(...) new_maker((const char *const[]){__VA_ARGS__, NULL})

static inline void set_period(struct maker *maker, const char *type, const char *unit,
                              int64_t period)
{
    struct profile *fields = profile_builder_fields(maker->builder);
    fields->period_type.type = profile_builder_string(maker->builder, span_text(type));
    fields->period_type.unit = profile_builder_string(maker->builder, span_text(unit));
    fields->period = period;
}

/* Adds a label to the next sample, which may have 8. */
static inline void put_text(struct maker *maker, const char *key, const char *value)
{
    maker->labels[maker->label_count++] =
        (struct profile_label){.key = profile_builder_string(maker->builder, span_text(key)),
                               .text = profile_builder_string(maker->builder, span_text(value))};
}

static inline void put_number(struct maker *maker, const char *key, int64_t number,
                              const char *unit)
{
    maker->labels[maker->label_count++] =
        (struct profile_label){.key = profile_builder_string(maker->builder, span_text(key)),
                               .number = number,
                               .unit = profile_builder_string(maker->builder, span_text(unit)),
                               .is_numeric = true};
}

static inline void add_values(struct maker *maker, const char *leaf, const int64_t *values)
{
    const struct profile_builder_frame frame = {.name = span_text(leaf)};
    const struct profile_builder_frame root = {.name = SPAN_LITERAL("main")};
    const uint32_t stack[] = {profile_builder_frame(maker->builder, &frame),
                              profile_builder_frame(maker->builder, &root)};
    profile_builder_add_sample(maker->builder, stack, 2, values, maker->labels, maker->label_count);
    maker->label_count = 0;
}
#define ADD(maker, leaf, ...) add_values((maker), (leaf), (const int64_t[]){__VA_ARGS__})

/* Ends the maker. The caller destroys the profile. */
static inline struct profile *take(struct maker *maker)
{
    struct profile *profile = NULL;
    struct err err;
    assert_int_equal(profile_builder_take(maker->builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(maker->builder);
    return profile;
}

#endif
