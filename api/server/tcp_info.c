#include "api/server/tcp_info.h"

#include <arpa/inet.h>
#include <endian.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

bool tcp_info_progress(int fd, uint64_t *ret_received, uint64_t *ret_acked)
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

bool tcp_info_has_ended(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLRDHUP};
    return poll(&poll_fd, 1, 0) > 0;
}

uint64_t tcp_info_subscriber(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    uint64_t prefix = 0;
    uint32_t number = 0;
    if (address->ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        memcpy(&prefix, &v6->sin6_addr, sizeof(prefix));
        return be64toh(prefix);
    }
    if (address->ss_family == AF_INET6)
        memcpy(&number, (const uint8_t *)&v6->sin6_addr + 12, sizeof(number));
    else if (address->ss_family == AF_INET)
        number = v4->sin_addr.s_addr;
    return ntohl(number); /* no subscriber's prefix begins with 32 zero bits: RFC 4291 */
}

uint64_t tcp_info_site(uint64_t subscriber)
{
    return subscriber >> 32 ? subscriber >> 16 : subscriber;
}

uint64_t tcp_info_site_of_text(const char *address)
{
    struct sockaddr_storage parsed = {.ss_family = AF_UNSPEC};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&parsed;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&parsed;
    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1)
        parsed.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1)
        parsed.ss_family = AF_INET6;
    return tcp_info_site(tcp_info_subscriber(&parsed));
}
