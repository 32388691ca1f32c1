/*
 * labels: what is said of a process beside its samples: attributes in the words of OpenTelemetry.
 *
 *   service.name     the pod's label app.kubernetes.io/name, else its container's name, else the
 *                    systemd unit without ".service", else the program's name
 *   process.executable.name, .path, .build_id.gnu, .compiler
 *   process.command                        how the process calls itself (comm)
 *   process.environment_variable.NAME      of names that the settings allow
 *   container.id, .name, .runtime, .image.name
 *   k8s.pod.name, k8s.pod.uid, k8s.namespace.name, k8s.container.name, k8s.node.name,
 *   k8s.pod.label.NAME
 *   systemd.unit, systemd.slice, cgroup
 *   host.name, host.cpu.model.name, os.kernel.release
 * Then what the agent's settings add to all, and then rules (agent/labels/relabel.h) change them:
 * for these, names have '_' in place of '.', and there are Parca's __meta_* labels, too;
 * perfolio-agent(8) lists them. What begins with "__" does not leave the agent.
 *
 * Asked of /proc and of state files once for each program that a process runs, and again when the
 * pods of this node change. Two processes with equal labels are one series. Threads: one.
 */
#ifndef AGENT_LABELS_PROCESS_LABELS_H
#define AGENT_LABELS_PROCESS_LABELS_H

#include "lib/profile/batch/batch_labels.h"

#include <stdbool.h>
#include <stdint.h>

struct binaries;
struct label_source;
struct pods;
struct process;
struct process_labels;
struct relabel_rules;

enum { PROCESS_LABELS_MAX = 60, PROCESS_LABEL_MAX_BYTES = 512 };

/* Of all processes of this agent; borrowed as long as the source lives. */
struct label_settings {
    const struct batch_text_label *external; /* win over what is found */
    size_t external_count;
    const struct span *environment; /* names of variables */
    size_t environment_count;
    const struct relabel_rules *rules; /* NULL: none */
    struct pods *pods;                 /* NULL: not asked */
    const char *host_root;             /* NULL: process 1's */
};

/* What is the same for all processes, and what is known of programs. settings NULL: nothing. */
struct label_source *label_source_create(const struct label_settings *settings,
                                         const struct binaries *binaries);
void label_source_destroy(struct label_source *source); /* NULL is a no-op */

/* Makes *labels where it is NULL, or where what they are made of has changed: the pods, the
 * program, or what a process has only at the end of its execve. The old ones are destroyed then. */
void process_labels_renew(struct process_labels **labels, struct label_source *source,
                          const struct process *process);
void process_labels_destroy(struct process_labels *labels); /* NULL is a no-op */

/* False: a rule says that nothing is to be sent of the process. */
bool process_labels_are_wanted(const struct process_labels *labels);

/* By name; as long as labels live. */
const struct batch_text_label *process_labels_get(const struct process_labels *labels,
                                                  size_t *ret_count);
/* Names and values with their lengths as one key: equal for equal labels. */
struct span process_labels_key(const struct process_labels *labels);

#endif
