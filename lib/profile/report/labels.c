#include "lib/profile/report/labels.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/profile/report/label_filter.h"

#include <assert.h>
#include <stdlib.h>

struct count {
    const struct view *view;
    struct span wanted; /* the requested key, or empty: all */
    struct labels_key *keys;
    uint32_t key_count;
    bool has_more_keys;
    struct labels_value *values;
    uint32_t value_count;
    uint32_t value_capacity;
    uint32_t looked_at; /* labels read, for the deadline */
    /* In a diff, the string on side B for each string of side A, plus 1; 0: not yet known. */
    uint32_t *string_of_a;
    struct map_bytes strings_of_b;
    struct map_u64 key_of;    /* by string */
    struct map_u64 kind_of;   /* by key and unit, or key alone for texts */
    struct map_u64 number_of; /* by number, so that the next key fits 64 bits */
    struct map_u64 value_of;  /* by kind, and text or number */
};

static uint64_t pair(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

/* A number for a string of either side; equal strings have equal numbers. */
static uint32_t string_id(struct count *count, uint32_t side, uint32_t string)
{
    if (side == VIEW_SIDE_B)
        return string;
    uint32_t *known = &count->string_of_a[string];
    if (*known == 0) {
        struct span text = profile_string(count->view->profiles[VIEW_SIDE_A], string);
        uint32_t found = map_bytes_find(&count->strings_of_b, text);
        uint32_t own = count->view->profile->string_count + string;
        *known = (found == MAP_ABSENT ? own : found) + 1;
    }
    return *known - 1;
}

static void add_count(struct labels_count *sum, uint32_t side, int64_t value)
{
    sum->total[side] = view_add(sum->total[side], value);
    sum->samples[side]++;
}

/* Counts a stack once. */
static void add_once(struct labels_count *sum, uint32_t *last_stack, const struct view *view,
                     uint32_t stack)
{
    if (*last_stack == stack + 1)
        return;
    *last_stack = stack + 1;
    add_count(sum, view->value_side[stack], view->values[stack]);
}

/* NULL when the key was not requested, or exceeds the limit. */
static struct labels_key *find_key(struct count *count, uint32_t id, struct span name)
{
    if (count->wanted.size && !span_equal(name, count->wanted))
        return NULL;
    uint32_t found = map_u64_find(&count->key_of, id);
    if (found != MAP_ABSENT)
        return &count->keys[found];
    if (count->key_count == LABELS_KEYS_MAX) {
        count->has_more_keys = true;
        return NULL;
    }
    map_u64_add(&count->key_of, id, count->key_count);
    struct labels_key *key = &count->keys[count->key_count++];
    *key = (struct labels_key){.name = name, .is_numeric = true, .has_one_unit = true};
    return key;
}

/* The number that map assigns to name. Once the values are full, the maps do not grow either. */
static bool number_in(const struct count *count, struct map_u64 *map, uint64_t name,
                      uint32_t *ret_number)
{
    *ret_number = count->value_count < count->value_capacity ? map_u64_add(map, name, map->count)
                                                             : map_u64_find(map, name);
    return *ret_number != MAP_ABSENT;
}

static bool name_value(struct count *count, uint32_t side, uint32_t key,
                       const struct profile_label *label, uint64_t *ret_name)
{
    uint32_t kind, number;
    uint32_t unit = label->is_numeric ? string_id(count, side, label->unit) : UINT32_MAX;
    if (!number_in(count, &count->kind_of, pair(key, unit), &kind))
        return false;
    if (!label->is_numeric)
        number = string_id(count, side, label->text);
    else if (!number_in(count, &count->number_of, (uint64_t)label->number, &number))
        return false;
    *ret_name = pair(kind, number);
    return true;
}

/* NULL when there are too many values. */
static struct labels_value *find_value(struct count *count, uint32_t side, uint32_t key,
                                       const struct profile_label *label)
{
    uint64_t name;
    uint32_t index, next = count->value_count;
    if (!name_value(count, side, key, label, &name) ||
        !number_in(count, &count->value_of, name, &index))
        return NULL;
    if (index < next)
        return &count->values[index];
    struct labels_value *value = &count->values[count->value_count++];
    *value = (struct labels_value){.key = key, .is_numeric = label->is_numeric};
    value->number = label->is_numeric ? label->number : 0;
    value->word =
        profile_string(count->view->profiles[side], label->is_numeric ? label->unit : label->text);
    return value;
}

static void count_label(struct count *count, uint32_t stack, const struct profile_label *label)
{
    const struct view *view = count->view;
    uint32_t side = view->value_side[stack];
    struct labels_key *key = find_key(count, string_id(count, side, label->key),
                                      profile_string(view->profiles[side], label->key));
    if (!key)
        return;
    add_once(&key->count, &key->last_stack, view, stack);
    struct labels_value *value = find_value(count, side, (uint32_t)(key - count->keys), label);
    if (value)
        add_once(&value->count, &value->last_stack, view, stack);
    else
        add_count(&key->uncounted, side, view->values[stack]);
}

static enum err_code count_stack(struct count *count, uint32_t stack, struct err *err)
{
    const struct profile *profile = count->view->profiles[count->view->value_side[stack]];
    uint32_t sample = count->view->samples[stack];
    for (uint32_t i = profile->label_start[sample]; i < profile->label_start[sample + 1]; i++) {
        const struct profile_label *label = &profile->labels[i];
        if (count->looked_at++ % VIEW_CHECK_STEPS == 0 && view_check_cpu(count->view, err))
            return err->code;
        if (label->is_numeric || label->text != 0) /* as in grouping: "" is no value */
            count_label(count, stack, label);
    }
    return ERR_NONE;
}

/* ---- the order of keys and values ---- */

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static uint64_t size_of(const struct labels_count *count)
{
    uint64_t a = magnitude(count->total[VIEW_SIDE_A]), b = magnitude(count->total[VIEW_SIDE_B]);
    return a > b ? a : b;
}

static int compare_sizes(const struct labels_count *a, const struct labels_count *b)
{
    uint64_t x = size_of(a), y = size_of(b);
    return (x < y) - (x > y);
}

static int compare_values(const void *a, const void *b)
{
    const struct labels_value *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    int order = compare_sizes(&x->count, &y->count);
    if (order)
        return order;
    if (x->is_numeric != y->is_numeric)
        return x->is_numeric ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return span_compare(x->word, y->word);
}

static int compare_keys(const void *a, const void *b)
{
    const struct labels_key *x = a, *y = b;
    int order = compare_sizes(&x->count, &y->count);
    return order ? order : span_compare(x->name, y->name);
}

static void share_out_values(struct count *count)
{
    for (uint32_t i = 0; i < count->value_count; i++) {
        const struct labels_value *value = &count->values[i];
        struct labels_key *key = &count->keys[value->key];
        if (key->value_count++ == 0) {
            key->values = value;
            key->unit = value->is_numeric ? value->word : span_of(NULL, 0);
        }
        key->is_numeric &= value->is_numeric;
        key->has_one_unit &= value->is_numeric && span_equal(value->word, key->unit);
    }
    for (uint32_t i = 0; i < count->key_count; i++) {
        struct labels_key *key = &count->keys[i];
        key->is_numeric &= key->value_count > 0;
        key->has_one_unit &= key->is_numeric;
        if (!key->has_one_unit)
            key->unit = span_of(NULL, 0);
    }
}

/* ---- histograms ---- */

struct scale {
    int64_t low;
    int64_t high;
    uint64_t width; /* width of equal bars; 0: powers of two */
};

static uint32_t power_of(int64_t number)
{
    return number == 0 ? 0 : 64 - (uint32_t)__builtin_clzll((uint64_t)number);
}

static uint32_t bar_of(const struct scale *scale, int64_t number)
{
    if (scale->width)
        return (uint32_t)(((uint64_t)number - (uint64_t)scale->low) / scale->width);
    return power_of(number) - power_of(scale->low);
}

/* With powers of two, bar 0 contains 0, and bar n contains 2^(n-1) .. 2^n - 1. */
static void set_ends(const struct scale *scale, uint32_t index, struct labels_bar *bar)
{
    if (scale->width) {
        bar->low = (int64_t)((uint64_t)scale->low + index * scale->width);
        uint64_t left = (uint64_t)scale->high - (uint64_t)bar->low;
        bar->high =
            left < scale->width ? scale->high : (int64_t)((uint64_t)bar->low + scale->width - 1);
        return;
    }
    uint32_t power = power_of(scale->low) + index;
    bar->low = power == 0 ? 0 : (int64_t)(UINT64_C(1) << (power - 1));
    bar->high = power == 0 ? 0 : (int64_t)((UINT64_C(1) << (power - 1)) * 2 - 1);
}

static struct scale choose_scale(const struct labels_key *key)
{
    struct scale scale = {.low = INT64_MAX, .high = INT64_MIN};
    for (uint32_t i = 0; i < key->value_count; i++) {
        int64_t number = key->values[i].number;
        scale.low = number < scale.low ? number : scale.low;
        scale.high = number > scale.high ? number : scale.high;
    }
    int64_t least = scale.low > 0 ? scale.low : 1;
    if (scale.low < 0 || scale.high / least < 64)
        scale.width =
            ((uint64_t)scale.high - (uint64_t)scale.low) / (uint64_t)LABELS_BARS_EQUAL + 1;
    return scale;
}

static void add_histogram(struct arena *arena, struct labels_key *key)
{
    if (!key->is_numeric || !key->has_one_unit || key->value_count <= LABELS_BARS_EQUAL)
        return;
    struct scale scale = choose_scale(key);
    key->bar_count = bar_of(&scale, scale.high) + 1;
    assert(key->bar_count <= LABELS_BARS_MAX);
    struct labels_bar *bars = arena_new(arena, struct labels_bar, key->bar_count);
    for (uint32_t i = 0; i < key->bar_count; i++)
        set_ends(&scale, i, &bars[i]);
    for (uint32_t i = 0; i < key->value_count; i++) {
        const struct labels_count *from = &key->values[i].count;
        struct labels_count *to = &bars[bar_of(&scale, key->values[i].number)].count;
        for (int side = 0; side < VIEW_SIDE_COUNT; side++) {
            to->total[side] = view_add(to->total[side], from->total[side]);
            to->samples[side] += from->samples[side];
        }
    }
    key->bars = bars;
}

/* ---- the whole ---- */

static uint32_t label_count(const struct profile *profile)
{
    return profile && profile->sample_count ? profile->label_start[profile->sample_count] : 0;
}

static bool has_key(const struct profile *profile, struct span name)
{
    /* a key that does not match, so that it is compared only once */
    uint32_t known = PROFILE_NONE;
    for (uint32_t i = 0; i < label_count(profile); i++) {
        if (profile->labels[i].key == known)
            continue;
        known = profile->labels[i].key;
        if (span_equal(profile_string(profile, known), name))
            return true;
    }
    return false;
}

static enum err_code check_wanted(const struct view *view, struct span key, struct err *err)
{
    if (key.size == 0 || has_key(view->profiles[VIEW_SIDE_B], key) ||
        has_key(view->profiles[VIEW_SIDE_A], key))
        return ERR_NONE;
    buf_auto known;
    buf_init(&known, ERR_MESSAGE_BYTES / 2);
    label_filter_append_keys(view->profile, &known);
    return err_set(err, ERR_INVALID, "'%.*s' is no label of this profile%.*s",
                   key.size > 100 ? 100 : (int)key.size, (const char *)key.data,
                   SPAN_PRINT(buf_span(&known)));
}

static void name_strings(struct count *count, struct arena *scratch)
{
    const struct profile *a = count->view->profiles[VIEW_SIDE_A], *b = count->view->profile;
    if (!a)
        return;
    count->string_of_a = arena_new(scratch, uint32_t, a->string_count);
    map_bytes_init(&count->strings_of_b, b->string_count);
    for (uint32_t i = 0; i < b->string_count; i++)
        map_bytes_add(&count->strings_of_b, profile_string(b, i), i);
}

static void fini_maps(struct count *count)
{
    map_bytes_fini(&count->strings_of_b);
    map_u64_fini(&count->key_of);
    map_u64_fini(&count->kind_of);
    map_u64_fini(&count->number_of);
    map_u64_fini(&count->value_of);
}

static enum err_code count_all(struct count *count, struct labels_count *kept, struct err *err)
{
    const struct view *view = count->view;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < view->stack_count && !code; i++) {
        add_count(kept, view->value_side[i], view->values[i]);
        code = count_stack(count, i, err);
    }
    return code;
}

