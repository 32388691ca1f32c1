/*
 * stack_copy: the newest part of a thread's stack with its registers, copied when a sample was
 * taken, so that user space can unwind it afterwards (agent/unwind/user_unwinder.h).
 */
#ifndef AGENT_KERNEL_STACK_COPY_H
#define AGENT_KERNEL_STACK_COPY_H

#include "lib/base/buf.h"

#include <stdint.h>

enum {
    STACK_REGISTERS_MAX = 40,
#ifdef __aarch64__
    STACK_REGISTER_SP = 31, /* DWARF number */
#else
    STACK_REGISTER_SP = 7,
#endif
};

/* bytes are borrowed from the ring that the sample came in. */
struct stack_copy {
    uint64_t registers[STACK_REGISTERS_MAX]; /* by DWARF number */
    uint64_t pc;
    uint64_t start; /* address of bytes: the stack pointer, or above */
    struct span bytes;
};

#endif
