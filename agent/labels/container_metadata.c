#include "agent/labels/container_metadata.h"

#include "agent/labels/label_set.h"
#include "agent/process/process_file.h"
#include "agent/process/procfs_file.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/profile/formats/json_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { STATE_MAX_BYTES = 16 << 20, HOST_PROCESS = 1 };

#define MICROK8S "/var/snap/microk8s/common/run/containerd"
static const char *const oci_paths[] = {
    "/run/containerd/io.containerd.runtime.v2.task/k8s.io/%.*s/config.json",
    "/run/containerd/io.containerd.runtime.v2.task/default/%.*s/config.json",
    "/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/%.*s/config.json",
    MICROK8S "/io.containerd.runtime.v2.task/k8s.io/%.*s/config.json",
    "/run/containers/storage/overlay-containers/%.*s/userdata/config.json",
    "/var/lib/containers/storage/overlay-containers/%.*s/userdata/config.json",
};
#define STORAGE "/var/lib/containers/storage/overlay-containers/containers.json"
#define DOCKER "/var/lib/docker/containers/%.*s/config.v2.json"

struct span container_metadata_runtime(struct span cgroup)
{
    static const struct {
        const char *mark;
        const char *runtime;
    } marks[] = {{"/docker-", "docker"},
                 {"/docker/", "docker"},
                 {"/cri-containerd-", "containerd"},
                 {":cri-containerd:", "containerd"},
                 {"/crio-", "cri-o"},
                 {"/libpod-", "podman"},
                 {"/libpod/", "podman"}};
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        if (cgroup.size && memmem(cgroup.data, cgroup.size, marks[i].mark, strlen(marks[i].mark)))
            return span_text(marks[i].runtime);
    }
    return (struct span){0};
}

/* ---- files ---- */

static int open_file(const char *root, const char *path, struct arena *arena)
{
    struct stat status;
    if (!root)
        return process_file_open(HOST_PROCESS, span_text(path), 0);
    const int fd =
        os_openat(AT_FDCWD, arena_printf(arena, "%s%s", root, path), O_RDONLY | O_NONBLOCK, 0);
    if (fd >= 0 && (fstat(fd, &status) || !S_ISREG(status.st_mode))) {
        os_close(fd);
        return -1;
    }
    return fd;
}

/* Parses a file; its text stays in *text. NULL: it cannot be read. */
static json_t *read_json(const char *root, const char *path, struct arena *arena, struct buf *text)
{
    struct err ignored;
    json_t *tree = NULL;
    fd_auto fd = open_file(root, path, arena);
    buf_clear(text);
    if (fd < 0 || procfs_file_read_fd(fd, path, text, &ignored) ||
        json_tree_load(buf_span(text), NULL, "a container's state", &tree, &ignored))
        return NULL;
    return tree;
}

/* ---- labels ---- */

static void put_both(struct label_set *labels, const char *name, const char *meta,
                     struct span value)
{
    if (value.size == 0)
        return;
    label_set_put(labels, span_text(name), value);
    if (meta)
        label_set_put(labels, span_text(meta), value);
}

/* Runtimes use different keys for the same facts. */
static void put_annotations(struct label_set *labels, const json_t *map)
{
    static const struct {
        const char *key;
        const char *name;
        const char *meta;
    } known[] = {
        {"io.kubernetes.cri.sandbox-name", "k8s_pod_name", "__meta_kubernetes_pod_name"},
        {"io.kubernetes.cri.sandbox-name", "k8s_pod_name", "__meta_containerd_pod_name"},
        {"io.kubernetes.cri.sandbox-namespace", "k8s_namespace_name",
         "__meta_kubernetes_namespace"},
        {"io.kubernetes.cri.sandbox-uid", "k8s_pod_uid", "__meta_kubernetes_pod_uid"},
        {"io.kubernetes.cri.container-name", "k8s_container_name",
         "__meta_kubernetes_pod_container_name"},
        {"io.kubernetes.cri.container-name", "container_name", "__meta_containerd_container_name"},
        {"io.kubernetes.cri.image-name", "container_image_name",
         "__meta_kubernetes_pod_container_image"},
        {"io.kubernetes.pod.name", "k8s_pod_name", "__meta_kubernetes_pod_name"},
        {"io.kubernetes.pod.namespace", "k8s_namespace_name", "__meta_kubernetes_namespace"},
        {"io.kubernetes.pod.uid", "k8s_pod_uid", "__meta_kubernetes_pod_uid"},
        {"io.kubernetes.container.name", "k8s_container_name",
         "__meta_kubernetes_pod_container_name"},
        {"io.kubernetes.container.name", "container_name", NULL},
        {"io.kubernetes.cri-o.ImageName", "container_image_name",
         "__meta_kubernetes_pod_container_image"},
        {"nerdctl/name", "container_name", "__meta_containerd_container_name"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        put_both(labels, known[i].name, known[i].meta, json_tree_text(map, known[i].key));
}

static void put_pod_labels(struct label_set *labels, const json_t *map, struct arena *arena)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)map, key, value)
    {
        const struct span text = span_of(json_string_value(value), json_string_length(value));
        put_both(labels, arena_printf(arena, "k8s_pod_label_%s", key),
                 arena_printf(arena, "__meta_kubernetes_pod_label_%s", key), text);
    }
}

