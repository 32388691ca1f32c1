/*
 * The strings of the batch. Those of the dictionary are spans of one copy of their bytes, or of the
 * request if it is kept (is_raw_kept). Strings that are made during decoding, names and values of
 * labels, follow them. A hash table of all strings gives equal strings one index.
 */
#include "lib/base/arena.h"
#include "lib/profile/long_string.h"
#include "lib/profile/otlp/otlp_decoder.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { STRINGS_MADE = 256 }; /* initial capacity for added strings */

/* Allocates empty slots for string_capacity strings. */
static void size_slots(struct otlp_decoder *decoder)
{
    uint32_t capacity = 16;
    while (capacity < (uint64_t)decoder->string_capacity * 2 && capacity < UINT32_C(1) << 31)
        capacity *= 2;
    decoder->string_slots = arena_new_raw(decoder->scratch, uint32_t, capacity);
    memset(decoder->string_slots, 0xff, capacity * sizeof(*decoder->string_slots));
    decoder->slot_mask = capacity - 1;
}

static void grow_string_slots(struct otlp_decoder *decoder)
{
    const uint32_t count = decoder->string_count;
    struct span *strings = arena_new_raw(decoder->scratch, struct span, (size_t)count * 2);
    uint32_t *hashes = arena_new_raw(decoder->scratch, uint32_t, (size_t)count * 2);
    memcpy(strings, decoder->strings, count * sizeof(*strings));
    memcpy(hashes, decoder->string_hashes, count * sizeof(*hashes));
    decoder->strings = strings;
    decoder->string_hashes = hashes;
    decoder->string_capacity = count * 2;
    size_slots(decoder);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = hashes[i] & decoder->slot_mask;
        while (decoder->string_slots[at] != PROFILE_NONE)
            at = (at + 1) & decoder->slot_mask;
        decoder->string_slots[at] = i;
    }
}

/* The slot of text, or the free slot where it belongs. */
static uint32_t *find_string_slot(const struct otlp_decoder *decoder, struct span text,
                                  uint32_t hash)
{
    uint32_t at = hash & decoder->slot_mask;
    for (; decoder->string_slots[at] != PROFILE_NONE; at = (at + 1) & decoder->slot_mask) {
        const uint32_t string = decoder->string_slots[at];
        if (decoder->string_hashes[string] == hash && span_equal(decoder->strings[string], text))
            break;
    }
    return &decoder->string_slots[at];
}

static uint32_t hash_text(const struct otlp_decoder *decoder, struct span text)
{
    return (uint32_t)XXH3_64bits_withSeed(text.size ? text.data : (const uint8_t *)"", text.size,
                                          decoder->seed);
}

static uint32_t add_string(struct otlp_decoder *decoder, uint32_t *slot, struct span text,
                           uint32_t hash)
{
    decoder->strings[decoder->string_count] = text;
    decoder->string_hashes[decoder->string_count] = hash;
    *slot = decoder->string_count;
    return decoder->string_count++;
}

static struct span cut(struct otlp_decoder *decoder, struct span text)
{
    return long_string_cut(decoder->arena, text, decoder->limits.string_bytes,
                           &decoder->tables->cut_string_count);
}

/* Added strings count towards the memory limit here, because otlp_count has counted only the
 * strings of the request's table. The results of otlp_charge are ignored: if one is false, so are
 * all later ones, and the callers' loops check otlp_charge(decoder, 0). */
uint32_t otlp_intern(struct otlp_decoder *decoder, struct span text)
{
    /* The entry in three arrays, whose old copies stay when they grow. */
    enum { ENTRY_BYTES = 2 * (sizeof(struct span) + 3 * sizeof(uint32_t)) };
    const struct span whole = text;
    text = cut(decoder, text);
    if (text.data != whole.data)
        (void)!otlp_charge(decoder, text.size);
    const uint32_t hash = hash_text(decoder, text);
    uint32_t *slot = find_string_slot(decoder, text, hash);
    if (*slot != PROFILE_NONE)
        return *slot;
    if (decoder->string_count == decoder->string_capacity) {
        grow_string_slots(decoder);
        slot = find_string_slot(decoder, text, hash);
    }
    (void)!otlp_charge(decoder, text.size + ENTRY_BYTES);
    const char *copy = arena_strndup(decoder->arena, text.data, text.size);
    return add_string(decoder, slot, span_of(copy, text.size), hash);
}

static struct otlp_range copy_range(struct arena *arena, struct otlp_range range)
{
    const size_t size = (size_t)(range.end - range.start);
    uint8_t *copy = arena_alloc_raw(arena, size, 1);
    if (size)
        memcpy(copy, range.start, size);
    return (struct otlp_range){.start = copy, .end = copy + size};
}

/* Lists the strings of the table as spans of memory that lives as long as the batch. */
static struct span *list_strings(struct otlp_decoder *decoder)
{
    struct otlp_range range = decoder->ranges[TABLE_STRING];
    if (!decoder->options->is_raw_kept)
        range = copy_range(decoder->arena, range);
    struct span *texts = arena_new_raw(decoder->scratch, struct span, decoder->table_string_count);
    for (uint32_t i = 0; i < decoder->table_string_count; i++) {
        (void)otlp_next_entry(&range, TABLE_STRING, &texts[i]);
        texts[i] = cut(decoder, texts[i]);
    }
    return texts;
}

void otlp_fill_strings(struct otlp_decoder *decoder)
{
    const uint32_t count = (uint32_t)decoder->counts.tables[TABLE_STRING];
    decoder->table_string_count = count;
    decoder->string_capacity = count + STRINGS_MADE;
    decoder->strings = arena_new_raw(decoder->scratch, struct span, decoder->string_capacity);
    decoder->string_hashes = arena_new_raw(decoder->scratch, uint32_t, decoder->string_capacity);
    size_slots(decoder);
    const struct span *texts = list_strings(decoder);
    const struct span none = {0};
    const uint32_t none_hash = hash_text(decoder, none);
    (void)add_string(decoder, find_string_slot(decoder, none, none_hash), none, none_hash);
    uint32_t *canonical = arena_new_raw(decoder->scratch, uint32_t, count);
    bool is_in_order = true;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t hash = hash_text(decoder, texts[i]);
        uint32_t *slot = find_string_slot(decoder, texts[i], hash);
        canonical[i] = *slot != PROFILE_NONE ? *slot : add_string(decoder, slot, texts[i], hash);
        is_in_order &= canonical[i] == i;
    }
    decoder->canonical = is_in_order ? NULL : canonical;
}

void otlp_finish_strings(struct otlp_decoder *decoder)
{
    struct span *strings = arena_new_raw(decoder->arena, struct span, decoder->string_count);
    memcpy(strings, decoder->strings, decoder->string_count * sizeof(*strings));
    decoder->tables->strings = strings;
    decoder->tables->string_count = decoder->string_count;
}
