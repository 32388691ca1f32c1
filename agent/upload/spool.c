#include "agent/upload/spool.h"

#include "agent/process/procfs_file.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING ".otlp.zst"
#define TEMPORARY ".new"
/* A limit for times in file names, in the year 2116, so that later ones do not overflow. */
#define TIME_MAX_NS (INT64_MAX / 2)
enum { TIME_DIGITS = 20, BATCHES_MAX = 100000 };

struct file {
    char name[SPOOL_NAME_BYTES];
    uint64_t bytes;
};

struct spool {
    pthread_mutex_t mutex;
    int folder_fd;
    char *made_folder; /* the folder, if spool_open created it; NULL: it existed */
    uint64_t max_bytes;
    struct file *files; /* sorted by name, which sorts by age */
    uint32_t count;
    uint32_t capacity;
    uint64_t bytes; /* sum over files */
    uint64_t put_batches;
    uint64_t put_bytes;
    uint64_t dropped;
    int64_t last_ns; /* of the newest batch: names ascend even if the clock is set back */
};

/* ---- the list; the mutex is held ---- */

static void list_add(struct spool *spool, const char *name, uint64_t bytes)
{
    if (spool->max_bytes == SPOOL_NO_LIMIT) /* no list is needed, and it would only grow */
        return;
    vec_reserve(spool->files, spool->capacity, spool->count + 1);
    struct file *file = &spool->files[spool->count++];
    *file = (struct file){.bytes = bytes};
    snprintf(file->name, sizeof(file->name), "%s", name);
    spool->bytes += bytes;
}

static void list_remove(struct spool *spool, uint32_t i)
{
    spool->bytes -= spool->files[i].bytes;
    spool->count--;
    memmove(&spool->files[i], &spool->files[i + 1], (spool->count - i) * sizeof(*spool->files));
}

/* Removes the batch from the list, if it is in it; the file stays. */
static void list_forget(struct spool *spool, const struct spool_batch *batch)
{
    for (uint32_t i = 0; i < spool->count; i++) {
        if (strcmp(spool->files[i].name, batch->name) == 0) {
            list_remove(spool, i);
            return;
        }
    }
}

static void make_space(struct spool *spool, uint64_t bytes)
{
    while (spool->count &&
           (spool->bytes + bytes > spool->max_bytes || spool->count >= BATCHES_MAX)) {
        /* With --offline-dir a person may have moved the file away. */
        if (os_unlinkat(spool->folder_fd, spool->files[0].name) == 0 || errno != ENOENT)
            spool->dropped++;
        list_remove(spool, 0);
    }
}

/* ---- opening ---- */

static bool parse_name(const char *name, struct spool_batch *ret_batch, int64_t *ret_time_ns)
{
    const size_t size = strlen(name);
    uint64_t time_ns;
    if (size != TIME_DIGITS + 1 + DIGEST_ID_LENGTH + strlen(ENDING) ||
        strcmp(name + size - strlen(ENDING), ENDING) != 0 || name[TIME_DIGITS] != '-' ||
        !span_parse_u64(span_of(name, TIME_DIGITS), &time_ns) || time_ns > TIME_MAX_NS ||
        !digest_is_id(span_of(name + TIME_DIGITS + 1, DIGEST_ID_LENGTH)))
        return false;
    snprintf(ret_batch->name, sizeof(ret_batch->name), "%s", name);
    snprintf(ret_batch->id, sizeof(ret_batch->id), "%.*s", (int)DIGEST_ID_LENGTH,
             name + TIME_DIGITS + 1);
    *ret_time_ns = (int64_t)time_ns;
    return true;
}

