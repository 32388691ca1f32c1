/*
 * window_resources: the OTLP resources of a window: one for each different label set of its
 * processes.
 *
 * A resource is found by the key of its labels. Labels are copied and counted against the quota of
 * the builder's owner; processes whose labels exceed it share one resource, whose service.name is
 * WINDOW_NAME_LEFT_OUT. Threads: one.
 */
#ifndef AGENT_PROFILE_WINDOW_RESOURCES_H
#define AGENT_PROFILE_WINDOW_RESOURCES_H

#include "lib/base/map.h"
#include "lib/profile/otlp/otlp_encode.h"

#include <stdint.h>

struct arena;
struct idle_time;
struct process_labels;
struct window_builder;

/* The members are for reading. */
struct window_resources {
    struct window_builder *builder;
    struct arena *arena; /* holds the list, keys and labels */
    struct otlp_resource *list;
    uint32_t count;
    uint32_t capacity;
    uint32_t idle_types;      /* initial otlp_resource.idle_types of a new resource */
    uint32_t left_out;        /* the resource of processes without space; PROFILE_NONE: none yet */
    struct map_bytes numbers; /* from the key of labels to the index in list */
};

/* Begins a window, whose resources live in arena. */
void window_resources_begin(struct window_resources *resources, struct window_builder *builder,
                            struct arena *arena, uint32_t idle_types);
void window_resources_end(struct window_resources *resources);

/* The index of the resource with these labels, which is added if it is new. */
uint32_t window_resources_add(struct window_resources *resources,
                              const struct process_labels *labels);
/* Notes that a sample of the resource has these values, one per value type. The resource was not
 * idle for the types of values other than 0: it gets no idle profile of them. */
void window_resources_note_busy(struct window_resources *resources, uint32_t number,
                                const int64_t *values, uint32_t value_count);
/* Sets the time for which the resource of time->key was idle. The resource is added if it is new
 * and its owner's quota allows it. */
void window_resources_set_idle(struct window_resources *resources, const struct idle_time *time);

#endif
