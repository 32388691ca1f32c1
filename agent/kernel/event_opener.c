#include "agent/kernel/event_opener.h"

#include "agent/kernel/perf_event.h"
#include "agent/process/capabilities.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct event_opener {
    pid_t pid;
    int fd; /* the socket between the two processes */
};

struct request {
    bool is_sampler; /* otherwise the event records process events (perf_event_open_sideband) */
    bool has_build_ids;
    uint32_t cpu, hz;
    enum event_kind kind;
};

/* The control message that carries one descriptor. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static int open_here(const struct request *request)
{
    return request->is_sampler ? perf_event_open_sampler(request->cpu, request->hz, request->kind)
                               : perf_event_open_sideband(request->cpu, request->has_build_ids);
}

/* ---- the opener ---- */

/* Sends error (0: none) and the descriptor, if there is one. */
static bool send_result(int socket, int error, int fd)
{
    union control control = {0};
    struct iovec piece = {.iov_base = &error, .iov_len = sizeof(error)};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof(error);
}

/* Calls only async-signal-safe functions: other threads of the parent may have held locks at the
 * fork. Ignores the signals that ask the agent to stop, which a terminal or a service manager also
 * sends to this process: the parent ends it after its last request. */
static _Noreturn void serve(int socket)
{
    struct request request;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "opener");
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (!capabilities_keep(CAPABILITY_BIT(CAPABILITY_PERFMON)))
        _exit(1);
    while (recv(socket, &request, sizeof(request), 0) == sizeof(request)) {
        const int fd = open_here(&request);
        const bool is_sent = send_result(socket, fd < 0 ? errno : 0, fd);
        os_close(fd);
        if (!is_sent)
            break;
    }
    _exit(0);
}

/* ---- the parent ---- */

/* clone without SIGCHLD: wait(2) without __WALL or __WCLONE ignores this child, so calls that wait
 * for other children do not return it. */
struct event_opener *event_opener_start(void)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return NULL;
    const pid_t pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        dup2(fds[1], STDIN_FILENO);
        syscall(SYS_close_range, 1U, ~0U, 0U);
        serve(STDIN_FILENO);
    }
    os_close(fds[1]);
    if (pid < 0) {
        os_close(fds[0]);
        return NULL;
    }
    struct event_opener *opener = mem_new(struct event_opener, 1);
    *opener = (struct event_opener){.pid = pid, .fd = fds[0]};
    return opener;
}

void event_opener_stop(struct event_opener *opener)
{
    if (!opener)
        return;
    os_close(opener->fd);
    kill(opener->pid, SIGKILL);
    waitpid(opener->pid, NULL, __WALL);
    mem_free(opener);
}

static int receive_result(int socket)
{
    int error = EIO, fd = -1;
    union control control = {0};
    struct iovec piece = {.iov_base = &error, .iov_len = sizeof(error)};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t size;
    do
        size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    const struct cmsghdr *header = size == sizeof(error) ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    errno = error ? error : EIO;
    return fd;
}

static int open_event(const struct event_opener *opener, const struct request *request)
{
    const int fd = open_here(request);
    if (fd >= 0 || !opener || (errno != EACCES && errno != EPERM))
        return fd;
    if (send(opener->fd, request, sizeof(*request), MSG_NOSIGNAL) != sizeof(*request))
        return -1;
    return receive_result(opener->fd);
}

int event_opener_sampler(struct event_opener *opener, uint32_t cpu, uint32_t hz,
                         enum event_kind kind)
{
    return open_event(opener,
                      &(struct request){.is_sampler = true, .cpu = cpu, .hz = hz, .kind = kind});
}

int event_opener_sideband(struct event_opener *opener, uint32_t cpu, bool has_build_ids)
{
    return open_event(opener, &(struct request){.cpu = cpu, .has_build_ids = has_build_ids});
}
