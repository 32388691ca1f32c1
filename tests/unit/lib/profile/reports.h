/*
 * reports: helpers for tests of views and reports: views of folded text and of profiles.
 */
#ifndef TESTS_UNIT_LIB_PROFILE_REPORTS_H
#define TESTS_UNIT_LIB_PROFILE_REPORTS_H

#include "tests/unit/lib/profile/stacks.h"

#include "lib/base/err.h"
#include "lib/profile/formats/folded.h"
#include "lib/profile/report/diff.h"
#include "lib/profile/report/filter.h"

static inline void destroy_profile(void *profile)
{
    profile_destroy(profile);
}

/* Lives as long as the arena. */
static inline const struct profile *folded_profile(struct arena *arena, const char *text)
{
    struct profile *profile = decode_text(folded_decode, span_text(text));
    arena_on_destroy(arena, destroy_profile, profile);
    return profile;
}

static inline const struct view *view_of(struct arena *arena, const struct profile *profile,
                                         const struct view_options *options)
{
    static const struct view_options none;
    const struct view *view = NULL;
    struct err err = {0};
    if (view_create(arena, profile, options ? options : &none, &view, &err))
        print_error("%s\n", err.message);
    assert_non_null(view);
    return view;
}

static inline const struct view *folded_view(struct arena *arena, const char *text)
{
    return view_of(arena, folded_profile(arena, text), NULL);
}

static inline const struct view *folded_diff(struct arena *arena, const char *a, const char *b,
                                             enum diff_mode mode)
{
    static const struct view_options none;
    const struct view *view = NULL;
    struct err err;
    assert_int_equal(diff_view_create(arena, folded_profile(arena, a), folded_profile(arena, b),
                                      mode, &none, &view, &err),
                     ERR_NONE);
    return view;
}

/* The index of the frame with this name; the test fails if there is none. */
static inline uint32_t frame_named(const struct view *view, const char *name)
{
    for (uint32_t i = 0; i < view->frame_count; i++) {
        if (span_equal_text(view->frames[i].name, name))
            return i;
    }
    fail_msg("no frame %s", name);
    return 0;
}

#endif
