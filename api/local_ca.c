#include "api/local_ca.h"

#include "api/request.h"
#include "api/server.h"
#include "api/settings.h"
#include "lib/base/os.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool local_ca_is_used(const struct settings *settings)
{
    char path[PATH_MAX];
    /* An operator's certificate is custom.crt there (api/tls_files.h). */
    snprintf(path, sizeof(path), "%s/tls/server.crt", settings->data_dir);
    return !settings->trust_forwarded_for && strcmp(settings->tls_cert, path) == 0;
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
