#include "cli/kept_files.h"

#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

/* Of the 1,024 that a process may have open by default. */
enum { FILES_MAX = 256 };

struct kept_file {
    char *build_id;
    int fd;
};

struct kept_files {
    pthread_mutex_t lock;
    struct kept_file files[FILES_MAX];
    size_t count;
};

struct kept_files *kept_files_create(void)
{
    struct kept_files *files = mem_new(struct kept_files, 1);
    pthread_mutex_init(&files->lock, NULL);
    return files;
}

void kept_files_destroy(struct kept_files *files)
{
    if (!files)
        return;
    for (size_t i = 0; i < files->count; i++) {
        mem_free(files->files[i].build_id);
        os_close(files->files[i].fd);
    }
    pthread_mutex_destroy(&files->lock);
    mem_free(files);
}

static bool is_at(const char *path, int fd)
{
    struct stat here, file;
    return stat(path, &here) == 0 && fstat(fd, &file) == 0 && here.st_dev == file.st_dev &&
           here.st_ino == file.st_ino;
}

void kept_files_add(struct kept_files *files, const char *build_id, const char *path, int fd)
{
    const size_t bytes = strlen(build_id) + 1;
    pthread_mutex_lock(&files->lock);
    if (files->count < FILES_MAX && !is_at(path, fd)) {
        struct kept_file *file = &files->files[files->count++];
        *file = (struct kept_file){.build_id = mem_new(char, bytes), .fd = fd};
        memcpy(file->build_id, build_id, bytes);
        fd = -1;
    }
    pthread_mutex_unlock(&files->lock);
    os_close(fd);
}

int kept_files_find(struct kept_files *files, struct span build_id)
{
    int fd = -1;
    pthread_mutex_lock(&files->lock);
    for (size_t i = 0; fd < 0 && i < files->count; i++) {
        if (span_equal_text(build_id, files->files[i].build_id))
            fd = files->files[i].fd;
    }
    pthread_mutex_unlock(&files->lock);
    return fd;
}
