/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * kernel_types: the few members of kernel structures that our programs read. Their offsets are
 * taken from the BTF of the running kernel when a program is loaded (CO-RE), so one object fits
 * every kernel; only names and types have to match.
 */
#ifndef BPF_KERNEL_TYPES_BPF_H
#define BPF_KERNEL_TYPES_BPF_H

#include <linux/types.h>

/* Declared before the CO-RE attribute below: only the size of these registers is relocated. Their
 * offsets are part of the kernel's API (asm/ptrace.h). */
#ifdef __TARGET_ARCH_arm64
struct pt_regs {
    __u64 sp;
};
#else
struct pt_regs;
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
    unsigned int inum;
};

struct pid_namespace {
    struct ns_common ns;
};

struct upid {
    int nr;
    struct pid_namespace *ns;
};

struct pid {
    unsigned int level;
    struct upid numbers[1];
};

struct mm_struct {
    unsigned long start_code; /* 0: execve has not loaded the program yet */
};

typedef struct {
    int counter;
} atomic_t;

struct signal_struct {
    atomic_t live; /* number of threads */
};

/* The thread pointer, as user code has set it. */
struct thread_struct {
#if defined(__TARGET_ARCH_arm64)
    struct {
        unsigned long tp_value;
    } uw;
#else
    unsigned long fsbase;
#endif
};

struct sched_entity {
    __u64 sum_exec_runtime;
};

struct task_struct {
    unsigned int flags;
    struct sched_entity se;
    int pid;
    int tgid;
    struct task_struct *group_leader;
    struct pid *thread_pid;
    struct mm_struct *mm;
    struct signal_struct *signal;
    void *stack;
    unsigned long nvcsw, nivcsw; /* voluntary and involuntary switches */
    __u64 start_boottime;
    __u64 self_exec_id; /* incremented by each exec */
    char comm[16];
    struct thread_struct thread;
};

#pragma clang attribute pop

#endif
