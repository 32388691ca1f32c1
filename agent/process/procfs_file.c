#include "agent/process/procfs_file.h"

#include "lib/base/err.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PIECE_BYTES = 16 << 10 };

static enum err_code code_of_errno(void)
{
    switch (errno) {
    case ENOENT:
    case ESRCH:
        return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
        return ERR_FORBIDDEN;
    default:
        return ERR_IO;
    }
}

enum err_code procfs_file_read_fd(int fd, const char *name, struct buf *text, struct err *err)
{
    char piece[PIECE_BYTES];
    for (;;) {
        const ssize_t size = read(fd, piece, sizeof(piece));
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return err_set_errno(err, code_of_errno(), "reading %s", name);
        if (size == 0)
            return ERR_NONE;
        buf_append(text, piece, (size_t)size);
        if (buf_failed(text))
            return err_set(err, ERR_TOO_LARGE, "%s is longer than %zu bytes", name, text->max_size);
    }
}

enum err_code procfs_file_read(const char *path, struct buf *text, struct err *err)
{
    fd_auto fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0)
        return err_set_errno(err, code_of_errno(), "opening %s", path);
    return procfs_file_read_fd(fd, path, text, err);
}
