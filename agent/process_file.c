#include "agent/process_file.h"

#include "agent/proc_text.h"
#include "agent/small_file.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LINK_BYTES = 80, STATUS_MAX_BYTES = 16384 };

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

/* Below the process's root, or ours where process_id is 0. */
static int open_below(uint32_t process_id, struct span path, uint64_t flags)
{
    char root[LINK_BYTES] = "/", name[PATH_BYTES];
    if (path.size == 0 || path.size >= sizeof(name) || path.data[0] != '/')
        return -1;
    memcpy(name, path.data, path.size);
    name[path.size] = 0;
    if (process_id)
        snprintf(root, sizeof(root), "/proc/%" PRIu32 "/root", process_id);
    fd_auto root_fd = os_openat(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0);
    if (root_fd < 0)
        return -1;
    const struct open_how how = {.flags = flags | O_CLOEXEC,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root_fd, name, &how, sizeof(how));
}

int process_file_open(uint32_t process_id, struct span path)
{
    return only_regular(open_below(process_id, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
}

int process_file_open_written(uint32_t process_id, uint32_t user_id, struct span path)
{
    char link[LINK_BYTES];
    struct stat status;
    /* Looked at before it is opened, which means something for some files. */
    fd_auto fd = only_regular(open_below(process_id, path, O_PATH | O_NOFOLLOW));
    if (fd < 0 || fstat(fd, &status) || status.st_uid != user_id)
        return -1;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return os_openat(AT_FDCWD, link, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

int process_file_open_mapping(uint32_t process_id, uint64_t start, uint64_t limit)
{
    char path[LINK_BYTES];
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, process_id,
             start, limit);
    return only_regular(os_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0));
}

bool process_file_has_ended(uint32_t process_id)
{
    char path[LINK_BYTES], target[1];
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/exe", process_id);
    /* Also of one that nobody has waited for yet. */
    return readlink(path, target, sizeof(target)) < 0 && (errno == ENOENT || errno == ESRCH);
}

uint64_t process_file_owner(uint32_t process_id)
{
    char path[LINK_BYTES];
    struct err ignored;
    uint32_t user = 0, effective;
    buf_auto text;
    buf_init(&text, STATUS_MAX_BYTES);
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", process_id);
    const bool is_user = !small_file_read(path, &text, &ignored) &&
                         proc_text_users(buf_span(&text), &user, &effective) && user != 0;
    return is_user ? user : UINT64_C(1) << 32 | process_id;
}
