#include "agent/process/process_file.h"

#include "agent/process/helper_process.h"
#include "agent/process/proc_text.h"
#include "agent/process/procfs_file.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    PATH_BYTES = 4096,
    LINK_BYTES = 80,
    STATUS_MAX_BYTES = 1 << 20, /* with 65,536 groups, the most there can be, the file has 720 KB */
};

/* Owners from here on are processes of root: this, plus the process number. Users are below. */
#define OWNER_PROCESS (UINT64_C(1) << 32)

/* Whether the file is stored on a file system. Files that the kernel generates are regular too, and
 * reading one may have effects (/proc/kmsg, trace_pipe). Most of them have size 0; those of the
 * file systems below may have another size. A file of a FUSE file system may never be read. */
static bool is_stored(int fd, const struct stat *status)
{
    struct statfs system;
    return S_ISREG(status->st_mode) && status->st_size > 0 && fstatfs(fd, &system) == 0 &&
           system.f_type != PROC_SUPER_MAGIC && system.f_type != SYSFS_MAGIC &&
           system.f_type != DEBUGFS_MAGIC && system.f_type != TRACEFS_MAGIC &&
           system.f_type != FUSE_SUPER_MAGIC;
}

/* Only the low half of the inode is compared, because overlayfs may put the number of a layer in
 * the high half; its devices differ from those of mappings, too. */
static bool is_inode(uint64_t inode, const struct stat *status)
{
    return inode == 0 || (uint32_t)inode == (uint32_t)status->st_ino;
}

/* Opens the file that path_fd (O_PATH) refers to: the file that was inspected, even if its path
 * leads to another one by now. */
static int open_itself(int path_fd)
{
    char link[LINK_BYTES];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
    return os_openat(AT_FDCWD, link, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

/* Opens path with O_PATH below the root of the process, or below ours if process_id is 0. */
static int find_below(uint32_t process_id, struct span path, uint64_t flags)
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
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root_fd, name, &how, sizeof(how));
}

/* ---- in the helper process: each of these calls may wait for a FUSE file system ---- */

struct file_request {
    uint32_t process_id;
    uint32_t user_id;
    uint64_t inode;
    uint64_t start, limit; /* the addresses of a mapping */
    size_t path_bytes;
    char path[PATH_BYTES];
};

static int64_t open_path(void *buffer, int *ret_fd)
{
    const struct file_request *request = buffer;
    struct stat status;
    fd_auto fd = find_below(request->process_id, span_of(request->path, request->path_bytes), 0);
    if (fd >= 0 && fstat(fd, &status) == 0 && is_stored(fd, &status) &&
        is_inode(request->inode, &status))
        *ret_fd = open_itself(fd);
    return 0;
}

static int64_t open_written(void *buffer, int *ret_fd)
{
    const struct file_request *request = buffer;
    struct stat status;
    fd_auto fd =
        find_below(request->process_id, span_of(request->path, request->path_bytes), O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, &status) == 0 && is_stored(fd, &status) &&
        status.st_uid == request->user_id)
        *ret_fd = open_itself(fd);
    return 0;
}

static int64_t open_mapping(void *buffer, int *ret_fd)
{
    const struct file_request *request = buffer;
    char path[LINK_BYTES];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64,
             request->process_id, request->start, request->limit);
    fd_auto fd = os_openat(AT_FDCWD, path, O_PATH, 0);
    if (fd >= 0 && fstat(fd, &status) == 0 && is_stored(fd, &status))
        *ret_fd = open_itself(fd);
    return 0;
}

/* The kernel reads these files from the memory of the process. */
static int64_t read_text(void *buffer, int *ret_fd)
{
    const struct file_request *request = buffer;
    char path[LINK_BYTES];
    (void)ret_fd;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%.*s", request->process_id,
             (int)request->path_bytes, request->path);
    fd_auto fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
    int64_t sum = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && sum < HELPER_PROCESS_BYTES) {
        do
            got = read(fd, (char *)buffer + sum, (size_t)(HELPER_PROCESS_BYTES - sum));
        while (got < 0 && errno == EINTR);
        sum += got > 0 ? got : 0;
    }
    return fd < 0 || got < 0 ? -1 : sum;
}

