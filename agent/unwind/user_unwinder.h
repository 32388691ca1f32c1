/*
 * stack_walk: walks a copy of a program's stack by tables here, as the kernel program walks the
 * stack itself: for users who may load none, and for samples of programs whose mappings were not
 * known yet when they were taken. Threads: one.
 */
#ifndef AGENT_UNWIND_USER_UNWINDER_H
#define AGENT_UNWIND_USER_UNWINDER_H

#include "agent/kernel/stack_copy.h"
#include "agent/kernel/unwind_memory.h"
#include "bpf/unwind_format.h"

struct sample_event;
struct user_unwinder;

/* tables are kept elsewhere and outlive the walk; NULL: they will be in its own memory. */
struct user_unwinder *user_unwinder_create(const struct unwind_memory_reader *tables);
void user_unwinder_destroy(struct user_unwinder *walk); /* NULL is a no-op */
/* Its own: where tables and runs go, for unwind_publisher_create. */
void user_unwinder_memory(struct user_unwinder *walk, struct unwind_memory *ret_memory);

/* Puts the program's frames in place of those that the event has, where they come to the root of
 * the stack or are more. */
void user_unwinder_event(struct user_unwinder *walk, const struct unwind_run *run,
                         const struct stack_copy *copy, struct sample_event *event);

#endif
