#include "api/identity/change_limit.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/rate_limiter.h"
#include "api/http/request.h"
#include "api/http/route.h"
#include "lib/base/err.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_counted(const struct request *request)
{
    const unsigned with_own_rate = ROUTE_AGENT | ROUTE_STORES | ROUTE_SIGN_IN | ROUTE_NO_CSRF;
    return request->method != HTTP_GET && request->method != HTTP_HEAD &&
           request->method != HTTP_OPTIONS && !(request->route->flags & with_own_rate) &&
           !(request->principal.scopes & SCOPE_OPERATOR);
}

static enum err_code take(const struct request *request, enum limit_kind kind, const char *key,
                          int per_minute, struct err *err)
{
    return rate_limiter_take(request->server->rate_limiter, kind, span_text(key), per_minute,
                             (double)per_minute * CHANGE_LIMIT_BURST_MINUTES, err);
}

enum err_code change_limit_take(struct request *request, struct err *err)
{
    const struct settings *settings = request->server->settings;
    if (request->is_change_counted || !is_counted(request))
        return ERR_NONE;
    request->is_change_counted = true;
    if (request->principal.kind == PRINCIPAL_ANONYMOUS)
        return take(request, LIMIT_CHANGE_ADDRESS, request->address,
                    settings->anonymous_changes_per_minute, err);
    char key[24];
    snprintf(key, sizeof(key), "%" PRId64, request->principal.tenant_id);
    return take(request, LIMIT_CHANGE_TENANT, key, settings->tenant_changes_per_minute, err);
}
