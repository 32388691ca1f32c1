/*
 * stack_walk: walks a copy of a program's stack by tables here, as the kernel program walks the
 * stack itself: for users who may load none, and for samples of programs whose mappings were not
 * known yet when they were taken. Threads: one.
 */
#ifndef AGENT_UNWIND_USER_UNWINDER_H
#define AGENT_UNWIND_USER_UNWINDER_H

#include "bpf/unwind_format.h"
#include "lib/base/buf.h"

#include <stdbool.h>

enum {
    STACK_REGISTERS_MAX = 40,
#ifdef __aarch64__
    STACK_REGISTER_SP = 31, /* DWARF number */
#else
    STACK_REGISTER_SP = 7,
#endif
};

/* Borrowed from the ring that it came in. */
struct stack_copy {
    uint64_t registers[STACK_REGISTERS_MAX]; /* by DWARF number */
    uint64_t pc;
    uint64_t start; /* of bytes: the stack pointer, or above */
    struct span bytes;
};

struct sample_event;
struct user_unwinder;
struct unwind_memory;

/* Tables that are kept elsewhere and outlive the walk. */
struct user_unwinder_tables {
    const struct unwind_rule *rules;
    const struct unwind_chunk *chunks;
    const uint8_t *(*shard)(void *context, uint32_t index); /* NULL: there is none */
    void *context;
};

/* tables NULL: they will be in its own memory. */
struct user_unwinder *user_unwinder_create(const struct user_unwinder_tables *tables);
void user_unwinder_destroy(struct user_unwinder *walk); /* NULL is a no-op */
/* Its own: where tables and runs go, for unwind_publisher_create. */
void user_unwinder_memory(struct user_unwinder *walk, struct unwind_memory *ret_memory);

/* Puts the program's frames in place of those that the event has, where they come to the root of
 * the stack or are more. */
void user_unwinder_event(struct user_unwinder *walk, const struct unwind_run *run,
                         const struct stack_copy *copy, struct sample_event *event);

#endif
