/*
 * container_metadata: name, image and pod of a container, from the state files of its runtime. No
 * socket of a runtime is used, because access to that socket allows control of the host.
 *
 *   containerd      …/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json (below /run, k3s', …)
 *   CRI-O, Podman   …/overlay-containers/ID/userdata/config.json,
 *                   …/overlay-containers/containers.json
 *   Docker          /var/lib/docker/containers/ID/config.v2.json
 *
 * Files named config.json follow the OCI runtime specification; their annotations name the pod.
 * Files are read below the root folder of process 1, which is the host's if the agent sees it, or
 * below a given folder. Threads: any.
 */
#ifndef AGENT_LABELS_CONTAINER_METADATA_H
#define AGENT_LABELS_CONTAINER_METADATA_H

#include "lib/base/buf.h"

#include <stdbool.h>

struct label_set;

/* The runtime that a cgroup path names: "docker", "containerd", "cri-o" or "podman"; empty: none.
 */
struct span container_metadata_runtime(struct span cgroup);

/*
 * Adds the labels of a container: those of agent/labels/pods.h, container_name, __meta_docker_* and
 * __meta_containerd_*. root: the folder below which state files are read; NULL: the root folder of
 * process 1. False: no state file of the container was found.
 */
bool container_metadata_find(const char *root, struct span id, struct label_set *labels);

#endif
