#include "api/supervisor/supervisor_state.h"

#include "api/core/child_process.h"
#include "api/core/disk.h"
#include "lib/base/err.h"
#include "lib/base/log.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>

int supervisor_add_folder_fd(const struct supervisor *supervisor, int *fds, int count)
{
    if (supervisor->folder.needs_fd)
        fds[count++] = supervisor->folder.fd;
    return count;
}

enum err_code supervisor_start_self(const struct supervisor *supervisor,
                                    const struct child_process_options *base, pid_t *ret_pid,
                                    struct err *err)
{
    struct child_process_options options = *base;
    options.environment = (const char *const *)supervisor->environment;
    options.death_signal = SIGKILL; /* safe: acknowledged data are durable */
    return child_process_start(&options, ret_pid, err);
}

enum err_code supervisor_start_server(struct supervisor *supervisor, int ready_fd, struct err *err)
{
    char ready[16], fds[16 * SERVER_MAX_LISTENERS] = "";
    int kept[CHILD_PROCESS_MAX_KEPT_FDS + SERVER_MAX_LISTENERS], kept_count = 0;
    size_t used = 0;
    for (int i = 0; i < supervisor->listener_count; i++) {
        kept[kept_count++] = supervisor->listeners[i];
        used += (size_t)snprintf(fds + used, sizeof(fds) - used, "%s%d", i ? "," : "",
                                 supervisor->listeners[i]);
    }
    kept[kept_count++] = supervisor->folder.lock_fd;
    if (ready_fd >= 0)
        kept[kept_count++] = ready_fd;
    kept_count = supervisor_add_folder_fd(supervisor, kept, kept_count);
    snprintf(ready, sizeof(ready), "%d", ready_fd);
    const char *const arguments[] = {"perfoliod", "serve-child", supervisor->postgres.socket_dir,
                                     ready,       fds,           NULL};
    enum err_code code =
        supervisor_start_self(supervisor,
                              &(struct child_process_options){.arguments = arguments,
                                                              .account = &supervisor->folder.server,
                                                              .stdin_fd = -1,
                                                              .stdout_fd = -1,
                                                              .kept_fds = kept,
                                                              .kept_fd_count = kept_count},
                              &supervisor->server_pid, err);
    supervisor->server_start_ns = clock_monotonic_ns();
    return code;
}

void supervisor_release_reserve(const struct data_folder *folder)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/objects", folder->path);
    disk_release_reserve_to_start(path);
}

void supervisor_log_failure(const char *message, const struct err *err)
{
    char text[ERR_MESSAGE_BYTES + 16];
    log_event(LOG_ERROR, message, "code=%s error=%s", err_code_name(err->code),
              log_quote(err->message, text, sizeof(text)));
}
