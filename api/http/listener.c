#include "api/http/listener.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

enum err_code listener_split(const char *address, char ret_host[LISTENER_HOST_BYTES], int *ret_port,
                             struct err *err)
{
    const char *colon = strrchr(address, ':');
    uint64_t port;
    if (!colon || !span_parse_u64(span_text(colon + 1), &port) || port > 65535)
        return err_set(err, ERR_INVALID, "\"%s\" is not host:port", address);
    struct span host = span_of(address, (size_t)(colon - address));
    if (host.size >= 2 && host.data[0] == '[' && host.data[host.size - 1] == ']')
        host = span_of(host.data + 1, host.size - 2);
    if (host.size == 0 || host.size >= LISTENER_HOST_BYTES)
        return err_set(err, ERR_INVALID, "\"%s\" has no usable host", address);
    snprintf(ret_host, LISTENER_HOST_BYTES, "%.*s", SPAN_PRINT(host));
    *ret_port = (int)port;
    return ERR_NONE;
}

static int port_of(const struct sockaddr *address)
{
    return ntohs(address->sa_family == AF_INET
                     ? ((const struct sockaddr_in *)(const void *)address)->sin_port
                     : ((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
}

static struct span host_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return span_of(&((const struct sockaddr_in *)(const void *)address)->sin_addr,
                       sizeof(struct in_addr));
    return span_of(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                   sizeof(struct in6_addr));
}

/* 0.0.0.0 or :: */
static bool is_any(struct span host)
{
    for (size_t i = 0; i < host.size; i++)
        if (host.data[i])
            return false;
    return true;
}

/* Whether one of our sockets has the address already. */
static bool is_taken_by(const int *fds, int fd_count, const struct addrinfo *address)
{
    struct span host = host_of(address->ai_addr);
    for (int i = 0; i < fd_count; i++) {
        struct sockaddr_storage storage = {0};
        socklen_t size = sizeof(storage);
        const struct sockaddr *own = (const struct sockaddr *)&storage;
        if (getsockname(fds[i], (struct sockaddr *)&storage, &size) != 0 ||
            own->sa_family != address->ai_family || port_of(own) != port_of(address->ai_addr))
            continue;
        if (span_equal(host_of(own), host) || is_any(host_of(own)) || is_any(host))
            return true;
    }
    return false;
}

static enum err_code bind_failed(const struct addrinfo *address, int error, bool is_own,
                                 struct err *err)
{
    char host[64] = "?", port[16] = "?";
    getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof(host), port, sizeof(port),
                NI_NUMERICHOST | NI_NUMERICSERV);
    if (error == EADDRINUSE && is_own)
        return err_set(err, ERR_CONFLICT,
                       "two --listen settings name %s port %s: leave one of them out, or give it "
                       "another port",
                       host, port);
    if (error == EADDRINUSE)
        return err_set(err, ERR_CONFLICT,
                       "%s port %s is in use by another program: stop it or choose another "
                       "--listen",
                       host, port);
    if (error == EACCES)
        return err_set(err, ERR_FORBIDDEN, "port %s needs root to listen on", port);
    errno = error;
    return err_set_errno(err, ERR_INVALID, "cannot listen on %s port %s", host, port);
}

/* Returns 0, or an errno. */
static int open_one(const struct addrinfo *address, int *ret_fd)
{
    int yes = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (address->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        return error;
    }
    *ret_fd = fd;
    return 0;
}

static void set_port(struct sockaddr *address, int port)
{
    if (address->sa_family == AF_INET)
        ((struct sockaddr_in *)(void *)address)->sin_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons((uint16_t)port);
}

static int get_port(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    getsockname(fd, (struct sockaddr *)&address, &size);
    return port_of((const struct sockaddr *)&address);
}

struct opening {
    int *fds;
    int max_fds;
    int fd_count;
    int port; /* 0 until the kernel has chosen */
};

/* Skips addresses that this host does not have (::1 where IPv6 is off). */
static enum err_code open_name(struct opening *opening, const char *name, struct err *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    enum err_code code = ERR_NONE;
    int problem = getaddrinfo(name, "0", &hints, &found);
    if (problem != 0)
        return err_set(err, ERR_INVALID, "cannot listen on %s: %s", name, gai_strerror(problem));
    for (struct addrinfo *at = found; at && !code; at = at->ai_next) {
        if (opening->fd_count >= opening->max_fds) {
            code =
                err_set(err, ERR_INVALID, "more than %d addresses to listen on", opening->max_fds);
            break;
        }
        set_port(at->ai_addr, opening->port);
        int *fd = &opening->fds[opening->fd_count];
        int error = open_one(at, fd);
        if (error == 0) {
            opening->port = get_port(*fd);
            opening->fd_count++;
        } else if (error != EADDRNOTAVAIL && error != EAFNOSUPPORT) {
            bool is_own = is_taken_by(opening->fds, opening->fd_count, at);
            code = bind_failed(at, error, is_own, err);
        }
    }
    freeaddrinfo(found);
    return code;
}

enum err_code listener_open(const char *address, int *fds, int max_fds, int *fd_count,
                            int *ret_port, struct err *err)
{
    char host[LISTENER_HOST_BYTES];
    struct opening opening = {.fds = fds, .max_fds = max_fds, .fd_count = *fd_count};
    enum err_code code = listener_split(address, host, &opening.port, err);
    if (code)
        return code;
    if (strcmp(host, "localhost") == 0) {
        code = open_name(&opening, "127.0.0.1", err);
        if (!code)
            code = open_name(&opening, "::1", err);
    } else {
        code = open_name(&opening, host, err);
    }
    if (code)
        return code;
    if (opening.fd_count == *fd_count)
        code = err_set(err, ERR_INVALID, "this host has no address for %s", host);
    if (code)
        return code;
    *fd_count = opening.fd_count;
    *ret_port = opening.port;
    return ERR_NONE;
}
