/*
 * kernel_features: finds out which of the features that our BPF programs need the running kernel
 * has. It tries each of them, because distributions backport features to old versions and disable
 * them in new ones.
 *
 * Without the right to load programs all features seem to be missing; loading then reports the
 * missing right. Threads: any.
 */
#ifndef AGENT_KERNEL_KERNEL_FEATURES_H
#define AGENT_KERNEL_KERNEL_FEATURES_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct kernel_features {
    bool has_types;            /* BTF type information: CONFIG_DEBUG_INFO_BTF */
    bool has_ring;             /* BPF ring buffers: 5.8 */
    bool has_registers;        /* bpf_task_pt_regs: 5.15 */
    bool has_loop;             /* bpf_loop: 5.17 */
    bool has_unallocated_maps; /* non-preallocated hash maps at perf events: 6.1 */
};

void kernel_features_find(struct kernel_features *ret_features);

/* Errors: ERR_UNSUPPORTED (neither form of our program can run; the message names the missing
 * feature). */
enum err_code kernel_features_check(const struct kernel_features *features,
                                    struct err *err) MUST_USE;

/* Whether the program with bpf_loop can run; otherwise the one with bounded loops is used. */
static inline bool kernel_features_loop(const struct kernel_features *features)
{
    return features->has_loop && features->has_registers;
}

#endif
