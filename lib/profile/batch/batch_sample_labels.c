#include "lib/profile/batch/batch_sample_labels.h"

#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/batch/batch_labels.h"

#define XXH_INLINE_ALL
#include <stddef.h>
#include <xxhash.h>

enum { SLOTS_MIN = 64 };

/* A list of labels of samples, and what it was converted to. */
struct list {
    uint32_t first; /* in the profile's labels */
    uint32_t count;
    uint32_t set;       /* without the labels that become labels of series */
    uint32_t whole_set; /* with them */
    uint32_t group;
};

/* The members of a label that are compared; struct profile_label has padding. */
struct label_key {
    uint64_t words;
    int64_t number;
    uint64_t unit;
};

struct collector {
    const struct profile *profile;
    struct arena *scratch;
    /* Lists by hash; 0 is the empty list, which has no slot. */
    struct list *lists;
    uint32_t list_count;
    uint32_t list_capacity;
    uint32_t *slots; /* PROFILE_NONE is a free slot */
    uint32_t slot_count;
    uint64_t seed;
    /* strings of the names that become labels of series; PROFILE_NONE: not in this profile */
    uint32_t *names;
    uint32_t name_count;
    uint32_t span_id; /* strings, or PROFILE_NONE */
    uint32_t trace_id;
    struct map_bytes groups;
    uint32_t *group_values;
    uint32_t group_count;
    uint32_t group_capacity;
    uint32_t group_limit;
    struct batch_label_set *sets;
    struct profile_label *labels;
};

/* ---- equal lists ---- */

static uint64_t hash_list(const struct collector *collector, uint32_t first, uint32_t count)
{
    uint64_t hash = collector->seed;
    for (uint32_t i = first; i < first + count; i++) {
        const struct profile_label *label = &collector->profile->labels[i];
        const struct label_key key = {.words = (uint64_t)label->key << 32 | label->text,
                                      .number = label->number,
                                      .unit = (uint64_t)label->unit << 1 | label->is_numeric};
        hash = XXH3_64bits_withSeed(&key, sizeof(key), hash);
    }
    return hash;
}

static bool are_equal(const struct profile_label *a, const struct profile_label *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].key != b[i].key || a[i].text != b[i].text || a[i].number != b[i].number ||
            a[i].unit != b[i].unit || a[i].is_numeric != b[i].is_numeric)
            return false;
    }
    return true;
}

static bool is_list(const struct collector *collector, uint32_t list, uint32_t first,
                    uint32_t count)
{
    const struct profile_label *labels = collector->profile->labels;
    return collector->lists[list].count == count &&
           are_equal(labels + collector->lists[list].first, labels + first, count);
}

static void grow_list_slots(struct collector *collector)
{
    mem_free(collector->slots);
    collector->slot_count = collector->slot_count ? collector->slot_count * 2 : SLOTS_MIN;
    collector->slots = mem_new(uint32_t, collector->slot_count);
    memset(collector->slots, 0xff, collector->slot_count * sizeof(uint32_t));
    for (uint32_t i = 1; i < collector->list_count; i++) {
        const struct list *list = &collector->lists[i];
        uint64_t at = hash_list(collector, list->first, list->count);
        while (collector->slots[at & (collector->slot_count - 1)] != PROFILE_NONE)
            at++;
        collector->slots[at & (collector->slot_count - 1)] = i;
    }
}

static uint32_t add_list(struct collector *collector, uint32_t first, uint32_t count)
{
    vec_reserve(collector->lists, collector->list_capacity, collector->list_count + 1);
    collector->lists[collector->list_count] = (struct list){.first = first, .count = count};
    return collector->list_count++;
}

/* Finds or adds a list. */
static uint32_t intern_list(struct collector *collector, uint32_t first, uint32_t count)
{
    if (collector->list_count * UINT64_C(2) >= collector->slot_count)
        grow_list_slots(collector);
    uint64_t at = hash_list(collector, first, count);
    for (;; at++) {
        uint32_t *slot = &collector->slots[at & (collector->slot_count - 1)];
        if (*slot == PROFILE_NONE)
            return *slot = add_list(collector, first, count);
        if (is_list(collector, *slot, first, count))
            return *slot;
    }
}

