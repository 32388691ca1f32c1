#include "lib/profile/report/diff.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/unit.h"

bool diff_find_mode(struct span text, enum diff_mode *ret_mode)
{
    bool is_normalised = span_equal_text(text, "normalised") || span_equal_text(text, "normalized");
    if (!is_normalised && text.size != 0 && !span_equal_text(text, "absolute"))
        return false;
    *ret_mode = is_normalised ? DIFF_NORMALISED : DIFF_ABSOLUTE;
    return true;
}

enum { LISTED_BYTES = 160 };

static struct span unit_of(const struct profile *profile, uint32_t type)
{
    return profile_string(profile, profile->value_types[type].unit);
}

static bool is_same_name(const struct profile *a, uint32_t type_a, const struct profile *b,
                         uint32_t type_b)
{
    return span_equal(profile_string(a, a->value_types[type_a].type),
                      profile_string(b, b->value_types[type_b].type));
}

static bool is_same_type(const struct profile *a, uint32_t type_a, const struct profile *b,
                         uint32_t type_b)
{
    return is_same_name(a, type_a, b, type_b) && span_equal(unit_of(a, type_a), unit_of(b, type_b));
}

static bool is_like_type(const struct profile *a, uint32_t type_a, const struct profile *b,
                         uint32_t type_b)
{
    return is_same_name(a, type_a, b, type_b) &&
           unit_is_like(unit_of(a, type_a), unit_of(b, type_b));
}

/* Sets the unit of both sides to the finer one of theirs. Two names of one unit: to that of `one`.
 */
static void convert(struct view_source *one, struct view_source *other)
{
    one->unit = unit_of(one->profile, one->value_type);
    other->unit = unit_of(other->profile, other->value_type);
    one->factor = unit_factor(one->unit, other->unit);
    if (one->factor > 1) {
        one->unit = other->unit;
        other->factor = 1;
    } else {
        one->factor = 1;
        other->factor = unit_factor(other->unit, one->unit);
        other->unit = one->unit;
    }
}

/* Prefers the type with the same index, which distinguishes types of the same name and unit,
 * although formats do not guarantee an order of types. */
static bool find_same(const struct profile *from, uint32_t type, const struct profile *in,
                      uint32_t *ret_type)
{
    if (type < in->value_type_count && is_same_type(from, type, in, type)) {
        *ret_type = type;
        return true;
    }
    for (uint32_t i = 0; i < in->value_type_count; i++) {
        if (is_same_type(from, type, in, i)) {
            *ret_type = i;
            return true;
        }
    }
    for (uint32_t i = 0; i < in->value_type_count; i++) {
        if (is_like_type(from, type, in, i)) {
            *ret_type = i;
            return true;
        }
    }
    return false;
}

/* "samples/count, cpu/nanoseconds" */
static void list_types(const struct profile *profile, struct buf *list)
{
    buf_init(list, LISTED_BYTES);
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        const struct profile_value_type *type = &profile->value_types[i];
        buf_append_text(list, i ? ", " : "");
        profile_append_type_name(profile, i, list);
        if (profile_string(profile, type->type).size)
            buf_printf(list, "/%.*s", SPAN_PRINT(profile_string(profile, type->unit)));
    }
}

static enum err_code refuse_types(const struct profile *a, const struct profile *b,
                                  struct span text, struct err *err)
{
    buf_auto types_a = {0}, types_b = {0};
    list_types(a, &types_a);
    list_types(b, &types_b);
    if (text.size > 100)
        text.size = 100;
    return err_set(err, ERR_INVALID,
                   "the profiles cannot be compared%s%.*s: they have no such sample type with "
                   "convertible units in common; the first has %.*s, the second %.*s",
                   text.size ? " by " : "", SPAN_PRINT(text), SPAN_PRINT(buf_span(&types_a)),
                   SPAN_PRINT(buf_span(&types_b)));
}

enum err_code diff_find_types(const struct profile *a, const struct profile *b, struct span text,
                              uint32_t *ret_a, uint32_t *ret_b, struct err *err)
{
    enum err_code code = profile_find_value_type(b, text, ret_b, err);
    if (code)
        return code;
    if (find_same(b, *ret_b, a, ret_a))
        return ERR_NONE;
    if (text.size)
        return refuse_types(a, b, text, err);
    code = profile_find_value_type(a, text, ret_a, err);
    if (code || find_same(a, *ret_a, b, ret_b))
        return code;
    for (*ret_b = b->value_type_count; (*ret_b)-- > 0;) {
        if (find_same(b, *ret_b, a, ret_a))
            return ERR_NONE;
    }
    return refuse_types(a, b, text, err);
}

enum err_code diff_view_create(struct arena *arena, const struct profile *a,
                               const struct profile *b, enum diff_mode mode,
                               const struct view_options *options, const struct view **ret_view,
                               struct err *err)
{
    struct view_source sources[VIEW_SIDE_COUNT] = {
        {.profile = b, .side = VIEW_SIDE_B},
        {.profile = a, .side = VIEW_SIDE_A},
    };
    enum err_code code = diff_find_types(a, b, options->sample_type, &sources[1].value_type,
                                         &sources[0].value_type, err);
    if (code)
        return code;
    convert(&sources[0], &sources[1]);
    struct view *view;
    code = view_create_from(arena, sources, VIEW_SIDE_COUNT, options, &view, err);
    if (code)
        return code;
    *ret_view = view;
    view->is_normalised = mode == DIFF_NORMALISED;
    if (!view->is_normalised)
        return ERR_NONE;
    double total_a = (double)view->total[VIEW_SIDE_A], total_b = (double)view->total[VIEW_SIDE_B];
    /* There are no shares of a total that is not above zero; a negative quotient would also change
     * the sign of all values. */
    return view_scale(view, total_a > 0 && total_b > 0 ? total_a / total_b : 0, err);
}