/* ---- the interface ---- */

static int call_open(helper_process_function *function, struct file_request *request,
                     struct span path)
{
    int fd;
    if (path.size >= PATH_BYTES)
        return -1;
    if (path.size)
        memcpy(request->path, path.data, path.size);
    request->path_bytes = path.size;
    helper_process_call(&(struct helper_process_call){.function = function,
                                                      .arguments = request,
                                                      .argument_bytes = sizeof(*request),
                                                      .process_id = request->process_id,
                                                      .user_id = request->user_id,
                                                      .find_owner = process_file_owner},
                        &fd);
    return fd;
}

int process_file_open(uint32_t process_id, struct span path, uint64_t inode)
{
    struct file_request request = {.process_id = process_id, .inode = inode};
    return call_open(open_path, &request, path);
}

int process_file_open_written(uint32_t process_id, uint32_t user_id, struct span path)
{
    struct file_request request = {.process_id = process_id, .user_id = user_id};
    return call_open(open_written, &request, path);
}

int process_file_open_mapping(uint32_t process_id, uint64_t start, uint64_t limit)
{
    struct file_request request = {.process_id = process_id, .start = start, .limit = limit};
    return call_open(open_mapping, &request, (struct span){0});
}

bool process_file_read_text(uint32_t process_id, const char *name, struct buf *text)
{
    struct file_request request = {.process_id = process_id, .path_bytes = strlen(name)};
    memcpy(request.path, name, request.path_bytes);
    uint8_t *data = mem_alloc(HELPER_PROCESS_BYTES, 1);
    const int64_t size =
        helper_process_call(&(struct helper_process_call){.function = read_text,
                                                          .arguments = &request,
                                                          .argument_bytes = sizeof(request),
                                                          .process_id = process_id,
                                                          .find_owner = process_file_owner,
                                                          .data = data,
                                                          .data_bytes = HELPER_PROCESS_BYTES},
                            NULL);
    if (size > 0)
        buf_append(text, data, (size_t)size);
    mem_free(data);
    return size >= 0 && !buf_failed(text);
}

bool process_file_has_ended(uint32_t process_id)
{
    char path[LINK_BYTES], target[1];
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/exe", process_id);
    /* Also true for a zombie. */
    return readlink(path, target, sizeof(target)) < 0 && (errno == ENOENT || errno == ESRCH);
}

bool process_file_read_status(uint32_t process_id, struct buf *text)
{
    char path[LINK_BYTES];
    struct err ignored;
    buf_init(text, STATUS_MAX_BYTES);
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", process_id);
    return !procfs_file_read(path, text, &ignored);
}

/* The user who created the outermost user namespace below ours that contains the process; in it
 * that user may have thousands of user numbers (subuid(5)). 0: the process is in our namespace, or
 * root created the outermost one. */
static uint32_t user_of_namespace(uint32_t process_id)
{
    char path[LINK_BYTES];
    struct stat ours, theirs;
    uid_t user = 0;
    if (stat("/proc/self/ns/user", &ours))
        return 0;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/ns/user", process_id);
    int fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
    while (fd >= 0 && fstat(fd, &theirs) == 0 && theirs.st_ino != ours.st_ino) {
        const int parent = ioctl(fd, NS_GET_PARENT);
        if (ioctl(fd, NS_GET_OWNER_UID, &user))
            user = 0;
        os_close(fd);
        fd = parent;
    }
    const bool is_below = fd >= 0;
    os_close(fd);
    return is_below ? user : 0;
}

uint64_t process_file_owner(uint32_t process_id)
{
    uint32_t user, effective;
    buf_auto text = {0};
    if (!process_file_read_status(process_id, &text) ||
        !proc_text_users(buf_span(&text), &user, &effective))
        return OWNER_PROCESS; /* one owner for all: each would otherwise have a quota of its own */
    const uint32_t maker = user_of_namespace(process_id);
    if (maker)
        return maker;
    return user ? user : OWNER_PROCESS | process_id;
}

bool process_file_is_user(uint64_t owner)
{
    return owner && owner < OWNER_PROCESS;
}
