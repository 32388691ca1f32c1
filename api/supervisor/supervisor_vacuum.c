#include "api/supervisor/supervisor_state.h"

#include "api/core/child_process.h"
#include "api/core/disk.h"
#include "api/core/settings.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/os.h"

#include <stddef.h>

enum { CHECK_S = 90 };

/* Whether less than a quarter more than the reserve is free. A disk that was full counts as full
 * until an eighth more than the reserve is free (disk_check of api/core/disk.h), so the margin
 * includes every disk on which the server stores nothing. The divisions prevent an overflow. */
static bool is_nearly_full(const struct supervisor *supervisor)
{
    uint64_t free_bytes, total_bytes;
    if (os_free_bytes(supervisor->postgres.path, &free_bytes, &total_bytes) != 0)
        return false;
    const uint64_t set_bytes = supervisor->settings->min_free_bytes;
    const uint64_t reserve_bytes = set_bytes ? set_bytes : disk_default_reserve(total_bytes);
    return free_bytes / 5 < reserve_bytes / 4;
}

void supervisor_vacuum_full_disk(struct supervisor *supervisor)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (!supervisor->has_cluster || supervisor->postgres.pid <= 0 || supervisor->vacuum_pid > 0 ||
        now_ns < supervisor->next_vacuum_check_ns)
        return;
    if (!is_nearly_full(supervisor))
        return;
    supervisor->next_vacuum_check_ns = now_ns + CHECK_S * CLOCK_NS_PER_S;
    struct err err;
    int kept[1];
    const char *const arguments[] = {"perfoliod", "vacuum-child", supervisor->postgres.socket_dir,
                                     NULL};
    const struct child_process_options options = {
        .arguments = arguments,
        .account = &supervisor->folder.database,
        .stdin_fd = -1,
        .stdout_fd = -1,
        .kept_fds = kept,
        .kept_fd_count = supervisor_add_folder_fd(supervisor, kept, 0)};
    if (supervisor_start_self(supervisor, &options, &supervisor->vacuum_pid, &err)) {
        supervisor->vacuum_pid = 0;
        log_event(LOG_ERROR, "cannot start the process that vacuums the tables of a full disk",
                  "code=%s", err_code_name(err.code));
    }
}
