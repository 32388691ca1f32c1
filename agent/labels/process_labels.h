/*
 * process_labels: the labels of a process, which are sent with its samples, as attributes of
 * OpenTelemetry:
 *
 *   service.name     the pod's label app.kubernetes.io/name, else k8s.container.name, else the
 *                    systemd unit without ".service", else process.executable.name
 *   process.executable.name, .path, .build_id.gnu, .compiler
 *   process.command                      the process's own name (comm)
 *   process.environment_variable.NAME    for the names in the settings
 *   container.id, .name, .runtime, .image.name
 *   k8s.pod.name, k8s.pod.uid, k8s.namespace.name, k8s.container.name, k8s.node.name,
 *   k8s.pod.label.NAME
 *   systemd.unit, systemd.slice, cgroup
 *   host.name, host.cpu.model.name, os.kernel.release
 *
 * The external labels of the settings are added, and relabelling rules (relabel.h) change the
 * result. Rules see names with '_' in place of '.', and also Parca's __meta_* labels;
 * perfolio-agent(8) lists them. Labels whose names begin with "__" do not leave the agent.
 *
 * Labels are read from /proc and from state files once for each program that a process executes,
 * and again when the pods of this node change. Two processes with equal labels are one series.
 * Threads: one.
 */
#ifndef AGENT_LABELS_PROCESS_LABELS_H
#define AGENT_LABELS_PROCESS_LABELS_H

#include "lib/profile/batch/batch_labels.h"

#include <stdbool.h>
#include <stdint.h>

struct label_source;
struct process;
struct process_labels;

enum { PROCESS_LABELS_MAX = 60, PROCESS_LABEL_MAX_BYTES = 512 };

/* Creates *labels if it is NULL. Replaces and destroys them if something that they were made from
 * has changed: the pods, the program, or files that are empty until execve has ended. */
void process_labels_renew(struct process_labels **labels, struct label_source *source,
                          const struct process *process);
void process_labels_destroy(struct process_labels *labels); /* NULL is a no-op */

/* False: a rule drops the process, so nothing of it is sent. */
bool process_labels_are_wanted(const struct process_labels *labels);

/* The labels, sorted by name; valid until labels are destroyed. */
const struct batch_text_label *process_labels_get(const struct process_labels *labels,
                                                  size_t *ret_count);
/* All names and values, with their lengths, as one key: two keys are equal only if the labels are.
 */
struct span process_labels_key(const struct process_labels *labels);

#endif
