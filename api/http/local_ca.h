/*
 * local_ca: the certificate of the authority that signed this server's own: GET /ca.crt, as PEM.
 *
 * Users who want to trust the server from another host can download it there. The download uses the
 * very connection that is not trusted yet, so it proves nothing until its fingerprint has been
 * compared with the one that the supervisor prints at its start.
 */
#ifndef API_HTTP_LOCAL_CA_H
#define API_HTTP_LOCAL_CA_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct request;
struct response;
struct settings;

/*
 * Whether clients see a certificate of the local CA. With --tls-cert they see the operator's, and
 * behind a proxy the proxy's. A proxy is assumed if --trust-forwarded-for is set, or if the public
 * URL leads to no listener: it has another scheme or port, or a public host name while all
 * listeners of that port are on localhost.
 */
bool local_ca_is_used(const struct settings *settings);

/* The handler of GET /ca.crt. Errors: ERR_NOT_FOUND if the local CA is not used. */
enum err_code local_ca_get(struct request *request, struct response *response,
                           struct err *err) MUST_USE;

#endif
