#include "api/http_tcp.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

bool http_tcp_progress(int fd, uint64_t *ret_received, uint64_t *ret_acked)
{
    struct tcp_info info;
    memset(&info, 0, sizeof(info));
    socklen_t size = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received))
        return false;
    *ret_received = info.tcpi_bytes_received;
    *ret_acked = info.tcpi_bytes_acked;
    return true;
}

bool http_tcp_has_ended(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLRDHUP};
    return poll(&poll_fd, 1, 0) > 0;
}
