/*
 * pods: the containers of this node's Kubernetes pods, by container id: names, labels, annotations.
 *
 * A thread requests a PodList from the kubelet (https://NODE:10250/pods) or the API server
 * (…/api/v1/pods?fieldSelector=spec.nodeName=NODE) every half minute, and soon after pods_find met
 * an unknown container.
 *
 * Label names are Prometheus': k8s_pod_name and the like for labels that are sent,
 * __meta_kubernetes_* for rules. Format:
 * https://kubernetes.io/docs/reference/kubernetes-api/. Threads: pods_find and pods_generation,
 * any.
 */
#ifndef AGENT_LABELS_PODS_H
#define AGENT_LABELS_PODS_H

#include "agent/upload/server_config.h"
#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct label_set;
struct pod_list;
struct pods;

/* access->server is the complete address; http:// only to this machine. The texts of access are
 * borrowed until pods_stop. Errors: ERR_INVALID (the address), ERR_NOT_FOUND, ERR_IO (ca_file). */
enum err_code pods_start(const struct server_config *access, struct pods **ret_pods,
                         struct err *err) MUST_USE;
void pods_stop(struct pods *pods); /* NULL is a no-op */

/* Adds the labels of a container; false: it is not known, and the pods are requested soon. */
bool pods_find(struct pods *pods, struct span container_id, struct label_set *labels);
/* Increases whenever a response differs from the previous one. */
uint64_t pods_generation(struct pods *pods);

/* Parses a response; the list lives in arena. Public for tests. Errors: ERR_INVALID (no PodList).
 */
enum err_code pod_list_read(struct span json, struct arena *arena, struct pod_list **ret_list,
                            struct err *err) MUST_USE;
/* Adds the labels of a container; false: it is not in the list, or list is NULL. */
bool pod_list_find(const struct pod_list *list, struct span container_id, struct label_set *labels);

#endif
