/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * kernel_types: the few members of kernel structures that our programs read. Their offsets are
 * taken from the BTF of the running kernel when a program is loaded (CO-RE), so one object fits
 * every kernel; only names and types have to match.
 */
#ifndef BPF_KERNEL_TYPES_BPF_H
#define BPF_KERNEL_TYPES_BPF_H

#include <linux/types.h>

/* Of a program's registers only the size is asked for; their places are those that programs know
 * (asm/ptrace.h), so that it stays outside of what follows. */
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
    unsigned long start_code; /* 0: no program is loaded yet */
};

typedef struct {
    int counter;
} atomic_t;

struct signal_struct {
    atomic_t live; /* threads */
};

/* Its thread pointer, as programs set it. */
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
    unsigned long nvcsw, nivcsw; /* how often it left, by itself and not */
    __u64 start_boottime;
    __u64 self_exec_id; /* goes up with each exec */
    char comm[16];
    struct thread_struct thread;
};

#pragma clang attribute pop

#endif
