#include "agent/process/memory_reader.h"

#include "agent/process/capabilities.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAGE_BYTES = 4096,
    PIECES_MAX = MEMORY_READER_MAX_BYTES / PAGE_BYTES + 1,
    CHECK_MS = 1000,
    BLOCKED_CHECKS = 3, /* this many checks in a row have to find the helper blocked */
    ABANDONED_MAX = 8,
    REFUSED_MAX = 16,
    REFUSED_S = 600
};

struct request {
    uint32_t process_id;
    uint64_t address;
    uint64_t bytes;
};

/* Users whose processes are not read until a time. */
struct refusal {
    uid_t user_id;
    int64_t until_ns;
};

static struct {
    pthread_mutex_t mutex; /* guards the members below */
    pid_t checked;         /* the process of which is_privileged was found out */
    bool is_privileged;
    pid_t parent; /* the process that started the helper: a fork has none */
    pid_t helper; /* 0: none */
    int fd;
    uint8_t *buffer; /* shared with the helper */
    pid_t abandoned[ABANDONED_MAX];
    struct refusal refusals[REFUSED_MAX];
    uint32_t next_refusal;
} reader = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- the helper ---- */

static size_t read_memory(const struct request *request, uint8_t *to)
{
    /* A transfer ends at the first piece that cannot be read whole: pieces end with pages. */
    struct iovec pieces[PIECES_MAX];
    size_t count = 0, sum = 0;
    while (sum < request->bytes && count < PIECES_MAX &&
           request->address + sum >= request->address) {
        const uint64_t at = request->address + sum;
        const size_t in_page = PAGE_BYTES - (size_t)(at % PAGE_BYTES);
        const size_t left = (size_t)request->bytes - sum;
        const size_t piece = left < in_page ? left : in_page;
        pieces[count++] = (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = piece};
        sum += piece;
    }
    const struct iovec local = {.iov_base = to, .iov_len = sum};
    const ssize_t got = process_vm_readv((pid_t)request->process_id, &local, 1, pieces, count, 0);
    return got > 0 ? (size_t)got : 0;
}

/* Calls only async-signal-safe functions: other threads of the parent may have held locks. */
static _Noreturn void serve(int fd, uint8_t *buffer)
{
    struct request request;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "memory-reader");
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the parent, whose end is noticed */
    while (recv(fd, &request, sizeof(request), 0) == sizeof(request)) {
        const size_t got = read_memory(&request, buffer);
        if (send(fd, &got, sizeof(got), MSG_NOSIGNAL) != sizeof(got))
            break;
    }
    _exit(0);
}

/* ---- the parent ---- */

static void reap_abandoned(void)
{
    for (int i = 0; i < ABANDONED_MAX; i++)
        if (reader.abandoned[i] && waitpid(reader.abandoned[i], NULL, WNOHANG | __WALL) != 0)
            reader.abandoned[i] = 0;
}

/* Without an exit signal: callers that wait for other children do not see it. */
static bool start_helper(void)
{
    int fds[2];
    uint8_t *buffer = mmap(NULL, MEMORY_READER_MAX_BYTES, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        return false;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
        munmap(buffer, MEMORY_READER_MAX_BYTES);
        return false;
    }
    const pid_t helper = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
    if (helper == 0) {
        dup2(fds[1], STDIN_FILENO);
        syscall(SYS_close_range, 1U, ~0U, 0U);
        serve(STDIN_FILENO, buffer);
    }
    os_close(fds[1]);
    if (helper < 0) {
        os_close(fds[0]);
        munmap(buffer, MEMORY_READER_MAX_BYTES);
        return false;
    }
    reader.parent = getpid();
    reader.helper = helper;
    reader.fd = fds[0];
    reader.buffer = buffer;
    return true;
}

static void forget_helper(void)
{
    os_close(reader.fd);
    munmap(reader.buffer, MEMORY_READER_MAX_BYTES);
    reader.helper = 0;
}

static bool has_helper(void)
{
    if (reader.helper && reader.parent != getpid())
        forget_helper(); /* it belongs to the process that this one was forked from */
    return reader.helper || start_helper();
}

/* The helper is blocked where it can wait for ever; it ends when its wait does. */
static void abandon_helper(void)
{
    kill(reader.helper, SIGKILL);
    for (int i = 0; i < ABANDONED_MAX; i++)
        if (!reader.abandoned[i]) {
            reader.abandoned[i] = reader.helper;
            break;
        }
    forget_helper();
}

