/*
 * kernel_features: what the running kernel can do of what our programs need, found by trying it,
 * since distributions add to old versions and take away from new ones.
 *
 * Without the right to load programs everything seems to be missing; loading then says so.
 * Threads: any.
 */
#ifndef AGENT_KERNEL_KERNEL_FEATURES_H
#define AGENT_KERNEL_KERNEL_FEATURES_H

#include "lib/base/err.h"

#include <stdbool.h>

struct kernel_features {
    bool has_types;          /* it describes its types (BTF): CONFIG_DEBUG_INFO_BTF */
    bool has_ring;           /* ring buffers of programs: 5.8 */
    bool has_registers;      /* bpf_task_pt_regs: 5.15 */
    bool has_loop;           /* bpf_loop: 5.17 */
    bool has_growing_tables; /* hash tables that grow, also at perf events: 6.1 */
};

void kernel_features_find(struct kernel_features *ret_features);

/* ERR_UNSUPPORTED, with what is missing, where no form of our programs can run. */
enum err_code kernel_features_check(const struct kernel_features *features,
                                    struct err *err) MUST_USE;

/* The program with bpf_loop can run; else that with bounded loops is taken. */
static inline bool kernel_features_loop(const struct kernel_features *features)
{
    return features->has_loop && features->has_registers;
}

#endif
