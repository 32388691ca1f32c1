#include "api/supervisor/supervisor_state.h"

#include "api/core/child_process.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"

enum {
    FIRST_RESTART_MS = 100,
    LAST_RESTART_MS = 10000,
    CALM_S = 60, /* after a server ran this long, the shortest pause is used again */
};

/* Decides the pause before the server is started again: it doubles each time. */
static void server_ended(struct supervisor *supervisor)
{
    bool was_calm = clock_monotonic_ns() - supervisor->server_start_ns > CALM_S * CLOCK_NS_PER_S;
    supervisor->server_pid = 0;
    if (was_calm || supervisor->restart_ms == 0)
        supervisor->restart_ms = FIRST_RESTART_MS;
    supervisor->restart_at_ns = supervisor_after_ms(supervisor->restart_ms);
    log_event(LOG_ERROR, "the server has ended and will be restarted", "in_ms=%lld",
              (long long)supervisor->restart_ms);
    supervisor->restart_ms *= 2;
    if (supervisor->restart_ms > LAST_RESTART_MS)
        supervisor->restart_ms = LAST_RESTART_MS;
}

static bool has_ended(pid_t pid)
{
    struct err err;
    bool is_success;
    return pid > 0 && child_process_wait_ms(pid, 0, &is_success, &err) != ERR_TIMEOUT;
}

static void notice_ends(struct supervisor *supervisor)
{
    if (has_ended(supervisor->server_pid))
        server_ended(supervisor);
    if (has_ended(supervisor->postgres.pid)) {
        supervisor->postgres.pid = 0;
        log_event(LOG_ERROR, "the database has ended and is being restarted", "path=%s",
                  supervisor->postgres.path);
    }
    if (has_ended(supervisor->vacuum_pid))
        supervisor->vacuum_pid = 0;
}

void supervisor_restart_ended(struct supervisor *supervisor)
{
    struct err err;
    notice_ends(supervisor);
    if (supervisor->has_cluster && supervisor->postgres.pid == 0) {
        supervisor_release_reserve(&supervisor->folder);
        if (postgres_start(&supervisor->postgres, &err))
            supervisor_log_failure("the database does not start", &err);
    }
    if (supervisor->server_pid == 0 && clock_monotonic_ns() >= supervisor->restart_at_ns &&
        supervisor_start_server(supervisor, -1, &err)) {
        supervisor_log_failure("the server does not start", &err);
        server_ended(supervisor);
    }
}
