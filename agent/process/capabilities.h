/*
 * capabilities: reads and drops Linux capabilities (capabilities(7)).
 *
 * Capabilities belong to a thread; each function acts on the calling thread. Threads: any.
 */
#ifndef AGENT_PROCESS_CAPABILITIES_H
#define AGENT_PROCESS_CAPABILITIES_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers of linux/capability.h; installed headers may lack the newer ones. */
enum capability {
    CAPABILITY_DAC_READ_SEARCH = 2,
    CAPABILITY_SYS_PTRACE = 19,
    CAPABILITY_SYS_ADMIN = 21,
    CAPABILITY_SYSLOG = 34,
    CAPABILITY_PERFMON = 38,
    CAPABILITY_BPF = 39,
    CAPABILITY_CHECKPOINT_RESTORE = 40,
};

#define CAPABILITY_BIT(number) (UINT64_C(1) << (number))

/* Needed while sampling: BPF maps are created and filled (BPF), mappings and files of new processes
 * are read (SYS_PTRACE, DAC_READ_SEARCH, CHECKPOINT_RESTORE), and kernel symbols (SYSLOG). */
#define CAPABILITIES_FOR_SAMPLING                                                                  \
    (CAPABILITY_BIT(CAPABILITY_BPF) | CAPABILITY_BIT(CAPABILITY_SYS_PTRACE) |                      \
     CAPABILITY_BIT(CAPABILITY_DAC_READ_SEARCH) | CAPABILITY_BIT(CAPABILITY_SYSLOG) |              \
     CAPABILITY_BIT(CAPABILITY_CHECKPOINT_RESTORE))

/* The effective capabilities of the calling thread. */
uint64_t capabilities_effective(void);

/*
 * Drops all capabilities of the calling thread that are not in kept, also for programs that it
 * executes, and sets no_new_privs, so that these cannot gain any. Adds none. False: the kernel
 * refused; the thread has its capabilities still, but no_new_privs may be set and the bounding set
 * reduced.
 */
bool capabilities_keep(uint64_t kept);

#endif
