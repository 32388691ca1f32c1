#include "cli/record/record_output.h"

#include "cli/save.h"
#include "cli/terminal.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NAME_BYTES = 64 };
#define SUFFIX ".pb.gz"

static enum err_code refuse_path(const char *path, int error, struct err *err)
{
    return err_set(err, ERR_IO, "writing %s: %s; give another file with -o", path, strerror(error));
}

/* Creates and removes a file in the folder, because permissions are not sufficient: root has all of
 * them on /proc. */
static enum err_code try_new_file(const char *path, struct arena *arena, struct err *err)
{
    struct save save;
    const enum err_code code = save_open(path, true, arena, &save, err);
    if (code)
        return refuse_path(path, errno, err);
    save_close(&save);
    return ERR_NONE;
}

enum err_code record_output_try(const char *path, struct arena *arena, struct err *err)
{
    struct stat status;
    const char *slash = strrchr(path, '/');
    if (strcmp(path, "-") == 0)
        return ERR_NONE;
    if (slash) {
        const char *folder = arena_strndup(arena, path, (size_t)(slash - path) + 1);
        if (access(folder, F_OK))
            return err_set_errno(err, ERR_NOT_FOUND, "%s", folder);
    }
    if (stat(path, &status) || S_ISREG(status.st_mode))
        return try_new_file(path, arena, err);
    if (S_ISDIR(status.st_mode))
        return refuse_path(path, EISDIR, err);
    /* Only checks access: opening and closing a pipe would signal the end to its reader. */
    return access(path, W_OK) ? refuse_path(path, errno, err) : ERR_NONE;
}

/* Creates a new file with a random name, readable by this user only, because other users may write
 * to /tmp. */
static enum err_code keep_in(const char *folder, const char *name, struct span bytes,
                             struct arena *arena, const char **ret_path, struct err *err)
{
    char *path = arena_printf(arena, "%s%s%s-XXXXXX" SUFFIX, folder, folder[0] ? "/" : "", name);
    const int fd = mkostemps(path, sizeof(SUFFIX) - 1, O_CLOEXEC);
    enum err_code code = ERR_NONE;
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "writing %s", path);
    if (os_write_all(fd, bytes.data, bytes.size) || os_fsync(fd))
        code = err_set_errno(err, ERR_IO, "writing %s", path);
    if (code)
        unlink(path);
    else
        *ret_path = path;
    os_close(fd);
    return code;
}

bool record_output_keep(struct terminal *terminal, struct arena *arena, struct span bytes)
{
    const char *const folders[] = {"", getenv("TMPDIR"), "/tmp"};
    const size_t count = sizeof(folders) / sizeof(*folders);
    const time_t seconds = (time_t)(clock_wall_ns() / CLOCK_NS_PER_S);
    char name[NAME_BYTES];
    const char *path = NULL;
    struct err why;
    struct tm now;
    strftime(name, sizeof(name), "profile-%Y%m%d-%H%M%S", localtime_r(&seconds, &now));
    for (size_t i = 0; !path && i < count; i++) {
        const bool is_set = i == 0 || (folders[i] && folders[i][0]);
        if (is_set && keep_in(folders[i], name, bytes, arena, &path, &why))
            terminal_warn(terminal, "%s", why.message);
    }
    if (path && terminal->is_quiet) /* notes are not printed */
        terminal_warn(terminal, "saved as %s: `perfolio push %s' shares it", path, path);
    else if (path)
        terminal_note(terminal, "saved as %s: `perfolio push %s' shares it", path, path);
    return path != NULL;
}
