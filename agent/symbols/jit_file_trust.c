#include "agent/symbols/jit_file_trust.h"

#include "agent/process/proc_text.h"
#include "agent/process/process_file.h"
#include "agent/process/procfs_file.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STAT_MAX_BYTES = 4096 };
/* /proc counts start times in hundredths of a second, and file systems round modification times. */
#define START_DOUBT_NS CLOCK_NS_PER_S
#define NOBODY UINT32_MAX /* no user owns files with this id */

/* ---- the process ---- */

/* Reads the users and the own number of the process, if it still runs. */
static void read_status(struct jit_file_owner *owner)
{
    uint32_t real, effective;
    buf_auto text = {0};
    if (!process_file_read_status(owner->process_id, &text))
        return;
    const bool is_one = proc_text_users(buf_span(&text), &real, &effective) && real == effective;
    owner->user_id = is_one ? real : NOBODY;
    (void)proc_text_own_number(buf_span(&text), &owner->own_number);
}

/* Computes the start by the wall clock, and keeps the earliest result: after the clock was set
 * forward, files of the process would otherwise seem to be older than the process. */
static void note_start(struct jit_file_owner *owner)
{
    if (!owner->start_ticks)
        return;
    const int64_t tick_ns = CLOCK_NS_PER_S / sysconf(_SC_CLK_TCK);
    const int64_t age_ns = clock_boot_ns() - (int64_t)owner->start_ticks * tick_ns;
    const int64_t started_ns = clock_wall_ns() - age_ns;
    if (started_ns < owner->started_ns)
        owner->started_ns = started_ns;
}

static bool is_in_our_mounts(uint32_t process_id)
{
    char path[64], theirs[64], ours[64];
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/ns/mnt", process_id);
    const ssize_t bytes = readlink(path, theirs, sizeof(theirs));
    return bytes > 0 && bytes == readlink("/proc/self/ns/mnt", ours, sizeof(ours)) &&
           memcmp(theirs, ours, (size_t)bytes) == 0;
}

/* Whether the process has our root folder and our mounts: it is not in a container or chroot. */
static bool sees_our_files(uint32_t process_id)
{
    char path[64];
    struct stat theirs, ours;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root/", process_id);
    return stat(path, &theirs) == 0 && stat("/", &ours) == 0 && theirs.st_dev == ours.st_dev &&
           theirs.st_ino == ours.st_ino && is_in_our_mounts(process_id);
}

/* The start time of the process since boot; 0: it has ended. */
static uint64_t read_start_ticks(uint32_t process_id)
{
    char path[64];
    struct err ignored;
    struct proc_status status;
    buf_auto text;
    buf_init(&text, STAT_MAX_BYTES);
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", process_id);
    return !procfs_file_read(path, &text, &ignored) && proc_text_stat(buf_span(&text), &status)
               ? status.start_ticks
               : 0;
}

/* Whether another process has the number by now. */
static bool is_number_reused(const struct jit_file_owner *owner)
{
    const uint64_t start_ticks = read_start_ticks(owner->process_id);
    return start_ticks && start_ticks != owner->start_ticks;
}

static void read_owner(struct jit_file_owner *owner)
{
    read_status(owner);
    note_start(owner);
    owner->has_our_files |= sees_our_files(owner->shown_id);
}

void jit_file_owner_init(struct jit_file_owner *owner, uint32_t process_id)
{
    *owner = (struct jit_file_owner){.process_id = process_id,
                                     .start_ticks = read_start_ticks(process_id),
                                     .shown_id = process_id,
                                     .own_number = process_id,
                                     .user_id = NOBODY,
                                     .started_ns = INT64_MAX};
    read_owner(owner);
}

bool jit_file_owner_refresh(struct jit_file_owner *owner)
{
    if (is_number_reused(owner))
        return false;
    read_owner(owner);
    return true;
}

/* ---- the file ---- */

/* Whether the file was written before the process began. Process numbers are reused, in containers
 * from 1 on, and /tmp may outlive its processes. */
static bool is_of_an_earlier_process(const struct jit_file_owner *owner, const struct stat *status)
{
    const int64_t written_ns =
        (int64_t)status->st_mtim.tv_sec * CLOCK_NS_PER_S + status->st_mtim.tv_nsec;
    return owner->started_ns != INT64_MAX && written_ns < owner->started_ns - START_DOUBT_NS;
}

int jit_file_open(const struct jit_file_owner *owner, const char *path, uint64_t *ret_bytes)
{
    struct stat status;
    int fd = process_file_open_written(owner->shown_id, owner->user_id, span_text(path));
    if (fd < 0 && owner->has_our_files)
        fd = process_file_open_written(0, owner->user_id, span_text(path));
    if (fd >= 0 && (fstat(fd, &status) || is_of_an_earlier_process(owner, &status))) {
        os_close(fd);
        return -1;
    }
    *ret_bytes = fd < 0 ? 0 : (uint64_t)status.st_size;
    return fd;
}
