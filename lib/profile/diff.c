#include "lib/profile/diff.h"

bool diff_find_mode(struct span text, enum diff_mode *ret_mode)
{
    bool is_normalised = span_equal_text(text, "normalised") || span_equal_text(text, "normalized");
    if (!is_normalised && text.size != 0 && !span_equal_text(text, "absolute"))
        return false;
    *ret_mode = is_normalised ? DIFF_NORMALISED : DIFF_ABSOLUTE;
    return true;
}

static struct span type_name(const struct profile *profile, uint32_t value_type)
{
    return profile_string(profile, profile->value_types[value_type].type);
}

static struct span type_unit(const struct profile *profile, uint32_t value_type)
{
    return profile_string(profile, profile->value_types[value_type].unit);
}

/* The same value type in both, names first: order is no promise of the format. */
static enum err_code find_types(const struct profile *a, const struct profile *b, struct span text,
                                uint32_t *ret_a, uint32_t *ret_b, struct err *err)
{
    enum err_code code = profile_find_value_type(b, text, ret_b, err);
    if (code)
        return code;
    struct span name = type_name(b, *ret_b);
    bool is_same_place = *ret_b < a->value_type_count && span_equal(type_name(a, *ret_b), name);
    bool is_same_shape = a->value_type_count == b->value_type_count;
    struct err missing = {0};
    if (is_same_place)
        *ret_a = *ret_b;
    else if (name.size == 0 || profile_find_value_type(a, name, ret_a, &missing)) {
        if (!is_same_shape)
            return err_set(err, ERR_INVALID,
                           "these two cannot be compared by '%.*s': the first: %s",
                           name.size > 100 ? 100 : (int)name.size, (const char *)name.data,
                           name.size ? missing.message : "it has other sample types");
        *ret_a = *ret_b;
    }
    if (!span_equal(type_unit(a, *ret_a), type_unit(b, *ret_b)))
        return err_set(err, ERR_INVALID, "the units differ: %.*s in the base, %.*s in the other",
                       SPAN_PRINT(type_unit(a, *ret_a)), SPAN_PRINT(type_unit(b, *ret_b)));
    return ERR_NONE;
}

static double normal_scale(const struct profile *a, uint32_t type_a, const struct profile *b,
                           uint32_t type_b)
{
    int64_t total_b = view_sum(b, type_b);
    return total_b ? (double)view_sum(a, type_a) / (double)total_b : 0;
}

enum err_code diff_view_create(struct arena *arena, const struct profile *a,
                               const struct profile *b, enum diff_mode mode,
                               const struct view_options *options, const struct view **ret_view,
                               struct err *err)
{
    struct view_source sources[VIEW_SIDE_COUNT] = {
        {.profile = b, .side = VIEW_SIDE_B, .scale = 1},
        {.profile = a, .side = VIEW_SIDE_A, .scale = 1},
    };
    enum err_code code =
        find_types(a, b, options->sample_type, &sources[1].value_type, &sources[0].value_type, err);
    if (code)
        return code;
    if (mode == DIFF_NORMALISED)
        sources[0].scale = normal_scale(a, sources[1].value_type, b, sources[0].value_type);
    struct view *view;
    code = view_create_from(arena, sources, VIEW_SIDE_COUNT, options, &view, err);
    if (code)
        return code;
    view->is_normalised = mode == DIFF_NORMALISED;
    *ret_view = view;
    return ERR_NONE;
}
