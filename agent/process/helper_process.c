#include "agent/process/helper_process.h"

#include "agent/process/capabilities.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHECK_MS = 1000,
    BLOCKED_CHECKS = 3, /* this many checks in a row have to find the helper blocked */
    ABANDONED_MAX = 8,  /* abandoned helpers that have not ended; then no call is made */
    REFUSED_MAX = 16,   /* refused owners that are remembered; a further one replaces the oldest */
    REFUSED_S = 600
};

/* No process of the owner is read until this time. */
struct refusal {
    uint64_t owner;
    int64_t until_ns;
};

static struct {
    pthread_mutex_t mutex; /* guards the members below */
    pid_t checked;         /* the process for which is_privileged was determined */
    bool is_privileged;
    pid_t parent;  /* the process that started the helper: a fork has none */
    pid_t pid;     /* the helper; 0: there is none */
    int processor; /* on which it runs */
    int fd;
    uint8_t *buffer;        /* shared with the helper */
    uint8_t *direct_buffer; /* of calls without a helper; allocated by the first one */
    pid_t abandoned[ABANDONED_MAX];
    struct refusal refusals[REFUSED_MAX];
    uint32_t next_refusal;
} helper = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- the helper ---- */

/* Sends the result and the file descriptor, which is closed here. */
static bool send_result(int socket, int64_t result, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec piece = {.iov_base = &result, .iov_len = sizeof(result)};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    const bool is_sent = sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof(result);
    os_close(fd);
    return is_sent;
}

/* Calls only async-signal-safe functions: other threads of the parent may have held locks. */
static _Noreturn void serve(int fd, uint8_t *buffer)
{
    helper_process_function *function; /* the addresses of a fork are those of its parent */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "helper");
    /* A terminal sends these signals to the whole process group. The parent handles them, and this
     * process ends with its parent. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    while (recv(fd, &function, sizeof(function), 0) == sizeof(function)) {
        int opened = -1;
        const int64_t result = function(buffer, &opened);
        if (!send_result(fd, result, opened))
            break;
    }
    _exit(0);
}

/* ---- the parent ---- */

static void reap_abandoned(void)
{
    for (int i = 0; i < ABANDONED_MAX; i++)
        if (helper.abandoned[i] && waitpid(helper.abandoned[i], NULL, WNOHANG | __WALL) != 0)
            helper.abandoned[i] = 0;
}

/* The helper has no exit signal, so wait(2) calls for other children do not return it. */
static bool start_helper(void)
{
    int fds[2];
    uint8_t *buffer =
        mmap(NULL, HELPER_PROCESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        return false;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
        munmap(buffer, HELPER_PROCESS_BYTES);
        return false;
    }
    const pid_t pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        dup2(fds[1], STDIN_FILENO);
        syscall(SYS_close_range, 1U, ~0U, 0U);
        serve(STDIN_FILENO, buffer);
    }
    os_close(fds[1]);
    if (pid < 0) {
        os_close(fds[0]);
        munmap(buffer, HELPER_PROCESS_BYTES);
        return false;
    }
    helper.parent = getpid();
    helper.pid = pid;
    helper.processor = -1;
    helper.fd = fds[0];
    helper.buffer = buffer;
    return true;
}

static void forget_helper(void)
{
    os_close(helper.fd);
    munmap(helper.buffer, HELPER_PROCESS_BYTES);
    helper.pid = 0;
}

static bool has_helper(void)
{
    if (helper.pid && helper.parent != getpid())
        forget_helper(); /* it belongs to the process that this one was forked from */
    return helper.pid || start_helper();
}

/* Abandons a helper that is blocked in a call that may never return. It is killed, but ends only
 * when that call returns. */
static void abandon_helper(void)
{
    kill(helper.pid, SIGKILL);
    for (int i = 0; i < ABANDONED_MAX; i++)
        if (!helper.abandoned[i]) {
            helper.abandoned[i] = helper.pid;
            break;
        }
    forget_helper();
}

static bool may_abandon_another(void)
{
    int count = 0;
    reap_abandoned();
    for (int i = 0; i < ABANDONED_MAX; i++)
        count += helper.abandoned[i] != 0;
    return count < ABANDONED_MAX;
}

static uint64_t find_responsible(const struct helper_process_call *call)
{
    return call->process_id ? call->find_owner(call->process_id) : call->user_id;
}

/* Looks up the owner only while some owner is refused. */
static bool is_refused(const struct helper_process_call *call)
{
    const int64_t now_ns = clock_monotonic_ns();
    uint64_t owner = 0;
    bool is_known = false;
    for (int i = 0; i < REFUSED_MAX; i++) {
        if (helper.refusals[i].until_ns <= now_ns)
            continue;
        owner = is_known ? owner : find_responsible(call);
        is_known = true;
        if (helper.refusals[i].owner == owner)
            return true;
    }
    return false;
}

