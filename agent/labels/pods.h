/*
 * pods: the containers of this node's Kubernetes pods, by their ids: names, labels, annotations.
 *
 * Asked of anything that answers with a PodList: the kubelet (https://NODE:10250/pods) or the API
 * server (…/api/v1/pods?fieldSelector=spec.nodeName=NODE), by a thread of its own, every half
 * minute, and soon when somebody asks for a container that is not known yet.
 *
 * Names of labels are Prometheus', k8s_pod_name and the like for what is sent and
 * __meta_kubernetes_* for rules: https://kubernetes.io/docs/reference/kubernetes-api/ is the
 * format. Threads: pods_find and pods_generation, any.
 */
#ifndef AGENT_LABELS_PODS_H
#define AGENT_LABELS_PODS_H

#include "agent/upload/server_config.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct label_set;
struct pod_list;
struct pods;

/* server is the whole address; http:// only to this machine. Borrowed as long as it runs. Handles:
 * ERR_INVALID (the address), ERR_NOT_FOUND, ERR_IO (ca_file). */
enum err_code pods_start(const struct server_config *access, struct pods **ret_pods,
                         struct err *err) MUST_USE;
void pods_stop(struct pods *pods); /* NULL is a no-op */

/* Puts what is known of a container into labels; false: nothing is, and it will be asked for. */
bool pods_find(struct pods *pods, struct span container_id, struct label_set *labels);
/* Goes up whenever an answer differs from the one before. */
uint64_t pods_generation(struct pods *pods);

/* An answer, for tests: the list lives in arena. Handles: ERR_INVALID (no PodList). */
enum err_code pod_list_read(struct span json, struct arena *arena, struct pod_list **ret_list,
                            struct err *err) MUST_USE;
bool pod_list_find(const struct pod_list *list, struct span container_id, struct label_set *labels);

#endif
