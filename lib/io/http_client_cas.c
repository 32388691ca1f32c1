#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/io/http_client.h"

#include <errno.h>
#include <stdio.h>

enum { CA_PIECE_BYTES = 64 << 10 };

/* Appends a file; returns false and sets errno when it cannot be read. */
static bool append_file(struct buf *buf, const char *path)
{
    FILE *file = fopen(path, "re");
    uint8_t *space;
    if (!file)
        return false;
    while ((space = buf_reserve(buf, CA_PIECE_BYTES))) {
        const size_t size = fread(space, 1, CA_PIECE_BYTES, file);
        buf_commit(buf, size);
        if (size == 0)
            break;
    }
    const bool is_read = !ferror(file);
    const int error = errno;
    fclose(file);
    errno = error;
    return is_read;
}

enum err_code http_client_join_cas(const char *system_file, const char *ca_file,
                                   struct buf *ret_cas, struct err *err)
{
    if (system_file && !append_file(ret_cas, system_file))
        buf_clear(ret_cas);
    if (ret_cas->size)
        buf_append_byte(ret_cas, '\n');
    if (!append_file(ret_cas, ca_file))
        return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                             "reading the CA file %s", ca_file);
    if (buf_failed(ret_cas))
        return err_set(err, ERR_TOO_LARGE,
                       "the CA file %s and the system's CAs are larger than %zu MiB together",
                       ca_file, ret_cas->max_size >> 20);
    return ERR_NONE;
}
