/*
 * stack_walk: walks a copy of a program's stack by tables here, as the kernel program walks the
 * stack itself: for users who may load none. Threads: one.
 */
#ifndef AGENT_STACK_WALK_H
#define AGENT_STACK_WALK_H

#include "bpf/unwind_format.h"
#include "lib/base/buf.h"

#include <stdbool.h>

enum { STACK_REGISTERS_MAX = 40 };

/* Borrowed from the ring that it came in. */
struct stack_copy {
    uint64_t registers[STACK_REGISTERS_MAX]; /* by DWARF number */
    uint64_t pc;
    struct span bytes; /* from the stack pointer on */
};

struct sample_event;
struct stack_walk;
struct unwind_memory;

struct stack_walk *stack_walk_create(void);
void stack_walk_destroy(struct stack_walk *walk); /* NULL is a no-op */
/* Where tables and runs go, for unwinding_create. */
void stack_walk_memory(struct stack_walk *walk, struct unwind_memory *ret_memory);

/* Puts the program's frames in place of those that the event has, where they come to the root of
 * the stack or are more. */
void stack_walk_event(struct stack_walk *walk, const struct unwind_run *run,
                      const struct stack_copy *copy, struct sample_event *event);

#endif
