#include "api/identity/team_etag.h"

#include "api/http/request.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

/* The hashed columns are those that people set, not the times of sign-ins or stored amounts. */
static const struct {
    const char *name;
    const char *sql;
} parts[] = {
    [TEAM_SETTINGS] = {"The team’s name, or the labels that make series,",
                       "SELECT md5(ROW(name, sample_labels)::text) FROM tenant WHERE id = $1"},
    [TEAM_PEOPLE] = {"The list of people",
                     "SELECT md5(coalesce(string_agg(ROW(id, email, name, role)::text, ','"
                     " ORDER BY id), '')) FROM app_user WHERE tenant_id = $1"},
    [TEAM_INVITATIONS] = {"The list of invitations",
                          "SELECT md5(coalesce(string_agg(ROW(id, email, role)::text, ','"
                          " ORDER BY id), '')) FROM invitation WHERE tenant_id = $1"},
    [TEAM_RETENTION] = {"The list of rules",
                        "SELECT md5(coalesce(string_agg(ROW(id, selector, keep_s, totals_s)::text,"
                        " ',' ORDER BY position, id), '')) FROM retention_rule"
                        " WHERE tenant_id = $1"},
};

static enum err_code read_version(struct request *request, struct pg_connection *connection,
                                  int64_t pg_tenant, int64_t team_id, enum team_part part,
                                  const char **ret_etag, struct err *err)
{
    struct pg_result *row;
    enum err_code code = pg_query_values(connection, pg_tenant, parts[part].sql, request->arena,
                                         &row, err, PG_I64(team_id));
    if (code)
        return code;
    /* If the team is deleted, its row is missing, and the next statement reports that. */
    *ret_etag =
        arena_printf(request->arena, "\"%s\"", pg_row_count(row) ? pg_get_text(row, 0, 0) : "");
    return ERR_NONE;
}

enum err_code team_etag_add(struct request *request, struct response *response,
                            struct pg_connection *connection, int64_t pg_tenant, int64_t team_id,
                            enum team_part part, struct err *err)
{
    const char *etag;
    enum err_code code = read_version(request, connection, pg_tenant, team_id, part, &etag, err);
    if (code)
        return code;
    response_add(request, response, "etag", etag);
    return ERR_NONE;
}

enum err_code team_etag_check(struct request *request, struct pg_connection *connection,
                              int64_t pg_tenant, int64_t team_id, enum team_part part,
                              struct err *err)
{
    const char *etag = NULL;
    enum err_code code = pg_query_values(connection, pg_tenant,
                                         "SELECT id FROM tenant WHERE id = $1 FOR NO KEY UPDATE",
                                         request->arena, NULL, err, PG_I64(team_id));
    if (code || request_field(request, "if-match").size == 0)
        return code;
    code = read_version(request, connection, pg_tenant, team_id, part, &etag, err);
    if (code || response_if_match(request, etag))
        return code;
    return err_set(err, ERR_STALE,
                   "%s has been changed since you loaded it, so nothing was saved: reload it, and "
                   "repeat your change if it is still needed",
                   parts[part].name);
}
