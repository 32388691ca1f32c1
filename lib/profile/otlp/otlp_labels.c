/*
 * The attributes and the link of samples. A request has few different combinations of them, so each
 * is resolved to a label set once and then found by its bytes in a hash table.
 */
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/otlp/otlp_decoder.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SLOTS_MIN = 1 << 10 };

void *otlp_array_add(struct arena *arena, struct otlp_array *array, uint32_t count, size_t size)
{
    const uint64_t needed = (uint64_t)array->count + count;
    if (needed > array->capacity || !array->items) {
        uint64_t capacity = array->capacity ? array->capacity : 64;
        while (capacity < needed)
            capacity *= 2;
        void *items = arena_alloc_raw(arena, (size_t)capacity, size);
        if (array->count)
            memcpy(items, array->items, array->count * size);
        array->items = items;
        array->capacity = (uint32_t)(capacity > UINT32_MAX ? UINT32_MAX : capacity);
    }
    void *added = (uint8_t *)array->items + array->count * size;
    array->count += count;
    return added;
}

void *otlp_array_keep(struct arena *arena, const struct otlp_array *array, size_t size)
{
    void *kept = arena_alloc_raw(arena, array->count, size);
    if (array->count)
        memcpy(kept, array->items, array->count * size);
    return kept;
}

/* ---- hash table of combinations ---- */

static void make_slots(struct otlp_decoder *decoder, uint32_t capacity)
{
    const struct otlp_label_entry *entries = decoder->label_entries.items;
    decoder->label_slots = arena_new_raw(decoder->scratch, uint32_t, capacity);
    memset(decoder->label_slots, 0xff, capacity * sizeof(*decoder->label_slots));
    decoder->label_slot_mask = capacity - 1;
    for (uint32_t i = 0; i < decoder->label_entries.count; i++) {
        uint32_t at = (uint32_t)entries[i].hash & decoder->label_slot_mask;
        while (decoder->label_slots[at] != PROFILE_NONE)
            at = (at + 1) & decoder->label_slot_mask;
        decoder->label_slots[at] = i;
    }
}

static uint32_t *find_label_slot(const struct otlp_decoder *decoder,
                                 const struct otlp_label_entry *wanted)
{
    const struct otlp_label_entry *entries = decoder->label_entries.items;
    uint32_t at = (uint32_t)wanted->hash & decoder->label_slot_mask;
    for (; decoder->label_slots[at] != PROFILE_NONE; at = (at + 1) & decoder->label_slot_mask) {
        const struct otlp_label_entry *entry = &entries[decoder->label_slots[at]];
        if (entry->hash == wanted->hash && entry->link == wanted->link &&
            entry->owner == wanted->owner && entry->is_delta == wanted->is_delta &&
            span_equal(entry->attributes, wanted->attributes))
            break;
    }
    return &decoder->label_slots[at];
}

/* ---- a new entry ---- */

/* Attributes of one combination, distinct by key: indexes of the attribute table. */
struct collected {
    uint32_t plain[OTLP_ATTRIBUTES_MAX];
    uint32_t series[OTLP_ATTRIBUTES_MAX];
    uint32_t plain_count;
    uint32_t series_count;
};

static bool has_key(const struct otlp_decoder *decoder, const uint32_t *items, uint32_t count,
                    uint32_t key)
{
    for (uint32_t i = 0; i < count; i++)
        if (decoder->attributes[items[i]].key == key)
            return true;
    return false;
}

static bool is_empty(const struct otlp_attribute *attribute)
{
    return attribute->kind == OTLP_NOTHING || attribute->kind == OTLP_LIST ||
           attribute->text == 0 || attribute->key == 0;
}

/* Whether the attribute becomes a label of the series. */
static bool is_of_series(const struct otlp_attribute *attribute, bool is_delta)
{
    const bool is_number = attribute->kind == OTLP_NUMBER || attribute->is_double;
    return attribute->role == ROLE_SERVICE ||
           (attribute->role == ROLE_SERIES && !is_number && is_delta);
}

/* Adds an attribute to those of one combination, unless it has the key already. An attribute of
 * series must not occur twice in one list; collected->series[first ..] are those of this list. */