static bool may_abandon_another(void)
{
    int count = 0;
    reap_abandoned();
    for (int i = 0; i < ABANDONED_MAX; i++)
        count += reader.abandoned[i] != 0;
    return count < ABANDONED_MAX;
}

static bool find_user(uint32_t process_id, uid_t *ret_user_id)
{
    char path[32];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%u", process_id);
    if (stat(path, &status) != 0)
        return false;
    *ret_user_id = status.st_uid;
    return true;
}

/* Looks up the user only while some user is refused. */
static bool is_refused(uint32_t process_id)
{
    const int64_t now_ns = clock_monotonic_ns();
    uid_t user_id = 0;
    bool is_known = false;
    for (int i = 0; i < REFUSED_MAX; i++) {
        if (reader.refusals[i].until_ns <= now_ns)
            continue;
        if (!is_known && !find_user(process_id, &user_id))
            return true;
        is_known = true;
        if (reader.refusals[i].user_id == user_id)
            return true;
    }
    return false;
}

static void refuse_user_of(uint32_t process_id)
{
    uid_t user_id;
    if (!find_user(process_id, &user_id))
        return;
    reader.refusals[reader.next_refusal++ % REFUSED_MAX] = (struct refusal){
        .user_id = user_id, .until_ns = clock_monotonic_ns() + REFUSED_S * CLOCK_NS_PER_S};
    log_event(LOG_WARN,
              "reading the memory of a process does not end: interpreters of its user are not read "
              "for ten minutes",
              "pid=%u uid=%u", process_id, (unsigned)user_id);
}

/* Whether the helper waits in the kernel; false also while it waits for a processor. */
static bool is_helper_blocked(void)
{
    char path[40], text[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)reader.helper);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    const ssize_t size = read(fd, text, sizeof(text) - 1);
    os_close(fd);
    text[size > 0 ? size : 0] = '\0';
    const char *state = strrchr(text, ')'); /* "pid (name) S …" */
    return !state || state[1] != ' ' || state[2] != 'R';
}

/* Waits for the result. False: the helper is blocked or has ended. */
static bool wait_for_result(size_t *ret_got)
{
    struct pollfd poll_fd = {.fd = reader.fd, .events = POLLIN};
    for (int blocked = 0; blocked < BLOCKED_CHECKS;) {
        const int ready = poll(&poll_fd, 1, CHECK_MS);
        if (ready > 0)
            return recv(reader.fd, ret_got, sizeof(*ret_got), 0) == sizeof(*ret_got);
        if (ready < 0 && errno == EINTR)
            continue;
        blocked = is_helper_blocked() ? blocked + 1 : 0;
    }
    return false;
}

/* Without this right the programs of other users cannot be read at all, and those of the own user
 * only by an ancestor (Yama), which the helper is not. */
static bool is_privileged(void)
{
    const pid_t self = getpid();
    if (reader.checked != self)
        reader.is_privileged = capabilities_effective() & CAPABILITY_BIT(CAPABILITY_SYS_PTRACE);
    reader.checked = self;
    return reader.is_privileged;
}

/* The caller holds the mutex. */
static size_t read_locked(const struct request *request, void *to)
{
    size_t got = 0;
    if (!may_abandon_another() || !has_helper())
        return 0;
    if (send(reader.fd, request, sizeof(*request), MSG_NOSIGNAL) != sizeof(*request)) {
        abandon_helper();
        return 0;
    }
    if (!wait_for_result(&got)) {
        abandon_helper();
        refuse_user_of(request->process_id);
        return 0;
    }
    memcpy(to, reader.buffer, got);
    return got;
}

size_t memory_reader_read(uint32_t process_id, uint64_t address, void *to, size_t size)
{
    const struct request request = {
        .process_id = process_id,
        .address = address,
        .bytes = size < MEMORY_READER_MAX_BYTES ? size : MEMORY_READER_MAX_BYTES};
    size_t got = 0;
    pthread_mutex_lock(&reader.mutex);
    const bool uses_helper = is_privileged();
    if (uses_helper && !is_refused(process_id))
        got = read_locked(&request, to);
    pthread_mutex_unlock(&reader.mutex);
    return uses_helper ? got : read_memory(&request, to);
}