static void refuse_call(const struct helper_process_call *call)
{
    const uint64_t owner = find_responsible(call);
    helper.refusals[helper.next_refusal++ % REFUSED_MAX] = (struct refusal){
        .owner = owner, .until_ns = clock_monotonic_ns() + REFUSED_S * CLOCK_NS_PER_S};
    log_event(
        LOG_WARN,
        "reading a file or the memory of a process does not end: nothing is read for its owner "
        "for ten minutes",
        "pid=%u owner=%llu", call->process_id, (unsigned long long)owner);
}

/* Whether the helper waits in the kernel; false also while it waits for a processor. */
static bool is_helper_blocked(void)
{
    char path[40], text[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)helper.pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    const ssize_t size = read(fd, text, sizeof(text) - 1);
    os_close(fd);
    text[size > 0 ? size : 0] = '\0';
    const char *state = strrchr(text, ')'); /* "pid (name) S …" */
    return !state || state[1] != ' ' || state[2] != 'R';
}

static bool receive_result(int64_t *ret_result, int *ret_fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec piece = {.iov_base = ret_result, .iov_len = sizeof(*ret_result)};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    if (recvmsg(helper.fd, &message, MSG_CMSG_CLOEXEC) != sizeof(*ret_result))
        return false;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
    return true;
}

/* Waits for the result. False: the helper is blocked, or has ended. */
static bool wait_for_result(int64_t *ret_result, int *ret_fd, bool *ret_is_blocked)
{
    *ret_is_blocked = false;
    struct pollfd poll_fd = {.fd = helper.fd, .events = POLLIN};
    for (int blocked = 0; blocked < BLOCKED_CHECKS;) {
        const int ready = poll(&poll_fd, 1, CHECK_MS);
        if (ready > 0)
            return receive_result(ret_result, ret_fd);
        if (ready < 0 && errno == EINTR)
            continue;
        blocked = is_helper_blocked() ? blocked + 1 : 0;
    }
    *ret_is_blocked = true;
    return false;
}

/* Without this right the programs of other users cannot be read at all, and those of the own user
 * only by an ancestor (Yama), which the helper is not. */
static bool is_privileged(void)
{
    const pid_t self = getpid();
    if (helper.checked != self)
        helper.is_privileged = capabilities_effective() & CAPABILITY_BIT(CAPABILITY_SYS_PTRACE);
    helper.checked = self;
    return helper.is_privileged;
}

/* Keeps the helper on the processor of the caller, which waits for it: a call takes 4 us then, and
 * 50 where the wake-up has to reach another processor. */
static void move_to_caller(void)
{
    cpu_set_t processors;
    const int number = sched_getcpu();
    if (number < 0 || number >= CPU_SETSIZE || number == helper.processor)
        return;
    CPU_ZERO(&processors);
    CPU_SET((unsigned)number, &processors);
    (void)sched_setaffinity(helper.pid, sizeof(processors), &processors);
    helper.processor = number;
}

static size_t count_copied(const struct helper_process_call *call, int64_t result)
{
    const size_t found = result > 0 ? (size_t)result : 0;
    return found < call->data_bytes ? found : call->data_bytes;
}

/* The caller holds the mutex. */
static int64_t call_helper(const struct helper_process_call *call, int *ret_fd)
{
    int64_t result = -1;
    bool is_blocked;
    if (is_refused(call) || !may_abandon_another() || !has_helper())
        return -1;
    move_to_caller();
    memcpy(helper.buffer, call->arguments, call->argument_bytes);
    if (send(helper.fd, &call->function, sizeof(call->function), MSG_NOSIGNAL) !=
        sizeof(call->function)) {
        abandon_helper(); /* it was killed: the next call starts another */
        return -1;
    }
    if (!wait_for_result(&result, ret_fd, &is_blocked)) {
        abandon_helper();
        if (is_blocked)
            refuse_call(call);
        return -1;
    }
    if (call->data)
        memcpy(call->data, helper.buffer, count_copied(call, result));
    return result;
}

/* The caller holds the mutex. */
static int64_t call_directly(const struct helper_process_call *call, int *ret_fd)
{
    if (!helper.direct_buffer)
        helper.direct_buffer = mem_alloc(HELPER_PROCESS_BYTES, 1);
    memcpy(helper.direct_buffer, call->arguments, call->argument_bytes);
    const int64_t result = call->function(helper.direct_buffer, ret_fd);
    if (call->data)
        memcpy(call->data, helper.direct_buffer, count_copied(call, result));
    return result;
}

int64_t helper_process_call(const struct helper_process_call *call, int *ret_fd)
{
    int ignored = -1;
    int *fd = ret_fd ? ret_fd : &ignored;
    *fd = -1;
    pthread_mutex_lock(&helper.mutex);
    const int64_t result = is_privileged() ? call_helper(call, fd) : call_directly(call, fd);
    pthread_mutex_unlock(&helper.mutex);
    return result;
}
