#include "agent/profile/window_resources.h"

#include "agent/labels/process_labels.h"
#include "agent/profile/idle_times.h"
#include "agent/profile/window.h"
#include "agent/profile/window_builder.h"
#include "lib/base/arena.h"
#include "lib/profile/batch/batch_labels.h"

void window_resources_begin(struct window_resources *resources, struct window_builder *builder,
                            struct arena *arena, uint32_t idle_types)
{
    *resources = (struct window_resources){
        .builder = builder, .arena = arena, .idle_types = idle_types, .left_out = PROFILE_NONE};
}

void window_resources_end(struct window_resources *resources)
{
    map_bytes_fini(&resources->numbers);
    *resources = (struct window_resources){0};
}

static uint32_t append_resource(struct window_resources *resources,
                                const struct otlp_resource *resource)
{
    arena_reserve(resources->arena, resources->list, resources->capacity, resources->count + 1);
    resources->list[resources->count] = *resource;
    return resources->count++;
}

static uint32_t left_out_resource(struct window_resources *resources)
{
    static const struct batch_text_label service = {.name = SPAN_LITERAL("service.name"),
                                                    .value = SPAN_LITERAL(WINDOW_NAME_LEFT_OUT)};
    if (resources->left_out == PROFILE_NONE)
        resources->left_out = append_resource(
            resources, &(struct otlp_resource){.attributes = &service,
                                               .attribute_count = 1,
                                               .idle_types = resources->idle_types});
    return resources->left_out;
}

static struct span copy_text(struct arena *arena, struct span text)
{
    return span_of(arena_strndup(arena, text.data, text.size), text.size);
}

/* Copies the key and the labels. */
static uint32_t append_copy(struct window_resources *resources, struct span key,
                            const struct otlp_resource *resource)
{
    struct arena *arena = resources->arena;
    const size_t count = resource->attribute_count;
    struct otlp_resource kept = *resource;
    struct batch_text_label *copy = arena_new(arena, struct batch_text_label, count);
    for (size_t i = 0; i < count; i++)
        copy[i] =
            (struct batch_text_label){.name = copy_text(arena, resource->attributes[i].name),
                                      .value = copy_text(arena, resource->attributes[i].value)};
    kept.attributes = copy;
    return map_bytes_add(&resources->numbers, copy_text(arena, key),
                         append_resource(resources, &kept));
}

uint32_t window_resources_add(struct window_resources *resources,
                              const struct process_labels *labels)
{
    const struct span key = process_labels_key(labels);
    const uint32_t known = map_bytes_find(&resources->numbers, key);
    if (known != MAP_ABSENT)
        return known;
    if (!window_builder_take(resources->builder, key.size))
        return left_out_resource(resources);
    struct otlp_resource resource = {.idle_types = resources->idle_types};
    resource.attributes = process_labels_get(labels, &resource.attribute_count);
    return append_copy(resources, key, &resource);
}

void window_resources_note_busy(struct window_resources *resources, uint32_t number,
                                const int64_t *values, uint32_t value_count)
{
    for (uint32_t i = 0; i < value_count; i++) {
        if (values[i])
            resources->list[number].idle_types &= ~(1U << i);
    }
}

void window_resources_set_idle(struct window_resources *resources, const struct idle_time *time)
{
    struct window_builder *builder = resources->builder;
    uint32_t number = map_bytes_find(&resources->numbers, time->key);
    window_builder_set_owner(builder, time->owner, time->process_id);
    if (number == MAP_ABSENT && !window_builder_take(builder, time->key.size))
        return;
    if (number == MAP_ABSENT)
        number = append_copy(resources, time->key,
                             &(struct otlp_resource){.attributes = time->labels,
                                                     .attribute_count = time->label_count});
    resources->list[number].idle_time_ns = time->begin_ns;
    resources->list[number].idle_duration_ns = time->end_ns - time->begin_ns;
}
