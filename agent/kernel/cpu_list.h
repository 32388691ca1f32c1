/*
 * cpu_list: the CPUs that are online, in the kernel's list format "0-3,6", and comparisons of such
 * lists. Threads: any.
 */
#ifndef AGENT_KERNEL_CPU_LIST_H
#define AGENT_KERNEL_CPU_LIST_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdint.h>

struct arena;

/* The numbers, in arena, ascending. Errors: ERR_IO, ERR_INVALID (not in that format). */
enum err_code cpu_list_online(struct arena *arena, uint32_t **ret_cpus, uint32_t *ret_count,
                              struct err *err) MUST_USE;
/* Parses a list. Errors: ERR_INVALID. */
enum err_code cpu_list_parse(struct span text, struct arena *arena, uint32_t **ret_cpus,
                             uint32_t *ret_count, struct err *err) MUST_USE;

/* Ascending numbers; borrowed. */
struct cpu_list {
    const uint32_t *cpus;
    uint32_t count;
};

/* The CPUs that are in both lists, and those that are only in the first; in arena. */
struct cpu_list cpu_list_common(struct cpu_list one, struct cpu_list other, struct arena *arena);
struct cpu_list cpu_list_difference(struct cpu_list from, struct cpu_list without,
                                    struct arena *arena);

#endif
