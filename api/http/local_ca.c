#include "api/http/local_ca.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/listener.h"
#include "api/http/request.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static bool is_loopback(const char *host)
{
    struct in_addr address;
    if (inet_pton(AF_INET, host, &address) == 1)
        return ntohl(address.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0;
}

/* False unless url is "https://host[:port]": this server supports no other scheme. */
static bool split_public_url(const char *url, char ret_host[LISTENER_HOST_BYTES], int *ret_port)
{
    static const char scheme[] = "https://";
    char address[LISTENER_HOST_BYTES + 16];
    struct err err;
    if (strncasecmp(url, scheme, strlen(scheme)) != 0)
        return false;
    url += strlen(scheme);
    size_t size = strcspn(url, "/?#");
    if (size >= LISTENER_HOST_BYTES)
        return false;
    const char *bracket = memchr(url, ']', size);
    const char *name_end = bracket ? bracket : url;
    bool has_port = memchr(name_end, ':', size - (size_t)(name_end - url)) != NULL;
    snprintf(address, sizeof(address), "%.*s%s", (int)size, url, has_port ? "" : ":443");
    return !listener_split(address, ret_host, ret_port, &err);
}

/* Whether the public URL leads to a listener of ours, as far as the settings show. If its port is
 * another, or only this host can reach the listener while the name is public, a proxy before it
 * ends TLS. A port that the kernel chooses (0) is not behind a proxy, which would have to know it.
 */
static bool is_public_url_ours(const struct settings *settings)
{
    char public_host[LISTENER_HOST_BYTES], host[LISTENER_HOST_BYTES];
    int public_port, port;
    struct err err;
    if (!split_public_url(settings->public_url, public_host, &public_port))
        return false;
    for (int i = 0; i < settings->listen_count; i++) {
        if (!listener_split(settings->listen[i], host, &port, &err) &&
            (port == public_port || port == 0) && (!is_loopback(host) || is_loopback(public_host)))
            return true;
    }
    return false;
}

bool local_ca_is_used(const struct settings *settings)
{
    char path[PATH_MAX];
    /* An operator's certificate is custom.crt there (api/http/tls_files.h). */
    snprintf(path, sizeof(path), "%s/tls/server.crt", settings->data_dir);
    return !settings->trust_forwarded_for && strcmp(settings->tls_cert, path) == 0 &&
           is_public_url_ours(settings);
}

enum err_code local_ca_get(struct request *request, struct response *response, struct err *err)
{
    const struct settings *settings = request->server->settings;
    char path[PATH_MAX];
    struct stat status;
    if (!local_ca_is_used(settings))
        return err_set(err, ERR_NOT_FOUND,
                       "this server has no certificate authority of its own: its certificate is "
                       "one that its operator chose");
    snprintf(path, sizeof(path), "%s/tls/ca.crt", settings->data_dir);
    fd_auto fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0 || fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "cannot read the local CA's certificate");
    response_add(request, response, "cache-control", "no-cache");
    response_add(request, response, "content-disposition",
                 "attachment; filename=\"perfolio-ca.crt\"");
    response->content_type = "application/x-pem-file";
    response->body_kind = RESPONSE_FILE;
    response->file_bytes = (uint64_t)status.st_size;
    response->file_fd = fd;
    fd = -1;
    return ERR_NONE;
}
