#include "api/ops/data_folder.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOCK_WAIT_S = 15 };

static enum err_code make_parents(const char *path, struct err *err)
{
    char part[PATH_MAX];
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return err_set_errno(err, ERR_IO, "cannot create the folder %s", part);
        *slash = '/';
    }
    if (mkdir(part, 0755) != 0 && errno != EEXIST)
        return err_set_errno(err, ERR_IO, "cannot create the folder %s", part);
    return ERR_NONE;
}

/* The owner of D/name if it exists and is not root's, otherwise the given user. */
static enum err_code find_user(const struct data_folder *folder, const char *name, const char *user,
                               struct os_user *ret_account, struct err *err)
{
    struct stat status;
    if (folder->ours.uid != 0) {
        *ret_account = folder->ours;
        return ERR_NONE;
    }
    if (fstatat(folder->fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_uid != 0 &&
        os_user_of_uid(status.st_uid, ret_account, err) == ERR_NONE)
        return ERR_NONE;
    return os_user_find(user, ret_account, err);
}

static bool is_alive(int lock_fd)
{
    char text[32] = "";
    if (pread(lock_fd, text, sizeof(text) - 1, 0) <= 0)
        return false;
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

/* Waits for the lock: the server of a killed supervisor holds it until it has ended. */
static enum err_code take_lock(struct data_folder *folder, struct err *err)
{
    char text[32];
    folder->lock_fd = openat(folder->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (folder->lock_fd < 0)
        return err_set_errno(err, ERR_IO, "cannot open %s/lock", folder->path);
    int64_t deadline_ns = clock_monotonic_ns() + LOCK_WAIT_S * CLOCK_NS_PER_S;
    while (flock(folder->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return err_set_errno(err, ERR_IO, "cannot lock %s/lock", folder->path);
        if (is_alive(folder->lock_fd) || clock_monotonic_ns() > deadline_ns)
            return err_set(err, ERR_CONFLICT, "another perfoliod uses the data folder %s",
                           folder->path);
        clock_sleep_ms(20);
    }
    int size = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(folder->lock_fd, 0) != 0 ||
        pwrite(folder->lock_fd, text, (size_t)size, 0) != size)
        return err_set_errno(err, ERR_IO, "cannot write %s/lock", folder->path);
    return ERR_NONE;
}

/* Lets the two users enter D itself; nothing in it is readable by everyone. */
static enum err_code let_users_pass(struct data_folder *folder, struct err *err)
{
    struct stat status;
    snprintf(folder->child_path, sizeof(folder->child_path), "%s", folder->path);
    if (folder->ours.uid != 0)
        return ERR_NONE;
    if (fstat(folder->fd, &status) != 0 ||
        ((status.st_mode & 0011) != 0011 && fchmod(folder->fd, status.st_mode | 0011) != 0))
        return err_set_errno(err, ERR_IO, "cannot give the server's user access to %s",
                             folder->path);
    if (os_user_can_enter(&folder->database, folder->path) &&
        os_user_can_enter(&folder->server, folder->path))
        return ERR_NONE;
    folder->needs_fd = true;
    snprintf(folder->child_path, sizeof(folder->child_path), "/proc/self/fd/%d", folder->fd);
    return ERR_NONE;
}

static bool is_there(const struct data_folder *folder, const char *name)
{
    return faccessat(folder->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A wrong --data-dir, such as a home directory, must not be filled with the server's files. */
static enum err_code check_content(const struct data_folder *folder, struct err *err)
{
    static const char *const ours[] = {"lock", "objects", "tls", "pg"};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (is_there(folder, ours[i]))
            return ERR_NONE;
    int count = 0;
    DIR *entries = opendir(folder->path);
    if (!entries)
        return err_set_errno(err, ERR_IO, "cannot list the folder %s", folder->path);
    for (struct dirent *entry; (entry = readdir(entries));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, "lost+found") != 0)
            count++;
    closedir(entries);
    if (count > 0)
        return err_set(err, ERR_INVALID,
                       "the folder %s contains other files: choose an empty or new --data-dir",
                       folder->path);
    return ERR_NONE;
}

static bool has_objects(const struct data_folder *folder)
{
    int fd = openat(folder->fd, "objects/share", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    bool is_found = false;
    for (struct dirent *entry; entries && !is_found && (entry = readdir(entries));)
        is_found = entry->d_name[0] != '.';
    if (entries)
        closedir(entries);
    return is_found;
}

/* Objects that are unknown to a database are swept, so another database must not meet them. */
static enum err_code check_database(const struct data_folder *folder, bool has_cluster,
                                    struct err *err)
{
    if (!has_cluster && is_there(folder, "pg"))
        return err_set(err, ERR_CONFLICT,
                       "the data folder %s has a database of its own: start without "
                       "--database-url, or move it with perfoliod backup and perfoliod restore "
                       "--database-url",
                       folder->path);
    if (has_cluster && is_there(folder, "objects/.database-id"))
        return err_set(err, ERR_CONFLICT,
                       "the data folder %s belongs to an external database: start with its "
                       "--database-url, or with a new --data-dir",
                       folder->path);
    if (has_cluster && !is_there(folder, "pg") && has_objects(folder))
        return err_set(
            err, ERR_CONFLICT,
            "the data folder %s contains profiles, but no database with their rows: start "
            "with the --database-url that it was used with, or restore a backup",
            folder->path);
    return ERR_NONE;
}

static enum err_code open_folder(struct data_folder *folder, const char *path, struct err *err)
{
    enum err_code code = make_parents(path, err);
    if (code)
        return code;
    /* Names are appended to it in buffers of this size. */
    char resolved[PATH_MAX];
    if (!realpath(path, resolved) || strlen(resolved) > PATH_MAX - 64)
        return err_set_errno(err, ERR_IO, "cannot use the folder %s", path);
    snprintf(folder->path, sizeof(folder->path), "%s", resolved);
    int fd = open(resolved, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A high number, which no child uses for something else. */
    folder->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 100);
    os_close(fd);
    if (folder->fd < 0)
        return err_set_errno(err, ERR_IO, "cannot open the folder %s", path);
    code = check_content(folder, err);
    return code ? code : os_user_of_uid(geteuid(), &folder->ours, err);
}

static enum err_code prepare_folder(struct data_folder *folder, const char *path, bool has_cluster,
                                    bool takes_lock, struct err *err)
{
    enum err_code code = open_folder(folder, path, err);
    if (code)
        return code;
    code = check_database(folder, has_cluster, err);
    if (code)
        return code;
    if (takes_lock)
        code = take_lock(folder, err);
    if (code)
        return code;
    code = find_user(folder, "objects", "perfolio", &folder->server, err);
    if (code)
        return code;
    folder->database = folder->server;
    if (has_cluster)
        code = find_user(folder, "pg", "postgres", &folder->database, err);
    if (code)
        return code;
    return let_users_pass(folder, err);
}

static enum err_code open_with(const char *path, bool has_cluster, bool takes_lock,
                               struct data_folder *ret_folder, struct err *err)
{
    struct data_folder folder = {.fd = -1, .lock_fd = -1};
    enum err_code code = prepare_folder(&folder, path, has_cluster, takes_lock, err);
    if (code) {
        data_folder_close(&folder);
        return code;
    }
    *ret_folder = folder;
    return ERR_NONE;
}

enum err_code data_folder_open(const char *path, bool has_cluster, struct data_folder *ret_folder,
                               struct err *err)
{
    return open_with(path, has_cluster, true, ret_folder, err);
}

enum err_code data_folder_open_served(const char *path, bool has_cluster,
                                      struct data_folder *ret_folder, struct err *err)
{
    return open_with(path, has_cluster, false, ret_folder, err);
}

void data_folder_close(struct data_folder *folder)
{
    os_close(folder->fd);
    os_close(folder->lock_fd);
    folder->fd = folder->lock_fd = -1;
}

static enum err_code make_path(int directory_fd, const char *path, const struct os_user *account,
                               gid_t group, mode_t mode, struct err *err)
{
    struct stat status;
    if (mkdirat(directory_fd, path, mode) != 0 && errno != EEXIST)
        return err_set_errno(err, ERR_IO, "cannot create the folder %s", path);
    fd_auto fd = openat(directory_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "cannot open the folder %s", path);
    if (geteuid() != 0 && status.st_uid != geteuid())
        return err_set(err, ERR_FORBIDDEN, "the folder %s belongs to another user", path);
    if ((geteuid() == 0 && fchown(fd, account->uid, group) != 0) || fchmod(fd, mode) != 0)
        return err_set_errno(err, ERR_IO, "cannot prepare the folder %s", path);
    return ERR_NONE;
}

enum err_code data_folder_make(const struct data_folder *folder, const char *name,
                               const struct os_user *account, mode_t mode, struct err *err)
{
    return make_path(folder->fd, name, account, account->gid, mode, err);
}

/* D as a short word: the same D gives the same, and a collision of two is unlikely (PostgreSQL's
 * own lock on the socket would refuse the second). FNV-1a. */
static unsigned long long hash_of(const char *text)
{
    unsigned long long hash = 14695981039346656037ULL;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211ULL;
    return hash;
}

enum err_code data_folder_make_socket_dir(const struct data_folder *folder, char *ret_path,
                                          size_t path_bytes, struct err *err)
{
    char path[PATH_MAX];
    const char *base = geteuid() == 0 ? "/run" : getenv("XDG_RUNTIME_DIR");
    snprintf(path, sizeof(path), "%s/run", folder->path);
    if (folder->needs_fd || strlen(path) >= path_bytes) {
        if (!base || access(base, W_OK | X_OK) != 0)
            base = "/tmp";
        snprintf(path, sizeof(path), "%s/perfolio-%u-%llx", base, (unsigned)geteuid(),
                 hash_of(folder->path));
    }
    if (strlen(path) >= path_bytes)
        return err_set(err, ERR_INVALID,
                       "there is no folder with a path short enough for a socket");
    enum err_code code =
        make_path(AT_FDCWD, path, &folder->database, folder->server.gid, 0750, err);
    if (code)
        return code;
    snprintf(ret_path, path_bytes, "%s", path);
    return ERR_NONE;
}
