/*
 * local_ca: the certificate of the authority that signed this server's own: GET /ca.crt, as PEM.
 *
 * Whoever is to trust the server from another machine can fetch it there. It comes over the very
 * connection that is not trusted yet, so it proves nothing until its fingerprint was compared with
 * the one that the supervisor prints at its start.
 */
#ifndef API_HTTP_LOCAL_CA_H
#define API_HTTP_LOCAL_CA_H

#include "lib/base/err.h"

#include <stdbool.h>

struct request;
struct response;
struct settings;

/*
 * Do clients meet the local CA's certificate? Not with --tls-cert, nor behind a proxy, whose
 * certificate is the one that they see: --trust-forwarded-for says that there is one, and so does a
 * public URL that leads to no listener (another scheme or port, or a name for others while all
 * listeners of that port are on localhost).
 */
bool local_ca_is_used(const struct settings *settings);

/* The handler of GET /ca.crt. Handles: ERR_NOT_FOUND where it is not used. */
enum err_code local_ca_get(struct request *request, struct response *response,
                           struct err *err) MUST_USE;

#endif