static void scale_all(struct count *count, struct labels_count *kept)
{
    const struct view *view = count->view;
    view_scale_sums(view, kept->total);
    for (uint32_t i = 0; i < count->key_count; i++) {
        view_scale_sums(view, count->keys[i].count.total);
        view_scale_sums(view, count->keys[i].uncounted.total);
    }
    for (uint32_t i = 0; i < count->value_count; i++)
        view_scale_sums(view, count->values[i].count.total);
}

enum err_code labels_create(struct arena *arena, const struct view *view, struct span key,
                            const struct labels **ret_labels, struct err *err)
{
    arena_auto scratch = arena_create();
    struct labels *labels = arena_new(arena, struct labels, 1);
    struct count count = {.view = view, .wanted = key};
    enum err_code code = check_wanted(view, key, err);
    if (code)
        return code;
    uint64_t most = (uint64_t)label_count(view->profiles[VIEW_SIDE_A]) + label_count(view->profile);
    count.value_capacity = most < LABELS_VALUES_MAX ? (uint32_t)most : LABELS_VALUES_MAX;
    count.values = arena_new_raw(arena, struct labels_value, count.value_capacity);
    count.keys = arena_new_raw(arena, struct labels_key,
                               most < LABELS_KEYS_MAX ? (size_t)most : LABELS_KEYS_MAX);
    name_strings(&count, scratch);
    code = count_all(&count, &labels->kept, err);
    fini_maps(&count);
    if (code)
        return code;
    scale_all(&count, &labels->kept);
    qsort(count.values, count.value_count, sizeof(*count.values), compare_values);
    share_out_values(&count);
    for (uint32_t i = 0; i < count.key_count; i++)
        add_histogram(arena, &count.keys[i]);
    qsort(count.keys, count.key_count, sizeof(*count.keys), compare_keys);
    labels->view = view;
    labels->keys = count.keys;
    labels->key_count = count.key_count;
    labels->has_more_keys = count.has_more_keys;
    *ret_labels = labels;
    return ERR_NONE;
}
