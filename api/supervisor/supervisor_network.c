#include "api/supervisor/supervisor_state.h"

#include "api/core/settings.h"
#include "api/core/settings_value.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/os.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void add_host(struct supervisor *supervisor, const char *host)
{
    for (size_t i = 0; i < supervisor->host_count; i++)
        if (strcmp(supervisor->hosts[i], host) == 0)
            return;
    if (supervisor->host_count < TLS_MAX_NAMES && *host)
        snprintf(supervisor->hosts[supervisor->host_count++], LISTENER_HOST_BYTES, "%s", host);
}

static bool is_wildcard(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 || strcmp(host, "*") == 0;
}

/* "https://host:port/…" to host. */
static void add_public_host(struct supervisor *supervisor)
{
    char host[LISTENER_HOST_BYTES];
    const char *start = strstr(supervisor->settings->public_url, "://");
    if (!start)
        return;
    start += 3;
    bool is_bracketed = *start == '[';
    size_t size = is_bracketed ? strcspn(++start, "]/") : strcspn(start, ":/");
    if (size == 0 || size >= sizeof(host))
        return;
    snprintf(host, sizeof(host), "%.*s", (int)size, start);
    add_host(supervisor, host);
}

static void set_public_url(struct supervisor *supervisor, const char *host, int port)
{
    char url[LISTENER_HOST_BYTES + 32], port_text[16] = "";
    if (port != 443)
        snprintf(port_text, sizeof(port_text), ":%d", port);
    if (is_wildcard(host))
        snprintf(url, sizeof(url), "https://localhost%s", port_text);
    else
        snprintf(url, sizeof(url), strchr(host, ':') ? "https://[%s]%s" : "https://%s%s", host,
                 port_text);
    settings_value_set_text(&supervisor->settings->public_url, url);
}

enum err_code supervisor_open_listeners(struct supervisor *supervisor, struct err *err)
{
    struct settings *settings = supervisor->settings;
    add_host(supervisor, "localhost");
    add_host(supervisor, "127.0.0.1");
    add_host(supervisor, "::1");
    for (int i = 0; i < settings->listen_count; i++) {
        char host[LISTENER_HOST_BYTES];
        int port;
        enum err_code code = listener_split(settings->listen[i], host, &port, err);
        if (!code)
            code = listener_open(settings->listen[i], supervisor->listeners, SERVER_MAX_LISTENERS,
                                 &supervisor->listener_count, &port, err);
        if (code)
            return code;
        if (!*settings->public_url)
            set_public_url(supervisor, host, port);
        if (is_wildcard(host))
            gethostname(host, sizeof(host) - 1);
        add_host(supervisor, host);
    }
    add_public_host(supervisor);
    return ERR_NONE;
}

/* With an operator's certificate no client sees the local CA's. */
static void warn_of_change(const struct supervisor *supervisor, enum tls_files_change change,
                           const char *folder)
{
    if (*supervisor->custom_cert)
        return;
    if (change != TLS_FILES_CA_REPLACED)
        return;
    log_event(
        LOG_WARN,
        "the local certificate authority was replaced, since the old one expires soon, cannot be "
        "read or may not sign for every name of this server: clients that trust the old "
        "one must fetch ca.crt again",
        "path=%s/ca.crt", folder);
}

enum err_code supervisor_refresh_certificates(struct supervisor *supervisor, bool *ret_is_new,
                                              struct err *err)
{
    char folder[PATH_MAX];
    const char *names[TLS_MAX_NAMES];
    enum tls_files_change change;
    gid_t group = supervisor->folder.server.gid;
    snprintf(folder, sizeof(folder), "%s/tls", supervisor->folder.path);
    for (size_t i = 0; i < supervisor->host_count; i++)
        names[i] = supervisor->hosts[i];
    enum err_code code =
        tls_files_prepare(folder, group, names, supervisor->host_count, &change, err);
    if (code)
        return code;
    *ret_is_new = change != TLS_FILES_KEPT;
    warn_of_change(supervisor, change, folder);
    if (*supervisor->custom_cert)
        code = tls_files_take_custom(folder, group, supervisor->custom_cert, supervisor->custom_key,
                                     err);
    return code;
}

enum err_code supervisor_prepare_access_log(const struct supervisor *supervisor, struct err *err)
{
    const char *path = supervisor->settings->access_log;
    if (!*path || strcmp(path, "-") == 0)
        return ERR_NONE;
    fd_auto fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "cannot open the access log %s", path);
    if (geteuid() == 0 &&
        fchown(fd, supervisor->folder.server.uid, supervisor->folder.server.gid) != 0)
        return err_set_errno(err, ERR_IO, "cannot give the access log %s to the server", path);
    return ERR_NONE;
}
