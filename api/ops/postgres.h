/*
 * postgres: the private PostgreSQL cluster in the data folder: creates, starts and stops it, and
 * stops one that a killed supervisor left running.
 *
 * It listens on a unix socket only and authenticates clients by their operating system user (peer).
 * The user who runs the cluster may connect as perfolio_cluster (superuser) and perfolio_owner (the
 * schema's owner), the user who runs the server as perfolio_server and perfolio_jobs, and root as
 * each of these. Clusters of the operating system are never changed. Threads: one, the
 * supervisor's.
 */
#ifndef API_OPS_POSTGRES_H
#define API_OPS_POSTGRES_H

#include "api/core/os_user.h"
#include "lib/base/err_code.h"

#include <limits.h>
#include <sys/types.h>

/* sizeof(sun_path) is 108 with its NUL; "/.s.PGSQL.5432" is appended to the folder. */
enum { POSTGRES_SOCKET_DIR_BYTES = 108 - 14, POSTGRES_CONNINFO_BYTES = 512 };

struct postgres {
    struct os_user account;        /* runs PostgreSQL */
    struct os_user server_account; /* connects as perfolio_server and perfolio_jobs */
    char path[PATH_MAX];           /* of the cluster, for this process */
    char child_path[PATH_MAX];     /* of the cluster, for processes of account */
    int kept_fd;                   /* the descriptor in child_path, or -1 */
    char socket_dir[POSTGRES_SOCKET_DIR_BYTES];
    char bin_dir[128];
    int max_connections;
    int log_fd; /* PostgreSQL's messages */
    pid_t pid;  /* 0: not running */
};

/* Finds PostgreSQL's programs (for the cluster's version, if a cluster exists), creates the cluster
 * if needed, and writes its access rules. socket_dir must exist. A cluster appears under its name
 * only when it is complete. Errors: ERR_NOT_FOUND (PostgreSQL is not installed). */
enum err_code postgres_prepare(struct postgres *postgres, struct err *err) MUST_USE;

/* Stops a server that a killed supervisor left running on this cluster, if there is one. */
enum err_code postgres_stop_orphan(const struct postgres *postgres, struct err *err) MUST_USE;

/* Starts the server and waits until it accepts connections: up to five minutes, because recovery
 * may take long. Errors: ERR_BUSY (PostgreSQL ended while it started), ERR_TIMEOUT, ERR_CANCELLED
 * (child_process_is_stop_wanted). */
enum err_code postgres_start(struct postgres *postgres, struct err *err) MUST_USE;

/* Ends all sessions and writes a checkpoint; uses stronger signals after half a minute. */
void postgres_stop(struct postgres *postgres);

/* Runs one of PostgreSQL's programs (pg_dump, pg_restore) as the cluster's user and waits for it;
 * arguments end with NULL, and this function sets the first. environment NULL: a clean one. */
enum err_code postgres_run_tool(const struct postgres *postgres, const char *name,
                                const char **arguments, const char *const *environment,
                                int stdin_fd, int stdout_fd, struct err *err) MUST_USE;
/* Finds the newest programs, for an external database. Errors: ERR_NOT_FOUND. */
enum err_code postgres_find_newest_programs(struct postgres *postgres, struct err *err) MUST_USE;
/* Sets socket_dir from the server that runs on the cluster. Errors: ERR_NOT_FOUND. */
enum err_code postgres_find_running(struct postgres *postgres, struct err *err) MUST_USE;

/* libpq's connection text for a role. */
void postgres_conninfo(const char *socket_dir, const char *role,
                       char ret_text[POSTGRES_CONNINFO_BYTES]);

#endif
