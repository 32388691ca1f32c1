#include "agent/process/capabilities.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CAPABILITY_WORDS = _LINUX_CAPABILITY_U32S_3, CAPABILITY_COUNT = 64 };

static bool read_sets(struct __user_cap_data_struct sets[CAPABILITY_WORDS])
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capget, &header, sets) == 0;
}

uint64_t capabilities_effective(void)
{
    struct __user_cap_data_struct sets[CAPABILITY_WORDS];
    return read_sets(sets) ? sets[0].effective | (uint64_t)sets[1].effective << 32 : 0;
}

/* Dropping from the bounding set needs CAP_SETPCAP, so it comes before the other sets. Without that
 * capability, no_new_privs alone keeps executed programs from gaining capabilities. */
static void drop_bounds(uint64_t kept)
{
    for (unsigned i = 0; i < CAPABILITY_COUNT; i++) {
        if (!(kept >> i & 1) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
            (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    }
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

bool capabilities_keep(uint64_t kept)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[CAPABILITY_WORDS];
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || !read_sets(sets))
        return false;
    drop_bounds(kept);
    for (unsigned i = 0; i < CAPABILITY_WORDS; i++) {
        sets[i].permitted &= (uint32_t)(kept >> 32 * i);
        sets[i].effective = sets[i].permitted;
        sets[i].inheritable = 0;
    }
    return syscall(SYS_capset, &header, sets) == 0;
}
