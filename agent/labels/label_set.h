/*
 * label_set: the labels of one process while they are collected and relabelled. Names have the form
 * of Prometheus and occur once; values are not empty. Labels whose names begin with "__" are for
 * rules only and are not sent.
 *
 * Texts live in the arena of the set. The number of labels is bounded: further ones are left out
 * and counted. Threads: one.
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

/* Whether name has the form [a-zA-Z_][a-zA-Z0-9_]*. */
bool label_set_is_name(struct span name);

void label_set_init(struct label_set *set, struct arena *arena);

/* The value of a label; empty: there is none. */
struct span label_set_get(const struct label_set *set, struct span name);
/* Sets a label; an empty value removes it. Both texts are copied and cut at their limits. A value
 * is made valid UTF-8; invalid bytes of a name become '_'. A new label that does not fit the set is
 * counted in left_out. */
void label_set_put(struct label_set *set, struct span name, struct span value);
void label_set_remove(struct label_set *set, struct span name);

#endif