static enum err_code collect_one(struct otlp_decoder *decoder, uint32_t index, bool is_delta,
                                 uint32_t first, struct collected *collected)
{
    const struct otlp_attribute *attribute = &decoder->attributes[index];
    const bool is_series = is_of_series(attribute, is_delta);
    uint32_t *items = is_series ? collected->series : collected->plain;
    uint32_t *count = is_series ? &collected->series_count : &collected->plain_count;
    if (is_series && has_key(decoder, items + first, *count - first, attribute->key))
        return err_set(decoder->problem, ERR_INVALID, "attribute '%.*s' of a sample is given twice",
                       SPAN_PRINT(decoder->strings[attribute->key]));
    if (has_key(decoder, items, *count, attribute->key))
        return ERR_NONE;
    if (*count == OTLP_ATTRIBUTES_MAX)
        return err_set(decoder->problem, ERR_INVALID, "has more than %d attributes",
                       OTLP_ATTRIBUTES_MAX);
    items[(*count)++] = index;
    return ERR_NONE;
}

static enum err_code read_index(struct otlp_decoder *decoder, const uint8_t **at,
                                const uint8_t *end, uint32_t *ret_index)
{
    uint64_t index;
    *at = protobuf_read_varint(*at, end, &index);
    if (!*at || !otlp_is_right(decoder, TABLE_ATTRIBUTE, index))
        return err_set(decoder->problem, ERR_INVALID,
                       "refers to an attribute that is not there or is malformed, or whose name "
                       "is no UTF-8");
    *ret_index = (uint32_t)index;
    return ERR_NONE;
}

static enum err_code collect(struct otlp_decoder *decoder, struct span list, bool is_delta,
                             struct collected *collected)
{
    const uint8_t *at = list.data, *end = otlp_end(list);
    const uint32_t first = collected->series_count;
    enum err_code code = ERR_NONE;
    while (at < end && !code) {
        uint32_t index = 0;
        code = read_index(decoder, &at, end, &index);
        if (!code && !is_empty(&decoder->attributes[index]))
            code = collect_one(decoder, index, is_delta, first, collected);
    }
    return code;
}

/* The attributes of a profile belong to each combination of its samples. The list may have millions
 * of indexes, so its distinct attributes are kept in decoder->own. */
static const struct otlp_distinct *read_own(struct otlp_decoder *decoder, struct span list,
                                            bool is_delta)
{
    struct otlp_distinct *own = &decoder->own;
    if (own->list && own->list == list.data && own->size == list.size && own->is_delta == is_delta)
        return own;
    struct collected collected = {.plain_count = 0, .series_count = 0};
    own->list = list.data;
    own->size = list.size;
    own->is_delta = is_delta;
    own->code = collect(decoder, list, is_delta, &collected);
    own->problem = *decoder->problem;
    memcpy(own->items, collected.plain, collected.plain_count * sizeof(uint32_t));
    memcpy(own->items + collected.plain_count, collected.series,
           collected.series_count * sizeof(uint32_t));
    own->count = collected.plain_count + collected.series_count;
    return own;
}

static enum err_code collect_own(struct otlp_decoder *decoder, struct span list, bool is_delta,
                                 struct collected *collected)
{
    const uint32_t first = collected->series_count;
    if (!list.size)
        return ERR_NONE;
    const struct otlp_distinct *own = read_own(decoder, list, is_delta);
    if (own->code)
        *decoder->problem = own->problem;
    enum err_code code = own->code;
    for (uint32_t i = 0; i < own->count && !code; i++)
        code = collect_one(decoder, own->items[i], is_delta, first, collected);
    return code;
}

bool otlp_charge(struct otlp_decoder *decoder, uint64_t bytes)
{
    decoder->label_bytes += bytes;
    return decoder->label_bytes <= decoder->limits.memory_bytes;
}

