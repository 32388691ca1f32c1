/*
 * label_set: labels of one process while they are being found and relabelled: names are
 * Prometheus', each is there once, none is empty. Those that begin with "__" are for rules alone.
 *
 * Texts live in the arena that the set was given. Bounded: what does not fit is left out and
 * counted. Threads: one.
 */
#ifndef AGENT_LABELS_LABEL_SET_H
#define AGENT_LABELS_LABEL_SET_H

#include "lib/profile/batch/batch_labels.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;

enum { LABEL_SET_MAX = 512, LABEL_SET_VALUE_BYTES = 2048, LABEL_SET_NAME_BYTES = 256 };

struct label_set {
    struct arena *arena;
    struct batch_text_label *labels;
    uint32_t count;
    uint32_t capacity;
    uint32_t left_out;
};

/* [a-zA-Z_][a-zA-Z0-9_]*, also with "__" in front. */
bool label_set_is_name(struct span name);

void label_set_init(struct label_set *set, struct arena *arena);

/* Empty where there is none. */
struct span label_set_get(const struct label_set *set, struct span name);
/* In place of what it was; an empty value removes it. Both are copied; a value is made valid UTF-8
 * and cut where it is too long. A name that is none of Prometheus' is made one. */
void label_set_put(struct label_set *set, struct span name, struct span value);
void label_set_remove(struct label_set *set, struct span name);

#endif
