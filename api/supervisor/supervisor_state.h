/*
 * supervisor_state: what the parts of the supervisor share; see supervisor.h.
 *
 * For supervisor.c, supervisor_network.c and supervisor_migrate.c only. One thread.
 */
#ifndef API_SUPERVISOR_SUPERVISOR_STATE_H
#define API_SUPERVISOR_SUPERVISOR_STATE_H

#include "api/http/listener.h"
#include "api/http/tls_files.h"
#include "api/ops/data_folder.h"
#include "api/ops/postgres.h"
#include "api/server/server_run.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct child_process_options;
struct settings;

struct supervisor {
    struct settings *settings;
    char *custom_cert; /* what --tls-cert and --tls-key said; settings name our copies */
    char *custom_key;
    struct data_folder folder;
    struct postgres postgres;
    bool has_cluster;
    int listeners[SERVER_MAX_LISTENERS];
    int listener_count;
    char hosts[TLS_MAX_NAMES][LISTENER_HOST_BYTES]; /* names for the certificate */
    size_t host_count;
    char **environment; /* of children */
    char admin_token[DIGEST_TOKEN_BYTES];
    char login_code[DIGEST_SECRET_BYTES];
    pid_t server_pid; /* 0: not running */
    int64_t server_start_ns;
    int64_t restart_at_ns; /* of the server, when it is not running */
    int64_t restart_ms;    /* the next pause */
    int64_t next_certificate_check_ns;
};

/* Binds all --listen, completes public_url, and collects the names that certificates need. */
enum err_code supervisor_open_listeners(struct supervisor *supervisor, struct err *err) MUST_USE;

/* Makes, renews or copies certificates; *ret_is_new: the server has to read its own again. */
enum err_code supervisor_refresh_certificates(struct supervisor *supervisor, bool *ret_is_new,
                                              struct err *err) MUST_USE;

/* Makes the access log's file for the server's user, who may create nothing where logs lie. */
enum err_code supervisor_prepare_access_log(const struct supervisor *supervisor,
                                            struct err *err) MUST_USE;

/* Runs migrate-child; takes the admin's token and the sign-in code from it, writes D/admin.token.
 */
enum err_code supervisor_migrate(struct supervisor *supervisor, struct err *err) MUST_USE;

/* Starts this executable again with the children's environment; it dies with the supervisor. */
enum err_code supervisor_start_self(const struct supervisor *supervisor,
                                    const struct child_process_options *base, pid_t *ret_pid,
                                    struct err *err) MUST_USE;
/* Appends the descriptor that is a child's way to D, where it needs one; returns the new count. */
int supervisor_add_folder_fd(const struct supervisor *supervisor, int *fds, int count);

#endif
