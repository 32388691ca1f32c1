/*
 * data_folder: D, whose layout supervisor.h describes: owners and access of its parts.
 *
 * If root starts perfoliod with D below a folder that unprivileged users cannot enter (/root), its
 * children reach D through an inherited descriptor, as /proc/self/fd/N: the kernel then checks the
 * permissions of the files in D, but not those of the folders above. Threads: one, the
 * supervisor's.
 */
#ifndef API_OPS_DATA_FOLDER_H
#define API_OPS_DATA_FOLDER_H

#include "api/core/os_user.h"
#include "lib/base/err_code.h"

#include <limits.h>
#include <stdbool.h>

struct data_folder {
    char path[PATH_MAX];       /* absolute */
    char child_path[PATH_MAX]; /* as children see it */
    int fd;                    /* of the folder; children inherit it when needs_fd */
    bool needs_fd;
    int lock_fd;         /* inherited by the server, so the lock is held while the server runs */
    struct os_user ours; /* the user who runs the supervisor */
    struct os_user database; /* the user who runs PostgreSQL */
    struct os_user server;   /* the user who runs the server */
};

/*
 * Creates D and its parents if missing, finds the users, and locks D. Waits up to 15 s for
 * processes of a killed supervisor to end. If a cluster or objects exist already, their owners are
 * the users. Errors: ERR_CONFLICT (another perfoliod serves it; or its objects belong to another
 * database than has_cluster selects: its own, or an external one), ERR_INVALID (it is not empty and
 * not a data folder), ERR_NOT_FOUND (a user is missing).
 */
enum err_code data_folder_open(const char *path, bool has_cluster, struct data_folder *ret_folder,
                               struct err *err) MUST_USE;
/* As data_folder_open without the lock: for use while another perfoliod serves the folder. */
enum err_code data_folder_open_served(const char *path, bool has_cluster,
                                      struct data_folder *ret_folder, struct err *err) MUST_USE;
void data_folder_close(struct data_folder *folder);

/* Creates D/name if it does not exist, and makes account its owner. */
enum err_code data_folder_make(const struct data_folder *folder, const char *name,
                               const struct os_user *account, mode_t mode,
                               struct err *err) MUST_USE;

/* A folder for the database's socket, whose path is short enough and that the server may enter:
 * D/run, or one below /run, XDG_RUNTIME_DIR or /tmp, always the same for the same D. */
enum err_code data_folder_make_socket_dir(const struct data_folder *folder, char *ret_path,
                                          size_t path_bytes, struct err *err) MUST_USE;

#endif
