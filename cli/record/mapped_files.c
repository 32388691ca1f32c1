#include "cli/record/mapped_files.h"

#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/vec.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { OPEN_WANTED = 8192, PART_FOR_FILES = 4, FILES_MAX = 1 << 16 };

/* Identifies the contents of a file. The change time is not part of it, because adding and removing
 * links changes it. */
struct identity {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec modified;
};

struct mapped_file {
    char *build_id;
    char *path;
    struct identity identity;
    int fd; /* -1: closed, only the identity is kept */
};

struct mapped_files {
    pthread_mutex_t lock;
    struct mapped_file *files;
    size_t count;
    size_t capacity;
    size_t open_count;
    size_t open_max;
};

static size_t raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 0;
    if (limit.rlim_cur < OPEN_WANTED) {
        const struct rlimit raised = {.rlim_cur = limit.rlim_max < OPEN_WANTED ? limit.rlim_max
                                                                               : OPEN_WANTED,
                                      .rlim_max = limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return (limit.rlim_cur < OPEN_WANTED ? limit.rlim_cur : OPEN_WANTED) / PART_FOR_FILES;
}

struct mapped_files *mapped_files_create(void)
{
    struct mapped_files *files = mem_new(struct mapped_files, 1);
    pthread_mutex_init(&files->lock, NULL);
    files->open_max = raise_limit();
    return files;
}

void mapped_files_destroy(struct mapped_files *files)
{
    if (!files)
        return;
    for (size_t i = 0; i < files->count; i++) {
        mem_free(files->files[i].build_id);
        mem_free(files->files[i].path);
        os_close(files->files[i].fd);
    }
    mem_free(files->files);
    pthread_mutex_destroy(&files->lock);
    mem_free(files);
}

/* ---- identity of a file ---- */

static struct identity identity_of(const struct stat *status)
{
    return (struct identity){.device = status->st_dev,
                             .inode = status->st_ino,
                             .bytes = status->st_size,
                             .modified = status->st_mtim};
}

static bool is_same(const struct identity *a, const struct identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

static bool is_at_path(const struct mapped_file *file)
{
    struct stat status;
    if (stat(file->path, &status))
        return false;
    const struct identity here = identity_of(&status);
    return is_same(&here, &file->identity);
}

static bool is_unchanged(const struct mapped_file *file)
{
    struct stat status;
    if (fstat(file->fd, &status))
        return false;
    const struct identity now = identity_of(&status);
    return is_same(&now, &file->identity);
}

/* ---- adding ---- */

static bool is_known(const struct mapped_files *files, const struct mapped_file *file)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct mapped_file *other = &files->files[i];
        if (is_same(&other->identity, &file->identity) &&
            strcmp(other->build_id, file->build_id) == 0 && strcmp(other->path, file->path) == 0)
            return true;
    }
    return false;
}

/* System files are closed first, because packages are seldom updated during a recording. */
static bool is_of_system(const struct mapped_file *file)
{
    const struct span path = span_text(file->path);
    return span_starts_with(path, "/usr/") || span_starts_with(path, "/lib");
}

static void close_file(struct mapped_files *files, struct mapped_file *file)
{
    os_close(file->fd);
    file->fd = -1;
    files->open_count--;
}

static void close_system_files(struct mapped_files *files)
{
    for (size_t i = 0; files->open_count >= files->open_max && i < files->count; i++) {
        struct mapped_file *file = &files->files[i];
        if (file->fd >= 0 && is_of_system(file) && is_at_path(file))
            close_file(files, file);
    }
}

static void append_file(struct mapped_files *files, const struct mapped_file *file)
{
    vec_reserve(files->files, files->capacity, files->count + 1);
    struct mapped_file *kept = &files->files[files->count++];
    *kept = *file;
    kept->build_id = mem_strdup(file->build_id);
    kept->path = mem_strdup(file->path);
    files->open_count++;
    if (files->open_count > files->open_max)
        close_system_files(files);
    if (files->open_count > files->open_max)
        close_file(files, kept);
}

void mapped_files_add(struct mapped_files *files, const char *build_id, const char *path, int fd)
{
    struct stat status;
    struct mapped_file file = {
        .build_id = (char *)(uintptr_t)build_id, .path = (char *)(uintptr_t)path, .fd = fd};
    if (fstat(fd, &status)) {
        os_close(fd);
        return;
    }
    file.identity = identity_of(&status);
    pthread_mutex_lock(&files->lock);
    if (files->count < FILES_MAX && !is_known(files, &file))
        append_file(files, &file);
    else
        os_close(fd);
    pthread_mutex_unlock(&files->lock);
}

/* ---- finding ---- */

static enum mapped_file_state open_copy(const struct mapped_file *file, int *ret_fd)
{
    const int fd = file->fd >= 0 && is_unchanged(file) ? fcntl(file->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0)
        return MAPPED_FILE_CHANGED;
    *ret_fd = fd;
    return MAPPED_FILE_OPEN;
}

/* Files with the same build id are copies, so any of them is used. */
static enum mapped_file_state find_by_id(const struct mapped_files *files, struct span build_id,
                                         struct span path, int *ret_fd)
{
    enum mapped_file_state state = MAPPED_FILE_NONE;
    for (size_t i = 0; state != MAPPED_FILE_OPEN && i < files->count; i++) {
        const struct mapped_file *file = &files->files[i];
        if (!span_equal_text(build_id, file->build_id))
            continue;
        if (span_equal_text(path, file->path) && is_at_path(file))
            return MAPPED_FILE_AT_PATH;
        state = open_copy(file, ret_fd);
    }
    return state;
}

static enum mapped_file_state find_by_path(const struct mapped_files *files, struct span path,
                                           int *ret_fd)
{
    const struct mapped_file *found = NULL;
    for (size_t i = 0; i < files->count; i++) {
        const struct mapped_file *file = &files->files[i];
        if (file->build_id[0] || !span_equal_text(path, file->path))
            continue;
        if (found)
            return MAPPED_FILE_SEVERAL;
        found = file;
    }
    if (!found)
        return MAPPED_FILE_NONE;
    return is_at_path(found) ? MAPPED_FILE_AT_PATH : open_copy(found, ret_fd);
}

enum mapped_file_state mapped_files_find(struct mapped_files *files, struct span build_id,
                                         struct span path, int *ret_fd)
{
    pthread_mutex_lock(&files->lock);
    const enum mapped_file_state state = build_id.size ? find_by_id(files, build_id, path, ret_fd)
                                                       : find_by_path(files, path, ret_fd);
    pthread_mutex_unlock(&files->lock);
    return state;
}
