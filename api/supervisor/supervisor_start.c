#include "api/supervisor/supervisor_state.h"

#include "api/core/child_process.h"

#include <signal.h>

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