/* CRI-O keeps the pod's labels as JSON in an annotation. */
static void put_crio_labels(struct label_set *labels, const json_t *annotations,
                            struct arena *arena)
{
    const struct span text = json_tree_text(annotations, "io.kubernetes.cri-o.Labels");
    struct err ignored;
    json_t *map;
    if (text.size == 0 || json_tree_load(text, NULL, "labels", &map, &ignored))
        return;
    put_pod_labels(labels, map, arena);
    json_tree_free(map, text);
}

static bool find_oci(const char *root, struct span id, struct label_set *labels,
                     struct arena *arena, struct buf *text)
{
    for (size_t i = 0; i < sizeof(oci_paths) / sizeof(*oci_paths); i++) {
        char path[256];
        /* The id replaces "%.*s" in the path. */
        const char *end = strstr(oci_paths[i], "%.*s");
        snprintf(path, sizeof(path), "%.*s%.*s%s", (int)(end - oci_paths[i]), oci_paths[i],
                 SPAN_PRINT(id), end + 4);
        json_t *tree = read_json(root, path, arena, text);
        const json_t *annotations = json_object_get(tree, "annotations");
        if (!tree)
            continue;
        put_annotations(labels, annotations);
        put_crio_labels(labels, annotations, arena);
        json_tree_free(tree, buf_span(text));
        return true;
    }
    return false;
}

/* Finds the container in the list of all containers of Podman and CRI-O. */
static bool find_storage(const char *root, struct span id, struct label_set *labels,
                         struct arena *arena, struct buf *text)
{
    json_t *tree = read_json(root, STORAGE, arena, text);
    const json_t *container;
    size_t i;
    bool is_found = false;
    json_array_foreach(tree, i, container)
    {
        const json_t *name = json_array_get(json_object_get(container, "names"), 0);
        if (!span_equal(json_tree_text(container, "id"), id))
            continue;
        put_both(labels, "container_name", NULL,
                 span_of(json_string_value(name), json_string_length(name)));
        is_found = true;
        break;
    }
    if (tree)
        json_tree_free(tree, buf_span(text));
    return is_found;
}

static bool find_docker(const char *root, struct span id, struct label_set *labels,
                        struct arena *arena, struct buf *text)
{
    json_t *tree = read_json(root, arena_printf(arena, DOCKER, SPAN_PRINT(id)), arena, text);
    if (!tree)
        return false;
    const json_t *config = json_object_get(tree, "Config");
    struct span name = json_tree_text(tree, "Name");
    if (name.size && name.data[0] == '/')
        name = span_of(name.data + 1, name.size - 1);
    put_both(labels, "container_name", "__meta_docker_container_name", name);
    put_both(labels, "container_image_name", NULL, json_tree_text(config, "Image"));
    put_both(labels, "__meta_docker_container_id", NULL, id);
    put_annotations(labels, json_object_get(config, "Labels"));
    json_tree_free(tree, buf_span(text));
    return true;
}

bool container_metadata_find(const char *root, struct span id, struct label_set *labels)
{
    arena_auto arena = arena_create();
    buf_auto text;
    buf_init(&text, STATE_MAX_BYTES);
    const bool has_name = find_storage(root, id, labels, arena, &text);
    return find_oci(root, id, labels, arena, &text) || has_name ||
           find_docker(root, id, labels, arena, &text);
}