/* Sets the list of each sample. */
static void intern_lists(struct collector *collector, uint32_t *list_of_sample)
{
    const struct profile *profile = collector->profile;
    uint32_t last = add_list(collector, 0, 0);
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        uint32_t first = profile->label_start[i];
        uint32_t count = profile->label_start[i + 1] - first;
        if (count == 0)
            list_of_sample[i] = 0;
        else if (last && is_list(collector, last, first, count))
            list_of_sample[i] = last;
        else
            list_of_sample[i] = last = intern_list(collector, first, count);
    }
}

/* ---- label sets and groups ---- */

/* Finds or adds a group; group 0 has no values. */
static enum err_code intern_group(struct collector *collector, const uint32_t *values,
                                  uint32_t *ret_group, struct err *err)
{
    size_t size = collector->name_count * sizeof(*values);
    *ret_group = map_bytes_find(&collector->groups, span_of(values, size));
    if (*ret_group != MAP_ABSENT)
        return ERR_NONE;
    if (collector->group_count == collector->group_limit)
        return err_set(err, ERR_TOO_LARGE,
                       "labels of samples split the profile into more than %u series",
                       collector->group_limit);
    if (collector->group_count == collector->group_capacity) {
        collector->group_capacity = (uint32_t)vec_grow_capacity(
            collector->group_capacity, collector->group_count + 1, size ? size : 1, UINT32_MAX);
        collector->group_values =
            mem_resize(collector->group_values, collector->group_capacity, size ? size : 1);
    }
    memcpy(collector->group_values + (size_t)collector->group_count * collector->name_count, values,
           size);
    const void *key = arena_strndup(collector->scratch, values, size);
    *ret_group = map_bytes_add(&collector->groups, span_of(key, size), collector->group_count++);
    return ERR_NONE;
}

/* Stores a label that belongs to the series in values (unless values is NULL), or one that belongs
 * to the link in link. Returns false for a label that stays with the samples. */
static bool take_label(const struct collector *collector, const struct profile_label *label,
                       uint32_t *values, struct batch_link *link)
{
    if (label->is_numeric || label->text == 0)
        return false;
    struct span text = profile_string(collector->profile, label->text);
    if (label->key == collector->span_id)
        return digest_parse_hex(text, link->span_id, sizeof(link->span_id));
    if (label->key == collector->trace_id)
        return digest_parse_hex(text, link->trace_id, sizeof(link->trace_id));
    for (uint32_t i = 0; values && i < collector->name_count; i++) {
        if (label->key != collector->names[i] || values[i])
            continue;
        values[i] = label->text;
        return true;
    }
    return false;
}

/* Adds a set of the labels that stay with the samples. */
static uint32_t add_set(struct collector *collector, const struct list *list, uint32_t *values,
                        struct batch_sample_labels *result)
{
    static const struct batch_link none = {0};
    struct batch_label_set set = {.first_label = result->label_count};
    for (uint32_t i = 0; i < list->count; i++) {
        const struct profile_label *label = &collector->profile->labels[list->first + i];
        if (!take_label(collector, label, values, &set.link))
            collector->labels[result->label_count++] = *label;
    }
    set.label_count = result->label_count - set.first_label;
    if (!set.label_count && memcmp(&set.link, &none, sizeof(none)) == 0)
        return 0;
    collector->sets[result->set_count] = set;
    return result->set_count++;
}

static enum err_code convert_lists(struct collector *collector, bool has_snapshots,
                                   struct batch_sample_labels *result, struct err *err)
{
    uint32_t *values = arena_new(collector->scratch, uint32_t, collector->name_count);
    enum err_code code = ERR_NONE;
    collector->sets[0] = (struct batch_label_set){0};
    result->set_count = 1;
    for (uint32_t i = 0; i < collector->list_count && !code; i++) {
        struct list *list = &collector->lists[i];
        memset(values, 0, collector->name_count * sizeof(*values));
        list->set = list->whole_set = add_set(collector, list, values, result);
        code = intern_group(collector, values, &list->group, err);
        if (has_snapshots && list->group)
            list->whole_set = add_set(collector, list, NULL, result);
    }
    return code;
}