static int compare_files(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void note_file(struct spool *spool, const char *name)
{
    struct spool_batch batch;
    struct stat status;
    int64_t time_ns;
    if (!parse_name(name, &batch, &time_ns) ||
        fstatat(spool->folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
        return;
    list_add(spool, batch.name, (uint64_t)status.st_size);
    if (time_ns > spool->last_ns)
        spool->last_ns = time_ns;
}

/* Lists the batches that an earlier run has left. */
static enum err_code read_folder(struct spool *spool, const char *folder, struct err *err)
{
    DIR *stream = fdopendir(os_openat(spool->folder_fd, ".", O_RDONLY | O_DIRECTORY, 0));
    if (!stream)
        return err_set_errno(err, ERR_IO, "reading the folder %s", folder);
    for (const struct dirent *entry = readdir(stream); entry; entry = readdir(stream))
        note_file(spool, entry->d_name);
    closedir(stream);
    if (spool->count)
        qsort(spool->files, spool->count, sizeof(*spool->files), compare_files);
    make_space(spool, 0);
    return ERR_NONE;
}

/* Two agents would overwrite each other's unfinished file. On file systems without locks this is
 * not detected. */
static enum err_code lock_folder(const struct spool *spool, const char *folder, struct err *err)
{
    if (flock(spool->folder_fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return ERR_NONE;
    return err_set(err, ERR_CONFLICT,
                   "another perfolio-agent keeps its batches in %s: stop it first (systemctl stop "
                   "perfolio-agent), or set another folder with --spool-dir or --offline-dir",
                   folder);
}

/* Removes the unfinished file of an earlier run. Anything else of that name would make each batch
 * fail, so it is an error. */
static enum err_code remove_unfinished(const struct spool *spool, const char *folder,
                                       struct err *err)
{
    if (os_unlinkat(spool->folder_fd, TEMPORARY) == 0 || errno == ENOENT)
        return ERR_NONE;
    return err_set_errno(
        err, ERR_IO,
        "%s/" TEMPORARY " cannot be removed; remove it, so that batches can be written", folder);
}

enum err_code spool_open(const char *folder, uint64_t max_bytes, struct spool **ret_spool,
                         struct err *err)
{
    const bool is_made = os_mkdirat(AT_FDCWD, folder, 0700) == 0;
    if (!is_made && errno != EEXIST)
        return err_set_errno(err, ERR_IO, "creating the folder %s", folder);
    const int fd = os_openat(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "opening the folder %s", folder);
    struct spool *spool = mem_new(struct spool, 1);
    pthread_mutex_init(&spool->mutex, NULL);
    spool->folder_fd = fd;
    spool->made_folder = is_made ? mem_strdup(folder) : NULL;
    spool->max_bytes = max_bytes;
    enum err_code code = lock_folder(spool, folder, err);
    if (!code)
        code = remove_unfinished(spool, folder, err);
    if (!code)
        code = read_folder(spool, folder, err);
    if (code) {
        spool_close(spool);
        return code;
    }
    *ret_spool = spool;
    return ERR_NONE;
}

void spool_close(struct spool *spool)
{
    if (!spool)
        return;
    os_close(spool->folder_fd);
    pthread_mutex_destroy(&spool->mutex);
    mem_free(spool->made_folder);
    mem_free(spool->files);
    mem_free(spool);
}

void spool_abandon(struct spool *spool)
{
    if (spool && spool->made_folder)
        (void)rmdir(spool->made_folder);
    spool_close(spool);
}

/* ---- batches ---- */

static enum err_code write_file(struct spool *spool, const char *name, struct span batch,
                                struct err *err)
{
    fd_auto fd = os_openat(spool->folder_fd, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0 && os_write_all(fd, batch.data, batch.size) == 0 &&
        os_renameat(spool->folder_fd, TEMPORARY, spool->folder_fd, name) == 0)
        return ERR_NONE;
    err_set_errno(err, ERR_IO, "writing a batch to the spool");
    if (fd >= 0)
        (void)os_unlinkat(spool->folder_fd, TEMPORARY);
    return err->code;
}

enum err_code spool_put(struct spool *spool, struct span batch, struct err *err)
{
    char name[SPOOL_NAME_BYTES], id[DIGEST_ID_BYTES];
    if (batch.size > SPOOL_BATCH_MAX_BYTES || batch.size > spool->max_bytes)
        return err_set(err, ERR_TOO_LARGE, "a batch of %zu bytes is too large to be sent",
                       batch.size);
    digest_random_id(id);
    pthread_mutex_lock(&spool->mutex);
    const int64_t now_ns = clock_wall_ns();
    spool->last_ns = now_ns > spool->last_ns ? now_ns : spool->last_ns + 1;
    snprintf(name, sizeof(name), "%0*" PRId64 "-%s" ENDING, TIME_DIGITS, spool->last_ns, id);
    make_space(spool, batch.size);
    const enum err_code code = write_file(spool, name, batch, err);
    if (!code) {
        list_add(spool, name, batch.size);
        spool->put_batches++;
        spool->put_bytes += batch.size;
    }
    pthread_mutex_unlock(&spool->mutex);
    return code;
}

static bool find_oldest(struct spool *spool, struct spool_batch *ret_batch)
{
    int64_t ignored;
    pthread_mutex_lock(&spool->mutex);
    const bool is_there = spool->count && parse_name(spool->files[0].name, ret_batch, &ignored);
    pthread_mutex_unlock(&spool->mutex);
    return is_there;
}

enum err_code spool_read(struct spool *spool, struct spool_batch *ret_batch, struct buf *bytes,
                         struct err *err)
{
    if (!find_oldest(spool, ret_batch))
        return err_set(err, ERR_NOT_FOUND, "the spool is empty");
    buf_clear(bytes);
    fd_auto fd = os_openat(spool->folder_fd, ret_batch->name, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        return err_set_errno(err, ERR_IO, "opening %s", ret_batch->name);
    const enum err_code code = fd < 0 ? err_set_errno(err, ERR_IO, "opening %s", ret_batch->name)
                                      : procfs_file_read_fd(fd, ret_batch->name, bytes, err);
    if (!code)
        return ERR_NONE;
    /* A missing or damaged file is skipped, so that it does not block the others. */
    pthread_mutex_lock(&spool->mutex);
    list_forget(spool, ret_batch);
    spool->dropped++;
    pthread_mutex_unlock(&spool->mutex);
    return ERR_CORRUPT;
}

void spool_remove(struct spool *spool, const struct spool_batch *batch)
{
    pthread_mutex_lock(&spool->mutex);
    (void)os_unlinkat(spool->folder_fd, batch->name);
    list_forget(spool, batch);
    pthread_mutex_unlock(&spool->mutex);
}

void spool_count(struct spool *spool, struct spool_counts *ret_counts)
{
    pthread_mutex_lock(&spool->mutex);
    *ret_counts = (struct spool_counts){.bytes = spool->bytes,
                                        .batches = spool->count,
                                        .put_batches = spool->put_batches,
                                        .put_bytes = spool->put_bytes,
                                        .dropped_batches = spool->dropped};
    pthread_mutex_unlock(&spool->mutex);
}
