#include "cli/save.h"

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err_code refuse_existing(const char *path, struct err *err)
{
    return err_set(err, ERR_CONFLICT, "%s already exists: use --force to replace it", path);
}

/* The mode that a new file gets by umask; mkostemp creates it with 0600. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* Signals are blocked until the handler has the file's name. */
static int open_temporary(char *path)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    int fd = mkostemp(path, O_CLOEXEC);
    int failure = errno;
    interrupt_set_file(fd < 0 ? NULL : path);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = failure;
    return fd;
}

enum err_code save_open(const char *path, bool is_forced, struct arena *arena,
                        struct save *ret_save, struct err *err)
{
    struct save save = {.path = path, .fd = STDOUT_FILENO, .is_forced = is_forced};
    struct stat status;
    if (strcmp(path, "-") == 0) {
        *ret_save = save;
        return ERR_NONE;
    }
    bool is_there = stat(path, &status) == 0;
    if (is_there && !S_ISREG(status.st_mode)) { /* /dev/null or a pipe: nothing is replaced */
        save.fd = open(path, O_WRONLY | O_CLOEXEC);
    } else if (is_there && !is_forced) {
        return refuse_existing(path, err);
    } else {
        save.temporary = arena_printf(arena, "%s.XXXXXX", path);
        save.fd = open_temporary(save.temporary);
    }
    if (save.fd < 0)
        return err_set_errno(err, ERR_IO, "writing %s", path);
    *ret_save = save;
    return ERR_NONE;
}

enum err_code save_commit(struct save *save, struct err *err)
{
    if (!save->temporary)
        return ERR_NONE;
    if (fchmod(save->fd, usual_mode()) || fsync(save->fd))
        return err_set_errno(err, ERR_IO, "writing %s", save->path);
    /* link() fails if the name exists by now; rename() would replace the file. */
    bool is_done = save->is_forced ? rename(save->temporary, save->path) == 0
                                   : link(save->temporary, save->path) == 0;
    if (!is_done && errno == EEXIST)
        return refuse_existing(save->path, err);
    if (!is_done && !save->is_forced && (errno == EPERM || errno == EOPNOTSUPP))
        is_done = rename(save->temporary, save->path) == 0; /* no links on this file system */
    if (!is_done)
        return err_set_errno(err, ERR_IO, "writing %s", save->path);
    return ERR_NONE;
}

void save_close(struct save *save)
{
    if (save->temporary) {
        unlink(save->temporary);
        interrupt_set_file(NULL);
        close(save->fd);
    } else if (save->fd > STDERR_FILENO) {
        close(save->fd);
    }
    *save = (struct save){.fd = -1};
}

enum err_code save_bytes(struct span bytes, const char *path, bool is_forced, struct err *err)
{
    arena_auto arena = arena_create();
    struct save save;
    enum err_code code = save_open(path, is_forced, arena, &save, err);
    if (code)
        return code;
    while (bytes.size) {
        ssize_t written = write(save.fd, bytes.data, bytes.size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            err_set_errno(err, ERR_IO, "writing %s", path);
            code = cli_check_reader(save.fd, err);
            break;
        }
        bytes = span_of(bytes.data + written, bytes.size - (size_t)written);
    }
    if (!code)
        code = save_commit(&save, err);
    save_close(&save);
    return code;
}
