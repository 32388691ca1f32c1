#include "api/identity/change_limit.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/rate_limiter.h"
#include "api/http/request.h"
#include "api/http/request_limits.h"
#include "api/http/route.h"
#include "lib/base/err.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_BUCKETS = 2, KEY_BYTES = 32 };

struct bucket {
    enum limit_kind kind;
    char key[KEY_BYTES]; /* empty: the address of the request */
    double per_minute;
    double burst;
};

static bool is_counted(const struct request *request)
{
    const unsigned flags = request->route->flags;
    const unsigned with_own_rate = ROUTE_AGENT | ROUTE_STORES | ROUTE_SIGN_IN | ROUTE_NO_CSRF;
    const bool revokes = flags & ROUTE_SECURITY && request->method == HTTP_DELETE;
    return request->method != HTTP_GET && request->method != HTTP_HEAD &&
           request->method != HTTP_OPTIONS && !(flags & with_own_rate) && !revokes &&
           !(request->principal.scopes & SCOPE_OPERATOR);
}

static struct bucket bucket_of(enum limit_kind kind, double per_minute)
{
    return (struct bucket){
        .kind = kind, .per_minute = per_minute, .burst = per_minute * CHANGE_LIMIT_BURST_MINUTES};
}

/* The buckets from which the request takes, in this order; returns their number. The client's own
 * comes first: if it refuses the request, the team's keeps its content for other clients. */
static int find_buckets(const struct request *request, struct bucket ret_buckets[MAX_BUCKETS])
{
    const struct settings *settings = request->server->settings;
    const struct principal *who = &request->principal;
    struct bucket *first = &ret_buckets[0], *second = &ret_buckets[1];
    if (who->kind == PRINCIPAL_ANONYMOUS) {
        *first = bucket_of(LIMIT_CHANGE_ADDRESS, settings->anonymous_changes_per_minute);
        return 1;
    }
    if (who->kind == PRINCIPAL_USER && request->route->flags & ROUTE_SECURITY) {
        *first = (struct bucket){.kind = LIMIT_SECURITY_USER,
                                 .per_minute = CHANGE_LIMIT_SECURITY_MINUTE,
                                 .burst = CHANGE_LIMIT_SECURITY_BURST};
        snprintf(first->key, KEY_BYTES, "%" PRId64, who->user_id);
        return 1;
    }
    *first = bucket_of(LIMIT_CHANGE_CLIENT, settings->tenant_changes_per_minute / 2.0);
    *second = bucket_of(LIMIT_CHANGE_TENANT, settings->tenant_changes_per_minute);
    if (who->kind == PRINCIPAL_USER)
        snprintf(first->key, KEY_BYTES, "user %" PRId64, who->user_id);
    else
        snprintf(first->key, KEY_BYTES, "token %" PRId64, who->token_id);
    snprintf(second->key, KEY_BYTES, "%" PRId64, who->tenant_id);
    return 2;
}

static struct span key_of(const struct request *request, const struct bucket *bucket)
{
    return span_text(*bucket->key ? bucket->key : request->address);
}

static void give_back(const struct request *request, const struct bucket *buckets, int count)
{
    for (int i = 0; i < count; i++)
        rate_limiter_give_back(request->server->limits->rate_limiter, buckets[i].kind,
                               key_of(request, &buckets[i]));
}

enum err_code change_limit_take(struct request *request, struct err *err)
{
    struct bucket buckets[MAX_BUCKETS];
    if (request->is_change_counted || !is_counted(request))
        return ERR_NONE;
    const int count = find_buckets(request, buckets);
    for (int i = 0; i < count; i++) {
        enum err_code code = rate_limiter_take(request->server->limits->rate_limiter,
                                               buckets[i].kind, key_of(request, &buckets[i]),
                                               buckets[i].per_minute, buckets[i].burst, err);
        if (code) {
            give_back(request, buckets, i);
            return code;
        }
    }
    request->is_change_counted = true;
    return ERR_NONE;
}

void change_limit_finish(struct request *request, enum err_code code)
{
    struct bucket buckets[MAX_BUCKETS];
    const bool is_refused = code == ERR_UNAUTHENTICATED || code == ERR_FORBIDDEN ||
                            code == ERR_NOT_FOUND || code == ERR_GONE;
    if (!is_refused || !request->is_change_counted)
        return;
    give_back(request, buckets, find_buckets(request, buckets));
    request->is_change_counted = false;
}