static uint32_t add_label_set(struct otlp_decoder *decoder, const struct collected *collected,
                              uint64_t link)
{
    if (collected->plain_count == 0 && link == 0)
        return 0;
    const uint32_t first = decoder->labels.count;
    struct profile_label *label =
        otlp_array_add(decoder->scratch, &decoder->labels, collected->plain_count, sizeof(*label));
    for (uint32_t i = 0; i < collected->plain_count; i++) {
        const struct otlp_attribute *attribute = &decoder->attributes[collected->plain[i]];
        const bool is_numeric = attribute->kind == OTLP_NUMBER;
        label[i] = (struct profile_label){.key = attribute->key,
                                          .text = is_numeric ? 0 : attribute->text,
                                          .number = is_numeric ? attribute->number : 0,
                                          .unit = is_numeric ? attribute->unit : 0,
                                          .is_numeric = is_numeric};
    }
    struct batch_label_set *set =
        otlp_array_add(decoder->scratch, &decoder->label_sets, 1, sizeof(*set));
    *set = (struct batch_label_set){.first_label = first, .label_count = collected->plain_count};
    if (link)
        set->link = decoder->links[link];
    return decoder->label_sets.count - 1;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t add_variant(struct otlp_decoder *decoder, struct collected *collected)
{
    const uint32_t count = collected->series_count;
    if (count == 0)
        return 0;
    const size_t size = count * sizeof(collected->series[0]);
    qsort(collected->series, count, sizeof(collected->series[0]), compare_numbers);
    uint32_t found = map_bytes_find(&decoder->variant_map, span_of(collected->series, size));
    if (found != MAP_ABSENT)
        return found;
    const char *key = arena_strndup(decoder->scratch, collected->series, size);
    (void)map_bytes_add(&decoder->variant_map, span_of(key, size), decoder->variants.count);
    struct otlp_variant *variant =
        otlp_array_add(decoder->scratch, &decoder->variants, 1, sizeof(*variant));
    *variant = (struct otlp_variant){.first = decoder->variant_items.count, .count = count};
    memcpy(otlp_array_add(decoder->scratch, &decoder->variant_items, count, sizeof(uint32_t)),
           collected->series, size);
    return decoder->variants.count - 1;
}

static enum err_code add_entry(struct otlp_decoder *decoder, struct otlp_label_entry *wanted,
                               struct span profile_attributes)
{
    struct collected collected;
    collected.plain_count = collected.series_count = 0;
    if (wanted->link && !otlp_is_right(decoder, TABLE_LINK, wanted->link))
        return err_set(decoder->problem, ERR_INVALID,
                       "refers to a link that is not there or is malformed");
    enum err_code code = collect(decoder, wanted->attributes, wanted->is_delta, &collected);
    if (code)
        return code;
    code = collect_own(decoder, profile_attributes, wanted->is_delta, &collected);
    if (code)
        return code;
    /* A label takes space in decoder->labels, whose capacity doubles, and in the batch's copy. */
    if (!otlp_charge(decoder, 3 * collected.plain_count * sizeof(struct profile_label)))
        return err_set(decoder->problem, ERR_INVALID, "has too many labels of samples");
    wanted->label_set = add_label_set(decoder, &collected, wanted->link);
    wanted->variant = add_variant(decoder, &collected);
    /* The concatenated list will be overwritten by the next sample, so it is copied. */
    if (wanted->attributes.size && wanted->attributes.data == decoder->joined[0].data)
        wanted->attributes.data =
            memcpy(arena_alloc_raw(decoder->scratch, wanted->attributes.size, 1),
                   wanted->attributes.data, wanted->attributes.size);
    if ((decoder->label_entries.count + 1) * UINT64_C(2) > decoder->label_slot_mask)
        make_slots(decoder, (decoder->label_slot_mask + 1) * 2);
    *find_label_slot(decoder, wanted) = decoder->label_entries.count;
    *(struct otlp_label_entry *)otlp_array_add(decoder->scratch, &decoder->label_entries, 1,
                                               sizeof(*wanted)) = *wanted;
    return ERR_NONE;
}

enum err_code otlp_take_labels(struct otlp_decoder *decoder, struct span profile_attributes,
                               struct otlp_label_entry *entry)
{
    const struct span attributes = entry->attributes;
    entry->label_set = entry->variant = 0;
    if (attributes.size == 0 && entry->link == 0 && entry->owner == PROFILE_NONE)
        return ERR_NONE;
    entry->hash =
        XXH3_64bits_withSeed(attributes.size ? attributes.data : (const uint8_t *)"",
                             attributes.size, decoder->seed ^ (entry->link << 32 ^ entry->owner));
    const uint32_t slot = *find_label_slot(decoder, entry);
    if (slot == PROFILE_NONE)
        return add_entry(decoder, entry, profile_attributes);
    *entry = ((const struct otlp_label_entry *)decoder->label_entries.items)[slot];
    return ERR_NONE;
}

void otlp_start_labels(struct otlp_decoder *decoder)
{
    make_slots(decoder, SLOTS_MIN);
    struct batch_label_set *set =
        otlp_array_add(decoder->scratch, &decoder->label_sets, 1, sizeof(*set));
    struct otlp_variant *variant =
        otlp_array_add(decoder->scratch, &decoder->variants, 1, sizeof(*variant));
    *set = (struct batch_label_set){0};
    *variant = (struct otlp_variant){0};
}

void otlp_finish_labels(struct otlp_decoder *decoder)
{
    struct batch *batch = decoder->batch;
    batch->label_sets =
        otlp_array_keep(decoder->arena, &decoder->label_sets, sizeof(struct batch_label_set));
    batch->label_set_count = decoder->label_sets.count;
    batch->sample_labels =
        otlp_array_keep(decoder->arena, &decoder->labels, sizeof(struct profile_label));
    batch->sample_label_count = decoder->labels.count;
}
