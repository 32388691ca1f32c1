#include "agent/labels/label_set.h"

#include "lib/base/arena.h"
#include "lib/base/span_utf8.h"

#include <string.h>

void label_set_init(struct label_set *set, struct arena *arena)
{
    *set = (struct label_set){.arena = arena};
}

static struct batch_text_label *find_label(const struct label_set *set, struct span name)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (span_equal(set->labels[i].name, name))
            return &set->labels[i];
    }
    return NULL;
}

struct span label_set_get(const struct label_set *set, struct span name)
{
    const struct batch_text_label *label = find_label(set, name);
    return label ? label->value : (struct span){0};
}

void label_set_remove(struct label_set *set, struct span name)
{
    struct batch_text_label *label = find_label(set, name);
    if (!label)
        return;
    const size_t at = (size_t)(label - set->labels);
    set->count--;
    memmove(label, label + 1, (set->count - at) * sizeof(*label));
}

static struct span clean_value(struct arena *arena, struct span value)
{
    const struct span clean = span_make_utf8(span_cut_utf8(value, LABEL_SET_VALUE_BYTES), arena);
    return span_of(arena_strndup(arena, clean.data, clean.size), clean.size);
}

static bool is_name_character(char c, bool is_first)
{
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    return is_letter || (c >= '0' && c <= '9' && !is_first);
}

bool label_set_is_name(struct span name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (!is_name_character((char)name.data[i], i == 0))
            return false;
    }
    return name.size > 0;
}

/* Replaces invalid bytes by '_', as Prometheus does with the names of Kubernetes labels. */
static struct span clean_name(struct arena *arena, struct span name)
{
    const size_t size = name.size < LABEL_SET_NAME_BYTES ? name.size : LABEL_SET_NAME_BYTES;
    char *copy = arena_strndup(arena, name.data, size);
    for (size_t i = 0; i < size; i++) {
        if (!is_name_character(copy[i], i == 0))
            copy[i] = '_';
    }
    return span_of(copy, size);
}

static struct batch_text_label *add_label(struct label_set *set)
{
    if (set->count == LABEL_SET_MAX) {
        set->left_out++;
        return NULL;
    }
    arena_reserve(set->arena, set->labels, set->capacity, set->count + 1);
    return &set->labels[set->count++];
}

void label_set_put(struct label_set *set, struct span name, struct span value)
{
    name = clean_name(set->arena, name);
    value = clean_value(set->arena, value);
    if (value.size == 0 || name.size == 0) {
        label_set_remove(set, name);
        return;
    }
    struct batch_text_label *label = find_label(set, name);
    if (!label)
        label = add_label(set);
    if (label)
        *label = (struct batch_text_label){.name = name, .value = value};
}
