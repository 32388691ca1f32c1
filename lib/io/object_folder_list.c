#include "lib/io/object_folder_list.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum err_code object_folder_list_open(int directory_fd, const char *name, int *ret_fd,
                                      struct err *err)
{
    int fd = os_openat(directory_fd, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 && errno == ENOENT)
        return err_set_errno(err, ERR_NOT_FOUND, "cannot open the folder %s", name);
    if (fd < 0)
        return object_fail_reading(err, "cannot open the folder", name);
    *ret_fd = fd;
    return ERR_NONE;
}

/* Size of a name in a directory whose path can be a key. */
enum { LISTED_BYTES = OBJECT_KEY_MAX_BYTES + 1 + NAME_MAX + 1 };

struct listing {
    const char *prefix;
    bool has_foreign; /* also visit names that no object can have */
    object_visit *visit;
    void *context;
};

/* Whether this key, or a key below it, can start with the prefix. */
static bool may_match(const char *key, const char *prefix)
{
    size_t key_bytes = strlen(key), prefix_bytes = strlen(prefix);
    return strncmp(key, prefix, key_bytes < prefix_bytes ? key_bytes : prefix_bytes) == 0;
}

static enum err_code list_folder(const struct listing *listing, int folder_fd, const char *path,
                                 int depth, struct err *err);

/* The mark of `ls -F`; "" for a regular file. */
static const char *type_mark(mode_t mode)
{
    return S_ISREG(mode)    ? ""
           : S_ISDIR(mode)  ? "/"
           : S_ISFIFO(mode) ? "|"
           : S_ISSOCK(mode) ? "="
           : S_ISLNK(mode)  ? "@"
                            : "%";
}

static enum err_code visit_entry(const struct listing *listing, const char *key,
                                 const struct stat *status, struct err *err)
{
    char name[LISTED_BYTES + 1];
    const bool is_object = S_ISREG(status->st_mode) && object_is_key(key);
    if ((!is_object && !listing->has_foreign) ||
        strncmp(key, listing->prefix, strlen(listing->prefix)) != 0)
        return ERR_NONE;
    const int64_t modified_ns = status->st_mtim.tv_sec * CLOCK_NS_PER_S + status->st_mtim.tv_nsec;
    snprintf(name, sizeof(name), "%s%s", key, type_mark(status->st_mode));
    return listing->visit(listing->context, name, (uint64_t)status->st_size, modified_ns, err);
}

static enum err_code list_entry(const struct listing *listing, int folder_fd, const char *name,
                                const char *key, int depth, struct err *err)
{
    struct stat status;
    if (!may_match(key, listing->prefix))
        return ERR_NONE;
    if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? ERR_NONE /* deleted meanwhile */
                               : err_set_errno(err, ERR_IO, "cannot look at object %s", key);
    if (!S_ISDIR(status.st_mode) || depth + 1 >= OBJECT_KEY_MAX_PARTS || !object_is_key(key))
        return visit_entry(listing, key, &status, err);
    int inner_fd = -1;
    enum err_code code = object_folder_list_open(folder_fd, name, &inner_fd, err);
    return code ? code : list_folder(listing, inner_fd, key, depth + 1, err);
}

/* Names that begin with a dot are not objects; those in the top directory are unfinished writes. */
static bool is_skipped(const struct listing *listing, const char *name, int depth)
{
    if (name[0] == '.')
        return depth == 0 || !listing->has_foreign || strcmp(name, ".") == 0 ||
               strcmp(name, "..") == 0;
    return depth == 0 && strcmp(name, "lost+found") == 0; /* the top directory is a file system */
}

/* Lists a directory and closes folder_fd. */
static enum err_code list_folder(const struct listing *listing, int folder_fd, const char *path,
                                 int depth, struct err *err)
{
    DIR *folder = fdopendir(folder_fd);
    if (!folder) {
        os_close(folder_fd);
        return err_set_errno(err, ERR_IO, "cannot list the folder %s", path);
    }
    enum err_code code = ERR_NONE;
    for (struct dirent *entry; !code && (entry = readdir(folder));) {
        char key[LISTED_BYTES];
        if (is_skipped(listing, entry->d_name, depth))
            continue;
        int size = snprintf(key, sizeof(key), "%s%s%s", path, *path ? "/" : "", entry->d_name);
        if (size >= 0 && size < LISTED_BYTES)
            code = list_entry(listing, dirfd(folder), entry->d_name, key, depth, err);
    }
    closedir(folder);
    return code;
}

static enum err_code list_top(int top_fd, const struct listing *listing, struct err *err)
{
    int fd = -1;
    enum err_code code = object_folder_list_open(top_fd, ".", &fd, err);
    return code ? code : list_folder(listing, fd, "", 0, err);
}

enum err_code object_folder_list_objects(int top_fd, const char *prefix, object_visit *visit,
                                         void *context, struct err *err)
{
    const struct listing listing = {.prefix = prefix, .visit = visit, .context = context};
    return list_top(top_fd, &listing, err);
}

enum err_code object_folder_list_all(int top_fd, object_visit *visit, void *context,
                                     struct err *err)
{
    const struct listing listing = {
        .prefix = "", .has_foreign = true, .visit = visit, .context = context};
    return list_top(top_fd, &listing, err);
}

enum err_code object_folder_list_delete_all(int temporary_fd, struct err *err)
{
    int fd = -1;
    enum err_code code = object_folder_list_open(temporary_fd, ".", &fd, err);
    if (code)
        return code;
    DIR *folder = fdopendir(fd);
    if (!folder) {
        os_close(fd);
        return err_set_errno(err, ERR_IO, "cannot list unfinished objects");
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        if (os_unlinkat(dirfd(folder), entry->d_name) != 0 && errno != ENOENT)
            code =
                err_set_errno(err, ERR_IO, "cannot delete the unfinished object %s", entry->d_name);
    }
    closedir(folder);
    return code;
}
