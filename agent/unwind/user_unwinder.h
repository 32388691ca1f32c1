/*
 * user_unwinder: unwinds a copied stack in this process, with the tables and the code
 * (bpf/unwind_core.h) of the kernel program.
 *
 * Used for users who may not load BPF programs, and for samples of programs whose mappings were not
 * published yet when the sample was taken. Threads: one.
 */
#ifndef AGENT_UNWIND_USER_UNWINDER_H
#define AGENT_UNWIND_USER_UNWINDER_H

#include "agent/kernel/stack_copy.h"
#include "agent/kernel/unwind_memory.h"
#include "bpf/unwind_format.h"

struct sample_event;
struct user_unwinder;

/* tables: memory that another module owns and that outlives the unwinder; NULL: the unwinder has
 * its own, see user_unwinder_memory. */
struct user_unwinder *user_unwinder_create(const struct unwind_memory_reader *tables);
void user_unwinder_destroy(struct user_unwinder *unwinder); /* NULL is a no-op */
/* The unwinder's own memory, for unwind_publisher_create. */
void user_unwinder_memory(struct user_unwinder *unwinder, struct unwind_memory *ret_memory);

/* Unwinds copy and replaces the user frames of the event if the result is complete or longer. */
void user_unwinder_event(struct user_unwinder *unwinder, const struct unwind_mapping_list *list,
                         const struct stack_copy *copy, struct sample_event *event);

#endif