static void find_names(struct collector *collector, const struct span *names)
{
    const struct profile *profile = collector->profile;
    collector->names = arena_new_raw(collector->scratch, uint32_t, collector->name_count);
    memset(collector->names, 0xff, collector->name_count * sizeof(uint32_t));
    collector->span_id = collector->trace_id = PROFILE_NONE;
    uint32_t label_count = profile->label_start[profile->sample_count];
    uint32_t known = PROFILE_NONE;
    for (uint32_t i = 0; i < label_count; i++) {
        uint32_t key = profile->labels[i].key;
        if (key == known)
            continue;
        known = key;
        struct span text = profile_string(profile, key);
        if (span_equal_text(text, "span_id"))
            collector->span_id = key;
        else if (span_equal_text(text, "trace_id"))
            collector->trace_id = key;
        for (uint32_t j = 0; j < collector->name_count; j++) {
            if (collector->names[j] == PROFILE_NONE && batch_labels_becomes(text, names[j]))
                collector->names[j] = key;
        }
    }
}

static uint32_t *numbers_of_samples(const struct collector *collector,
                                    const uint32_t *list_of_sample, size_t member)
{
    uint32_t count = collector->profile->sample_count;
    uint32_t *numbers = arena_new_raw(collector->profile->arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct list *list = &collector->lists[list_of_sample[i]];
        memcpy(&numbers[i], (const uint8_t *)list + member, sizeof(numbers[i]));
    }
    return numbers;
}

static enum err_code collect(struct collector *collector, bool has_snapshots,
                             struct batch_sample_labels *result, struct err *err)
{
    const struct profile *profile = collector->profile;
    uint32_t *list_of_sample = arena_new_raw(collector->scratch, uint32_t, profile->sample_count);
    intern_lists(collector, list_of_sample);
    size_t label_count = 0;
    for (uint32_t i = 0; i < collector->list_count; i++)
        label_count += collector->lists[i].count;
    const size_t most = has_snapshots && collector->name_count ? 2 : 1; /* sets per list */
    collector->sets =
        arena_new_raw(profile->arena, struct batch_label_set, most * collector->list_count);
    collector->labels = arena_new_raw(profile->arena, struct profile_label, most * label_count);
    result->sets = collector->sets;
    result->labels = collector->labels;
    enum err_code code = convert_lists(collector, has_snapshots, result, err);
    if (code)
        return code;
    if (result->set_count > 1) {
        result->set_of_sample =
            numbers_of_samples(collector, list_of_sample, offsetof(struct list, set));
        result->whole_set_of_sample =
            collector->group_count > 1
                ? numbers_of_samples(collector, list_of_sample, offsetof(struct list, whole_set))
                : result->set_of_sample;
    }
    if (collector->group_count > 1)
        result->group_of_sample =
            numbers_of_samples(collector, list_of_sample, offsetof(struct list, group));
    size_t value_count = (size_t)collector->group_count * collector->name_count;
    uint32_t *group_values = arena_new_raw(profile->arena, uint32_t, value_count);
    if (value_count)
        memcpy(group_values, collector->group_values, value_count * sizeof(uint32_t));
    result->group_values = group_values;
    result->group_count = collector->group_count;
    return ERR_NONE;
}

enum err_code batch_sample_labels_collect(const struct profile *profile, const struct span *names,
                                          uint32_t name_count, bool has_snapshots,
                                          uint32_t group_limit,
                                          struct batch_sample_labels *ret_result, struct err *err)
{
    static const struct batch_label_set no_labels = {0};
    struct batch_sample_labels result = {.name_count = name_count};
    if (profile->sample_count == 0 || profile->label_start[profile->sample_count] == 0) {
        result.sets = &no_labels;
        result.set_count = 1;
        result.group_values = arena_new(profile->arena, uint32_t, name_count);
        result.group_count = 1;
        *ret_result = result;
        return ERR_NONE;
    }
    arena_auto scratch = arena_create();
    struct collector collector = {.profile = profile,
                                  .scratch = scratch,
                                  .name_count = name_count,
                                  .group_limit = group_limit};
    digest_random(&collector.seed, sizeof(collector.seed));
    find_names(&collector, names);
    enum err_code code = collect(&collector, has_snapshots, &result, err);
    map_bytes_fini(&collector.groups);
    mem_free(collector.group_values);
    mem_free(collector.lists);
    mem_free(collector.slots);
    if (code)
        return code;
    *ret_result = result;
    return ERR_NONE;
}
