#include "api/query/export_space.h"

#include "api/core/disk.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

enum {
    DISK_SHARE = 8,    /* all exports take at most this part of the disk */
    TEAM_SHARE = 2,    /* the exports of one team take at most this part of the space for exports */
    RESERVE_COUNT = 2, /* reserves of the disk that stay free */
    RETRY_S = 60,
};

struct export_space {
    const struct disk *disk;
    pthread_mutex_t mutex;
    struct export_file *first; /* guarded by mutex, as are the bytes of all files */
};

struct export_space *export_space_create(const struct disk *disk)
{
    struct export_space *space = mem_new(struct export_space, 1);
    space->disk = disk;
    pthread_mutex_init(&space->mutex, NULL);
    return space;
}

void export_space_destroy(struct export_space *space)
{
    if (!space)
        return;
    pthread_mutex_destroy(&space->mutex);
    mem_free(space);
}

void export_space_begin(struct export_file *file)
{
    struct export_space *space = file->space;
    pthread_mutex_lock(&space->mutex);
    file->bytes = 0;
    file->previous = NULL;
    file->next = space->first;
    if (file->next)
        file->next->previous = file;
    space->first = file;
    pthread_mutex_unlock(&space->mutex);
}

void export_space_end(struct export_file *file)
{
    struct export_space *space = file->space;
    pthread_mutex_lock(&space->mutex);
    if (file->previous)
        file->previous->next = file->next;
    else
        space->first = file->next;
    if (file->next)
        file->next->previous = file->previous;
    pthread_mutex_unlock(&space->mutex);
}

static void set_bytes(struct export_file *file, uint64_t bytes)
{
    pthread_mutex_lock(&file->space->mutex);
    file->bytes = bytes;
    pthread_mutex_unlock(&file->space->mutex);
}

static enum err_code fail_busy(struct err *err, const char *what)
{
    err_set(err, ERR_BUSY,
            "%s: select fewer series or a shorter time, or try again when they have been read",
            what);
    err->retry_after_s = RETRY_S;
    return ERR_BUSY;
}

/* Counts the bytes for the file if its team and all teams may have them. */
static enum err_code charge(struct export_file *file, uint64_t bytes, struct err *err)
{
    struct export_space *space = file->space;
    const uint64_t most = disk_total_bytes(space->disk) / DISK_SHARE;
    uint64_t all = bytes, of_team = bytes;
    if (bytes > most / TEAM_SHARE)
        return err_set(err, ERR_TOO_LARGE,
                       "the export has more than %" PRIu64
                       " bytes, which is all that the server's disk has for the exports of a team: "
                       "select fewer series or a shorter time, and export the rest separately",
                       most / TEAM_SHARE);
    pthread_mutex_lock(&space->mutex);
    for (const struct export_file *other = space->first; other; other = other->next) {
        if (other == file)
            continue;
        all += other->bytes;
        of_team += other->tenant_id == file->tenant_id ? other->bytes : 0;
    }
    const bool fits_team = of_team <= most / TEAM_SHARE, fits = fits_team && all <= most;
    if (fits)
        file->bytes = bytes;
    pthread_mutex_unlock(&space->mutex);
    if (fits)
        return ERR_NONE;
    return fail_busy(err, fits_team ? "exports of other teams that their clients still read take "
                                      "the space for exports"
                                    : "exports that the team's clients still read take the space "
                                      "for exports of a team");
}

enum err_code export_space_extend(struct export_file *file, uint64_t bytes, struct err *err)
{
    const uint64_t before = file->bytes;
    enum err_code code = charge(file, bytes, err);
    if (code)
        return code;
    code = disk_allocate(file->space->disk, file->fd, bytes, RESERVE_COUNT, err);
    if (code)
        set_bytes(file, before);
    if (code == ERR_LIMIT) {
        err_set(err, ERR_BUSY,
                "the server's disk has no space for an export now: select fewer series or a "
                "shorter time, or try again later");
        err->retry_after_s = RETRY_S;
        return ERR_BUSY;
    }
    return code;
}

enum err_code export_space_trim(struct export_file *file, uint64_t bytes, struct err *err)
{
    if (ftruncate(file->fd, (off_t)bytes) != 0)
        return err_set_errno(err, ERR_IO, "freeing the rest of the file of an export");
    set_bytes(file, bytes);
    return ERR_NONE;
}
