/*
 * supervisor_state: the state that the supervisor's files share; see supervisor.h.
 *
 * For the files of this folder only. One thread.
 */
#ifndef API_SUPERVISOR_SUPERVISOR_STATE_H
#define API_SUPERVISOR_SUPERVISOR_STATE_H

#include "api/http/listener.h"
#include "api/http/tls_files.h"
#include "api/ops/data_folder.h"
#include "api/ops/postgres.h"
#include "api/server/server_run.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct child_process_options;
struct settings;

struct supervisor {
    struct settings *settings;
    char *custom_cert; /* the value of --tls-cert; settings name the copy in D/tls */
    char *custom_key;  /* likewise of --tls-key */
    struct data_folder folder;
    struct postgres postgres;
    bool has_cluster;
    int listeners[SERVER_MAX_LISTENERS];
    int listener_count;
    char hosts[TLS_MAX_NAMES][LISTENER_HOST_BYTES]; /* names for the certificate */
    size_t host_count;
    char **environment; /* for children */
    char admin_token[DIGEST_TOKEN_BYTES];
    char login_code[DIGEST_SECRET_BYTES];
    pid_t server_pid; /* 0: not running */
    int64_t server_start_ns;
    int64_t restart_at_ns; /* monotonic: when the server is started again, if it is not running */
    int64_t restart_ms;    /* the pause after its next end; 0: it has not ended yet */
    int64_t next_certificate_check_ns;
    pid_t vacuum_pid; /* 0: not running */
    int64_t next_vacuum_check_ns;
};

/* Binds all --listen, completes public_url, and collects the names that certificates need. */
enum err_code supervisor_open_listeners(struct supervisor *supervisor, struct err *err) MUST_USE;

/* Creates, renews or copies certificates; *ret_is_new: the server has to load its own again. */
enum err_code supervisor_refresh_certificates(struct supervisor *supervisor, bool *ret_is_new,
                                              struct err *err) MUST_USE;

/* Creates the access log's file for the server's user, who may not create files in the folder of
 * logs. */
enum err_code supervisor_prepare_access_log(const struct supervisor *supervisor,
                                            struct err *err) MUST_USE;

/* Runs migrate-child; reads the admin's token and the sign-in code from it, writes D/admin.token.
 */
enum err_code supervisor_migrate(struct supervisor *supervisor, struct err *err) MUST_USE;

/* Starts vacuum-child if the disk of the cluster is nearly full and none runs; at most every
 * 90 s. */
void supervisor_vacuum_full_disk(struct supervisor *supervisor);

/* Restarts PostgreSQL and the server if they have ended: PostgreSQL at once, the server after a
 * pause that grows from 0.1 to 10 s while it keeps ending. */
void supervisor_restart_ended(struct supervisor *supervisor);

/* The time of the monotonic clock duration_ms from now, in ns. */
static inline int64_t supervisor_after_ms(int64_t duration_ms)
{
    return clock_monotonic_ns() + duration_ms * CLOCK_NS_PER_MS;
}

/* supervisor_start.c, for all files that start a child: */
/* Starts this executable again with the children's environment; it dies with the supervisor. */
enum err_code supervisor_start_self(const struct supervisor *supervisor,
                                    const struct child_process_options *base, pid_t *ret_pid,
                                    struct err *err) MUST_USE;
/* Starts the server. It reports to ready_fd that it serves; -1: it does not. */
enum err_code supervisor_start_server(struct supervisor *supervisor, int ready_fd,
                                      struct err *err) MUST_USE;
/* Deletes the reserve (.held of api/core/disk.h) if the disk is full, so that PostgreSQL can write
 * when it is started. */
void supervisor_release_reserve(const struct data_folder *folder);
void supervisor_log_failure(const char *message, const struct err *err);
/* Appends the descriptor through which a child reaches D, if it needs one; returns the new count.
 */
int supervisor_add_folder_fd(const struct supervisor *supervisor, int *fds, int count);

#endif
