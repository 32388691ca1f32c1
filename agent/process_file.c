#include "agent/process_file.h"

#include "lib/base/os.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LINK_BYTES = 80 };

/* As it is, or -1 and closed. */
static int only_regular(int fd)
{
    struct stat status;
    if (fd >= 0 && (fstat(fd, &status) || !S_ISREG(status.st_mode))) {
        os_close(fd);
        return -1;
    }
    return fd;
}

int process_file_open(uint32_t process_id, struct span path)
{
    char root[LINK_BYTES], name[PATH_BYTES];
    if (path.size == 0 || path.size >= sizeof(name) || path.data[0] != '/')
        return -1;
    memcpy(name, path.data, path.size);
    name[path.size] = 0;
    snprintf(root, sizeof(root), "/proc/%" PRIu32 "/root", process_id);
    fd_auto root_fd = os_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0);
    if (root_fd < 0)
        return -1;
    const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return only_regular((int)syscall(SYS_openat2, root_fd, name, &how, sizeof(how)));
}

int process_file_open_mapping(uint32_t process_id, uint64_t start, uint64_t limit)
{
    char path[LINK_BYTES];
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, process_id,
             start, limit);
    return only_regular(os_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0));
}

bool process_file_is_trusted(uint32_t process_id, int fd)
{
    char path[LINK_BYTES];
    struct stat file, process;
    snprintf(path, sizeof(path), "/proc/%" PRIu32, process_id);
    return fstat(fd, &file) == 0 &&
           (file.st_uid == 0 || (stat(path, &process) == 0 && process.st_uid == file.st_uid));
}
