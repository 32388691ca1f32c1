/*
 * stacks: helpers for tests of formats: the samples of a profile as folded stacks.
 */
#ifndef TESTS_UNIT_LIB_PROFILE_STACKS_H
#define TESTS_UNIT_LIB_PROFILE_STACKS_H

#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/profile.h"
#include "lib/profile/report/export_folded.h"
#include "lib/profile/report/view.h"

#include <stdio.h>

typedef enum err_code decode_function(struct span bytes, const struct profile_limits *limits,
                                      struct profile **ret_profile, struct err *err);

/* The test fails if text cannot be decoded. The caller destroys the profile. */
static inline struct profile *decode_text(decode_function *decode, struct span text)
{
    struct profile *profile = NULL;
    struct err err = {0};
    enum err_code code = decode(text, NULL, &profile, &err);
    if (code)
        print_error("%s\n", err.message);
    assert_int_equal(code, ERR_NONE);
    return profile;
}

/* Asserts that the stacks of one sample type ("": the default), grouped by group_by (""), equal
 * expected, which is folded text. */
static inline void assert_stacks_by(const struct profile *profile, const char *sample_type,
                                    const char *group_by, const char *expected)
{
    arena_auto arena = arena_create();
    const struct view_options options = {.sample_type = span_text(sample_type),
                                         .group_by = span_text(group_by)};
    const struct view *view;
    struct err err;
    buf_auto text;
    buf_init(&text, 1 << 20);
    assert_int_equal(view_create(arena, profile, &options, &view, &err), ERR_NONE);
    assert_int_equal(export_folded(view, &text, &err), ERR_NONE);
    buf_append_byte(&text, '\0');
    assert_string_equal((const char *)text.data, expected);
}

static inline void assert_stacks(const struct profile *profile, const char *sample_type,
                                 const char *expected)
{
    assert_stacks_by(profile, sample_type, "", expected);
}

static inline void assert_type(const struct profile *profile, uint32_t index, const char *type,
                               const char *unit)
{
    assert_true(index < profile->value_type_count);
    const struct profile_value_type *value_type = &profile->value_types[index];
    assert_true(span_equal_text(profile_string(profile, value_type->type), type));
    assert_true(span_equal_text(profile_string(profile, value_type->unit), unit));
}

/* Asserts that decoding fails with code, and that the error message contains words. */
static inline void assert_refused(decode_function *decode, const char *text,
                                  const struct profile_limits *limits, enum err_code code,
                                  const char *words)
{
    struct profile *profile = NULL;
    struct err err = {0};
    assert_int_equal(decode(span_text(text), limits, &profile, &err), code);
    if (!strstr(err.message, words))
        print_error("message: %s\n", err.message);
    assert_non_null(strstr(err.message, words));
    assert_null(profile);
}

#endif
