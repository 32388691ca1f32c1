/*
 * rights: what the agent may do: which capabilities it has, and giving up what is not needed.
 *
 * Capabilities belong to a thread: each thread keeps its own. Threads: any.
 */
#ifndef AGENT_PROCESS_CAPABILITIES_H
#define AGENT_PROCESS_CAPABILITIES_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers of linux/capability.h, some of which are newer than a header may be. */
enum right {
    RIGHT_DAC_READ_SEARCH = 2,
    RIGHT_SYS_PTRACE = 19,
    RIGHT_SYS_ADMIN = 21,
    RIGHT_SYSLOG = 34,
    RIGHT_PERFMON = 38,
    RIGHT_BPF = 39,
    RIGHT_CHECKPOINT_RESTORE = 40,
};

#define CAPABILITY_BIT(right) (UINT64_C(1) << (right))

/* What is needed once sampling runs: maps are made and filled (BPF), mappings and files of new
 * processes are read (SYS_PTRACE, DAC_READ_SEARCH, CHECKPOINT_RESTORE), modules' symbols (SYSLOG).
 */
#define CAPABILITIES_FOR_SAMPLING                                                                  \
    (CAPABILITY_BIT(RIGHT_BPF) | CAPABILITY_BIT(RIGHT_SYS_PTRACE) |                                \
     CAPABILITY_BIT(RIGHT_DAC_READ_SEARCH) | CAPABILITY_BIT(RIGHT_SYSLOG) |                        \
     CAPABILITY_BIT(RIGHT_CHECKPOINT_RESTORE))

/* The effective capabilities of the calling thread. */
uint64_t capabilities_effective(void);

/*
 * Gives up all capabilities of the calling thread but those of kept, for itself and for what it
 * executes, and takes on no_new_privs: nothing that it executes can get more. What it has not it
 * does not get. False: the kernel would not, and it has what it had.
 */
bool capabilities_keep(uint64_t kept);

#endif
