/*
 * data_folder: D, whose layout supervisor.h describes: who owns what in it, and who may enter.
 *
 * When root starts perfoliod below a folder that unprivileged users cannot enter (/root), its
 * children reach D through a descriptor that they inherit, as /proc/self/fd/N: what is opened is
 * still checked, only the way there is not. For the supervisor's one thread.
 */
#ifndef API_OPS_DATA_FOLDER_H
#define API_OPS_DATA_FOLDER_H

#include "api/core/os_user.h"
#include "lib/base/err.h"

#include <limits.h>
#include <stdbool.h>

struct data_folder {
    char path[PATH_MAX];       /* absolute */
    char child_path[PATH_MAX]; /* as children see it */
    int fd;                    /* of the folder; children inherit it when needs_fd */
    bool needs_fd;
    int lock_fd;             /* inherited by the server, so that its life counts too */
    struct os_user ours;     /* who runs the supervisor */
    struct os_user database; /* who runs PostgreSQL */
    struct os_user server;   /* who serves */
};

/*
 * Creates D and its parents where missing, finds the users, and locks D, waiting shortly for what
 * a killed supervisor left to end. Where a cluster or objects are there already, their owners are
 * the users. Handles: ERR_CONFLICT (another perfoliod serves it; or its objects go with a database
 * that is not the one that has_cluster means: its own, or an external one), ERR_INVALID (it is not
 * empty and no data folder), ERR_NOT_FOUND (a user is missing).
 */
enum err_code data_folder_open(const char *path, bool has_cluster, struct data_folder *ret_folder,
                               struct err *err) MUST_USE;
/* As data_folder_open without the lock: beside the perfoliod that serves it. */
enum err_code data_folder_open_served(const char *path, bool has_cluster,
                                      struct data_folder *ret_folder, struct err *err) MUST_USE;
void data_folder_close(struct data_folder *folder);

/* Creates D/name unless it is there, and gives it to account. */
enum err_code data_folder_make(const struct data_folder *folder, const char *name,
                               const struct os_user *account, mode_t mode,
                               struct err *err) MUST_USE;

/*
 * A folder for the database's socket, whose path is short enough and that the server may enter:
 * D/run, else one below /run, XDG_RUNTIME_DIR or /tmp, always the same for the same D.
 */
enum err_code data_folder_make_socket_dir(const struct data_folder *folder, char *ret_path,
                                          size_t path_bytes, struct err *err) MUST_USE;

#endif
