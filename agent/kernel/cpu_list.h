/*
 * cpu_list: the CPUs that are online, in the kernel's list format "0-3,6". Threads: any.
 */
#ifndef AGENT_KERNEL_CPU_LIST_H
#define AGENT_KERNEL_CPU_LIST_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdint.h>

struct arena;

/* The numbers, in arena, ascending. Handles: ERR_IO, ERR_INVALID (not in that format). */
enum err_code cpu_list_online(struct arena *arena, uint32_t **ret_cpus, uint32_t *ret_count,
                              struct err *err) MUST_USE;
/* Parses a list. Handles: ERR_INVALID. */
enum err_code cpu_list_parse(struct span text, struct arena *arena, uint32_t **ret_cpus,
                             uint32_t *ret_count, struct err *err) MUST_USE;

#endif
