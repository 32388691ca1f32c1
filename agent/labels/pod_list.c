/* Converts a PodList of the Kubernetes API to labels of its containers. */
#include "agent/labels/label_set.h"
#include "agent/labels/pods.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/formats/json_tree.h"

#include <stdio.h>

enum { CONTAINERS_MAX = 8192, NAME_BYTES = 512 };

/* A container with all its labels. */
struct container {
    struct span id;
    struct label_set labels;
    struct container *next;
};

struct pod_list {
    struct container *first;
    uint32_t count;
};

static void put_label(struct label_set *labels, const char *name, struct span value)
{
    if (value.size)
        label_set_put(labels, span_text(name), value);
}

/* Adds a label that is sent, and one for rules. */
static void put_both(struct label_set *labels, const char *name, const char *meta,
                     struct span value)
{
    put_label(labels, name, value);
    put_label(labels, meta, value);
}

static void put_map(struct label_set *labels, const json_t *map, const char *prefix,
                    const char *presence_prefix)
{
    char name[NAME_BYTES];
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)map, key, value)
    {
        snprintf(name, sizeof(name), "%s%s", prefix, key);
        put_label(labels, name, span_of(json_string_value(value), json_string_length(value)));
        if (!presence_prefix)
            continue;
        snprintf(name, sizeof(name), "%s%s", presence_prefix, key);
        put_label(labels, name, SPAN_LITERAL("true"));
    }
}

/* Whether the label changes with each roll-out: it would split a service into new series. */
static bool is_of_a_rollout(const char *key)
{
    return strcmp(key, "pod-template-hash") == 0 || strcmp(key, "controller-revision-hash") == 0 ||
           strcmp(key, "pod-template-generation") == 0;
}

static void put_pod_labels(struct label_set *labels, const json_t *map)
{
    char name[NAME_BYTES];
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)map, key, value)
    {
        if (is_of_a_rollout(key))
            continue;
        snprintf(name, sizeof(name), "k8s_pod_label_%s", key);
        put_label(labels, name, span_of(json_string_value(value), json_string_length(value)));
    }
}

static void put_controller(struct label_set *labels, const json_t *owners)
{
    const json_t *owner;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)owners, i, owner)
    {
        if (!json_is_true(json_object_get(owner, "controller")))
            continue;
        put_label(labels, "__meta_kubernetes_pod_controller_kind", json_tree_text(owner, "kind"));
        put_label(labels, "__meta_kubernetes_pod_controller_name", json_tree_text(owner, "name"));
    }
}

static void put_status(struct label_set *labels, const json_t *status)
{
    const json_t *condition;
    size_t i;
    put_label(labels, "__meta_kubernetes_pod_phase", json_tree_text(status, "phase"));
    put_label(labels, "__meta_kubernetes_pod_ip", json_tree_text(status, "podIP"));
    put_label(labels, "__meta_kubernetes_pod_host_ip", json_tree_text(status, "hostIP"));
    json_array_foreach(json_object_get(status, "conditions"), i, condition)
    {
        if (span_equal_text(json_tree_text(condition, "type"), "Ready"))
            put_label(labels, "__meta_kubernetes_pod_ready",
                      span_equal_text(json_tree_text(condition, "status"), "True")
                          ? SPAN_LITERAL("true")
                          : SPAN_LITERAL("false"));
    }
}

static void put_pod(struct label_set *labels, const json_t *pod)
{
    const json_t *metadata = json_object_get(pod, "metadata");
    const json_t *own = json_object_get(metadata, "labels");
    const struct span node = json_tree_text(json_object_get(pod, "spec"), "nodeName");
    put_both(labels, "k8s_pod_name", "__meta_kubernetes_pod_name",
             json_tree_text(metadata, "name"));
    put_both(labels, "k8s_namespace_name", "__meta_kubernetes_namespace",
             json_tree_text(metadata, "namespace"));
    put_both(labels, "k8s_pod_uid", "__meta_kubernetes_pod_uid", json_tree_text(metadata, "uid"));
    put_both(labels, "k8s_node_name", "__meta_kubernetes_node_name", node);
    put_label(labels, "__meta_kubernetes_pod_node_name", node);
    put_pod_labels(labels, own);
    put_map(labels, own, "__meta_kubernetes_pod_label_", "__meta_kubernetes_pod_labelpresent_");
    put_map(labels, json_object_get(metadata, "annotations"), "__meta_kubernetes_pod_annotation_",
            "__meta_kubernetes_pod_annotationpresent_");
    put_controller(labels, json_object_get(metadata, "ownerReferences"));
    put_status(labels, json_object_get(pod, "status"));
}

/* The id in "containerd://ID". */
static struct span id_of(const json_t *status)
{
    struct span id = json_tree_text(status, "containerID");
    const uint8_t *slashes = memmem(id.data ? id.data : (const void *)"", id.size, "://", 3);
    return slashes ? span_of(slashes + 3, id.size - (size_t)(slashes + 3 - id.data)) : id;
}

static void add_container(struct pod_list *list, const json_t *pod, const json_t *status,
                          bool is_init, struct arena *arena)
{
    const struct span id = id_of(status);
    if (id.size == 0 || list->count == CONTAINERS_MAX)
        return;
    struct container *container = arena_new(arena, struct container, 1);
    container->id = span_of(arena_strndup(arena, id.data, id.size), id.size);
    struct label_set *labels = &container->labels;
    label_set_init(labels, arena);
    put_pod(labels, pod);
    put_both(labels, "k8s_container_name", "__meta_kubernetes_pod_container_name",
             json_tree_text(status, "name"));
    put_both(labels, "container_image_name", "__meta_kubernetes_pod_container_image",
             json_tree_text(status, "image"));
    put_label(labels, "__meta_kubernetes_pod_container_id", json_tree_text(status, "containerID"));
    put_label(labels, "__meta_kubernetes_pod_container_init",
              is_init ? SPAN_LITERAL("true") : SPAN_LITERAL("false"));
    container->next = list->first;
    list->first = container;
    list->count++;
}

static void add_pod(struct pod_list *list, const json_t *pod, struct arena *arena)
{
    static const char *const kinds[] = {"containerStatuses", "initContainerStatuses",
                                        "ephemeralContainerStatuses"};
    const json_t *status = json_object_get(pod, "status"), *container;
    size_t i;
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++) {
        json_array_foreach(json_object_get(status, kinds[kind]), i, container)
            add_container(list, pod, container, kind == 1, arena);
    }
}

enum err_code pod_list_read(struct span json, struct arena *arena, struct pod_list **ret_list,
                            struct err *err)
{
    json_t *root;
    size_t i;
    const json_t *pod;
    enum err_code code = json_tree_load(json, NULL, "a list of pods", &root, err);
    if (code)
        return code;
    const json_t *items = json_object_get(root, "items");
    const bool has_items = json_is_array(items) || json_is_null(items);
    struct pod_list *list = arena_new(arena, struct pod_list, 1);
    json_array_foreach((json_t *)(uintptr_t)items, i, pod) add_pod(list, pod, arena);
    json_tree_free(root, json);
    if (!has_items)
        return err_set(err, ERR_INVALID, "this is no list of pods: it has no items");
    *ret_list = list;
    return ERR_NONE;
}

bool pod_list_find(const struct pod_list *list, struct span container_id, struct label_set *labels)
{
    const struct container *found = list ? list->first : NULL;
    while (found && !span_equal(found->id, container_id))
        found = found->next;
    for (uint32_t i = 0; found && i < found->labels.count; i++)
        label_set_put(labels, found->labels.labels[i].name, found->labels.labels[i].value);
    return found;
}
