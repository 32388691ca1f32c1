/*
 * containers: what the runtimes' own state files say of a container: its name, its image and the
 * pod it belongs to. No socket of a runtime is asked: whoever may ask one may do anything.
 *
 *   containerd      …/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json (below /run, k3s', …)
 *   CRI-O, Podman   …/overlay-containers/ID/userdata/config.json,
 * …/overlay-containers/containers.json Docker          /var/lib/docker/containers/ID/config.v2.json
 * The first two are of the OCI runtime specification, whose annotations name the pod.
 *
 * Files are looked for below the root folder of process 1, which is the host's where the agent sees
 * it, or below a folder that is given. Threads: any.
 */
#ifndef AGENT_LABELS_CONTAINERS_H
#define AGENT_LABELS_CONTAINERS_H

#include "lib/base/buf.h"

#include <stdbool.h>

struct label_set;

/* "docker", "containerd", "cri-o", "podman", as the cgroup's path says; empty where it does not. */
struct span containers_runtime(struct span cgroup);

/*
 * Puts what is known of the container into labels, by names as in agent/labels/pods.h, and
 * container_name,
 * __meta_docker_* and __meta_containerd_*. root: a folder in place of process 1's root; NULL.
 * False: no file tells of it.
 */
bool containers_find(const char *root, struct span id, struct label_set *labels);

#endif
