/* The operator's routes for users and tokens of any tenant: list and remove them. */
#include "api/identity/operator.h"

#include "api/core/server.h"
#include "api/http/json_response.h"
#include "api/identity/auth.h"
#include "api/identity/identity_parts.h"
#include "api/identity/token.h"
#include "api/identity/user.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>

static enum err_code check_tenant(struct request *request, struct pg_connection *connection,
                                  int64_t id, struct err *err)
{
    struct pg_result *row;
    enum err_code code =
        pg_query_values(connection, PG_NO_TENANT, "SELECT id FROM tenant WHERE id = $1",
                        request->arena, &row, err, PG_I64(id));
    if (!code && pg_row_count(row) == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "There is no tenant %" PRId64 ": the list of tenants shows their ids", id);
    return code;
}

/* Takes a connection that sees all tenants, and finds the tenant of the path. */
static enum err_code open_tenant(struct request *request, int64_t *ret_tenant_id,
                                 struct pg_connection **ret_connection, struct err *err)
{
    static const char *const no_query[] = {NULL};
    enum err_code code = request_check_query(request, no_query, err);
    if (code)
        return code;
    code = json_response_path_id(request, 0, ret_tenant_id, err);
    if (code)
        return code;
    code = pg_take(request->server->jobs_database, ret_connection, err);
    if (code)
        return code;
    return check_tenant(request, *ret_connection, *ret_tenant_id, err);
}

enum err_code operator_people_list_users(struct request *request, struct response *response,
                                         struct err *err)
{
    int64_t tenant_id = 0;
    pg_auto connection = NULL;
    enum err_code code = open_tenant(request, &tenant_id, &connection, err);
    return code ? code : user_respond_list(request, response, connection, tenant_id, err);
}

enum err_code operator_people_list_tokens(struct request *request, struct response *response,
                                          struct err *err)
{
    int64_t tenant_id = 0;
    pg_auto connection = NULL;
    enum err_code code = open_tenant(request, &tenant_id, &connection, err);
    return code ? code : token_respond_list(request, response, connection, tenant_id, 0, err);
}

/* Removes the user or token in the path from its tenant, in one transaction. */
static enum err_code
remove_of_tenant(struct request *request, int64_t *ret_tenant_id, int64_t *ret_id,
                 enum err_code (*remove)(struct request *request, struct pg_connection *connection,
                                         int64_t tenant_id, int64_t id, struct err *err),
                 struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = json_response_path_id(request, 1, ret_id, err);
    if (code)
        return code;
    code = open_tenant(request, ret_tenant_id, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = pg_queue_values(connection, PG_NO_TENANT,
                           "SELECT 1 FROM tenant WHERE id = $1 FOR KEY SHARE", request->arena, err,
                           PG_I64(*ret_tenant_id));
    if (code)
        return code;
    code = remove(request, connection, *ret_tenant_id, *ret_id, err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

enum err_code operator_people_delete_user(struct request *request, struct response *response,
                                          struct err *err)
{
    int64_t tenant_id = 0, id = 0;
    enum err_code code = remove_of_tenant(request, &tenant_id, &id, user_remove, err);
    if (code)
        return code;
    auth_forget_tenant(request->server->identity->auth, tenant_id);
    return json_response_nothing(request, response);
}

enum err_code operator_people_delete_token(struct request *request, struct response *response,
                                           struct err *err)
{
    int64_t tenant_id = 0, id = 0;
    enum err_code code = remove_of_tenant(request, &tenant_id, &id, token_revoke, err);
    if (code)
        return code;
    auth_forget_token(request->server->identity->auth, id);
    return json_response_nothing(request, response);
}
