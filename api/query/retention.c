#include "api/query/retention.h"

#include "api/core/disk.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/identity/audit.h"
#include "api/identity/team_etag.h"
#include "api/identity/tenant.h"
#include "api/identity/tenant_limits.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/input/time_parse.h"
#include "lib/io/pg.h"
#include "store/store.h"

#include <inttypes.h>
#include <string.h>

enum {
    RULES_MAX = 100,
    SELECTOR_MAX_BYTES = 8192,
    KEEP_MAX_BYTES = 64,
    BODY_MAX_BYTES = 16 << 10,
    AUDIT_SELECTOR_BYTES = 500
};
#define KEEP_MAX_S INT64_C(3153600000) /* a hundred years */

/* The owner of the rules: the requesting team, or the tenant in an operator's path. */
struct owner {
    struct pg_connection *connection;
    int64_t tenant_id;
    int64_t pg_tenant; /* of the transaction: an operator's has none */
    int rule_param;    /* the path parameter that is a rule's id */
};

static void owner_fini(struct owner *owner)
{
    pg_cleanup(&owner->connection);
}

#define owner_auto __attribute__((cleanup(owner_fini))) struct owner

static enum err_code check_tenant(struct request *request, const struct owner *owner,
                                  struct err *err)
{
    struct pg_result *row;
    enum err_code code = pg_query_values(owner->connection, PG_NO_TENANT,
                                         "SELECT id FROM tenant WHERE id = $1 FOR KEY SHARE",
                                         request->arena, &row, err, PG_I64(owner->tenant_id));
    if (!code && pg_row_count(row) == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "There is no tenant %" PRId64 ": the list of tenants shows their ids",
                       owner->tenant_id);
    return code;
}

static enum err_code begin_as_operator(struct request *request, struct owner *owner,
                                       struct err *err)
{
    owner->pg_tenant = PG_NO_TENANT;
    owner->rule_param = 1;
    enum err_code code = json_response_path_id(request, 0, &owner->tenant_id, err);
    if (code)
        return code;
    code = pg_take(request->server->jobs_database, &owner->connection, err);
    if (code)
        return code;
    code = pg_begin(owner->connection, PG_NO_TENANT, err);
    if (code)
        return code;
    return check_tenant(request, owner, err);
}

static enum err_code begin_as_team(struct request *request, struct owner *owner, struct err *err)
{
    owner->tenant_id = owner->pg_tenant = request->principal.tenant_id;
    enum err_code code = pg_take(request->server->database, &owner->connection, err);
    return code ? code : tenant_begin(owner->connection, owner->tenant_id, request->arena, err);
}

/* Begins a transaction. Changes of one team's rules run one after the other (team_etag_check), so
 * that each rule has a position of its own. */
static enum err_code owner_begin(struct request *request, bool is_change, struct owner *owner,
                                 struct err *err)
{
    enum err_code code = request->route->scopes == SCOPE_OPERATOR
                             ? begin_as_operator(request, owner, err)
                             : begin_as_team(request, owner, err);
    if (!code && is_change)
        code = team_etag_check(request, owner->connection, owner->pg_tenant, owner->tenant_id,
                               TEAM_RETENTION, err);
    return code;
}

/* ---- listing ---- */

#define RULE_SELECT                                                                                \
    "SELECT id, row_number() OVER (ORDER BY position, id), selector, keep_s,"                      \
    " rfc3339(created_at), totals_s"                                                               \
    " FROM retention_rule WHERE tenant_id = $1"

static void write_rule(struct json_response *json, const struct pg_result *rows, int row)
{
    json_response_open(json, NULL, '{');
    json_response_cell_i64(json, "id", rows, row, 0);
    json_response_cell_i64(json, "position", rows, row, 1);
    json_response_cell_text(json, "query", rows, row, 2);
    json_response_cell_i64(json, "keep_s", rows, row, 3);
    json_response_cell_i64(json, "totals_s", rows, row, 5);
    json_response_cell_text(json, "created_at", rows, row, 4);
    json_response_close(json, '}');
}

static enum err_code list_rules(struct request *request, struct response *response, struct err *err)
{
    static const char *const known[] = {NULL};
    struct pg_result *rows, *team;
    owner_auto owner = {0};
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = owner_begin(request, false, &owner, err);
    if (code)
        return code;
    code = team_etag_add(request, response, owner.connection, owner.pg_tenant, owner.tenant_id,
                         TEAM_RETENTION, err);
    if (code)
        return code;
    code = pg_query_values(owner.connection, owner.pg_tenant,
                           "SELECT coalesce(profile_retention_s, $2) FROM tenant WHERE id = $1",
                           request->arena, &team, err, PG_I64(owner.tenant_id),
                           PG_I64(request->server->settings->tenant_profile_retention_s));
    if (code)
        return code;
    code = pg_query_values(owner.connection, owner.pg_tenant, RULE_SELECT " ORDER BY 2",
                           request->arena, &rows, err, PG_I64(owner.tenant_id));
    if (code)
        return code;
    code = pg_commit(owner.connection, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_open(&json, "rules", '[');
    for (int row = 0; row < pg_row_count(rows); row++)
        write_rule(&json, rows, row);
    json_response_close(&json, ']');
    json_response_cell_i64(&json, "default_keep_s", team, 0, 0);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

/* ---- changing ---- */

struct rule_input {
    const char *selector;
    const char *canonical; /* the same for all selectors with the same meaning */
    const char *keep;      /* as written */
    int64_t keep_s;
    const char *totals; /* NULL: none */
    int64_t totals_s;   /* 0: none */
    int64_t position;   /* 0: unchanged, or the last */
    bool may_replace;   /* whether the selector's existing rule may be changed */
};

static enum err_code read_duration(const char *name, const char *text, int64_t *ret_s,
                                   struct err *err)
{
    int64_t duration_ns;
    *ret_s = 0;
    if (strcmp(text, "forever") == 0)
        return ERR_NONE;
    enum err_code code = time_parse_duration(span_text(text), &duration_ns, err);
    if (code)
        return err_add(err, "%s", name);
    *ret_s = duration_ns / CLOCK_NS_PER_S;
    return *ret_s >= 1 && *ret_s <= KEEP_MAX_S
               ? ERR_NONE
               : err_set(err, ERR_INVALID,
                         "%s must be a duration from one second to a hundred years, as in 90d, or "
                         "\"forever\"",
                         name);
}

static enum err_code read_totals(struct rule_input *input, struct err *err)
{
    enum err_code code = read_duration("totals", input->totals, &input->totals_s, err);
    if (code || (input->keep_s && input->totals_s > input->keep_s))
        return code;
    return err_set(err, ERR_INVALID, "totals must be longer than keep, and not forever");
}

static enum err_code read_input(struct request *request, struct rule_input *input, struct err *err)
{
    static const char *const known[] = {"query", "keep", "totals", "position", "replace", NULL};
    struct json_body *body = NULL;
    *input = (struct rule_input){0};
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "query", 1, SELECTOR_MAX_BYTES, &input->selector, err);
    if (code)
        return code;
    code = store_check_selector(request->arena, span_text(input->selector), &input->canonical, err);
    if (code)
        return code;
    code = json_body_text(body, "keep", 1, KEEP_MAX_BYTES, &input->keep, err);
    if (code)
        return code;
    code = read_duration("keep", input->keep, &input->keep_s, err);
    if (code)
        return code;
    code = json_body_text(body, "totals", 0, KEEP_MAX_BYTES, &input->totals, err);
    if (code)
        return code;
    if (input->totals)
        code = read_totals(input, err);
    if (code)
        return code;
    code = json_body_i64(body, "position", 1, RULES_MAX, 0, &input->position, err);
    if (code)
        return code;
    return json_body_bool(body, "replace", true, &input->may_replace, err);
}

static enum err_code check_count(struct request *request, const struct owner *owner,
                                 struct err *err)
{
    struct pg_result *row;
    enum err_code code = pg_query_values(owner->connection, owner->pg_tenant,
                                         "SELECT count(*) FROM retention_rule WHERE tenant_id = $1",
                                         request->arena, &row, err, PG_I64(owner->tenant_id));
    if (!code && pg_get_i64(row, 0, 0) > RULES_MAX)
        return err_set(
            err, ERR_INVALID,
            "A team has at most %d retention rules: remove one, or let one selector match more",
            RULES_MAX);
    return code;
}

/* Moves the rule between the others, which keep their order. */
static enum err_code move_rule(struct request *request, const struct owner *owner, int64_t id,
                               int64_t position, struct err *err)
{
    return pg_queue_values(
        owner->connection, owner->pg_tenant,
        "UPDATE retention_rule r SET position = o.rank FROM ("
        "  SELECT id, row_number() OVER (ORDER BY key) AS rank FROM ("
        "    SELECT id, CASE WHEN id = $2 THEN 2 * $3::bigint - 1"
        "      ELSE 2 * row_number() OVER (PARTITION BY id = $2 ORDER BY position, id) END AS key"
        "    FROM retention_rule WHERE tenant_id = $1) k) o WHERE r.id = o.id",
        request->arena, err, PG_I64(owner->tenant_id), PG_I64(id), PG_I64(position));
}

/* The existing rule of a selector. */
struct known_rule {
    int64_t id; /* 0: none */
    int64_t position;
    const char *selector;
    int64_t keep_s, totals_s;
};

/* Finds the rule whose selector equals the requested one literally, otherwise the first one with
 * the same meaning. Selectors are stored as typed, and an older version may have stored several
 * with one meaning. */
static enum err_code find_rule(struct request *request, const struct owner *owner,
                               const struct rule_input *input, struct known_rule *ret_rule,
                               struct err *err)
{
    struct pg_result *rows;
    *ret_rule = (struct known_rule){0};
    enum err_code code = pg_query_values(
        owner->connection, owner->pg_tenant,
        "SELECT id, row_number() OVER (ORDER BY position, id), selector, keep_s,"
        " coalesce(totals_s, 0) FROM retention_rule WHERE tenant_id = $1 ORDER BY selector <> $2, "
        "2",
        request->arena, &rows, err, PG_I64(owner->tenant_id), PG_TEXT(input->selector));
    for (int row = 0; !code && row < pg_row_count(rows) && !ret_rule->id; row++) {
        const char *selector = pg_get_text(rows, row, 2), *canonical;
        struct err ignored; /* a stored selector that can no longer be parsed is not the same */
        const bool is_same = strcmp(selector, input->selector) == 0 ||
                             (store_check_selector(request->arena, span_text(selector), &canonical,
                                                   &ignored) == ERR_NONE &&
                              strcmp(canonical, input->canonical) == 0);
        if (is_same)
            *ret_rule = (struct known_rule){.id = pg_get_i64(rows, row, 0),
                                            .position = pg_get_i64(rows, row, 1),
                                            .selector = selector,
                                            .keep_s = pg_get_i64(rows, row, 3),
                                            .totals_s = pg_get_i64(rows, row, 4)};
    }
    return code;
}

static enum err_code check_is_new(const struct rule_input *input, const struct known_rule *known,
                                  struct err *err)
{
    if (input->may_replace || !known->id)
        return ERR_NONE;
    return err_set(err, ERR_CONFLICT,
                   "Rule %" PRId64
                   ", %.*s%s, already selects the same: change that rule, or remove it first",
                   known->position, AUDIT_SELECTOR_BYTES / 2, known->selector,
                   strlen(known->selector) > AUDIT_SELECTOR_BYTES / 2 ? "..." : "");
}

/* Limits the times that a team sets itself. The team may still move a rule with longer times that
 * an operator has set. */
static enum err_code check_length(const struct rule_input *input, const struct known_rule *known,
                                  const struct tenant_limits *limits, struct err *err)
{
    const int64_t most_s = limits->values[TENANT_LIMIT_RULE_KEEP_S];
    const int64_t wanted_s = input->totals_s ? input->totals_s : input->keep_s;
    const bool is_kept =
        known->id && known->keep_s == input->keep_s && known->totals_s == input->totals_s;
    if (most_s == 0 || (wanted_s && wanted_s <= most_s) || is_kept)
        return ERR_NONE;
    char limit[TENANT_LIMITS_TEXT_BYTES];
    tenant_limits_describe(limits, TENANT_LIMIT_RULE_KEEP_S, limit);
    return err_set(err, ERR_INVALID, "%s exceeds the limit of your team's rules: %s",
                   input->totals_s ? "totals" : "keep", limit);
}

/* Whether the input shortens the existing rule of its selector: no time is longer and at least one
 * is shorter. A selector without a rule counts as shortened. */
static bool is_shorter(const struct rule_input *input, const struct known_rule *known)
{
    const int64_t keep_s = input->keep_s ? input->keep_s : INT64_MAX;
    const int64_t known_keep_s = known->keep_s ? known->keep_s : INT64_MAX;
    const int64_t all_s = input->totals_s ? input->totals_s : keep_s;
    const int64_t known_all_s = known->totals_s ? known->totals_s : known_keep_s;
    return !known->id || (keep_s <= known_keep_s && all_s <= known_all_s &&
                          (keep_s < known_keep_s || all_s < known_all_s));
}

static enum err_code add_rule(struct request *request, const struct owner *owner,
                              const struct rule_input *input, int64_t *ret_id, struct err *err)
{
    struct pg_result *row;
    enum err_code code = pg_query_values(
        owner->connection, owner->pg_tenant,
        "INSERT INTO retention_rule (tenant_id, position, selector, keep_s, totals_s)"
        " SELECT $1, coalesce(max(position), 0) + 1, $2, $3, nullif($4::bigint, 0) FROM "
        "retention_rule WHERE tenant_id = $1 RETURNING id",
        request->arena, &row, err, PG_I64(owner->tenant_id), PG_TEXT(input->selector),
        PG_I64(input->keep_s), PG_I64(input->totals_s));
    if (code)
        return code;
    *ret_id = pg_get_i64(row, 0, 0);
    return check_count(request, owner, err);
}

/* A selector has one rule: setting it again changes its times, not its position. */
static enum err_code put_rule(struct request *request, const struct owner *owner,
                              const struct rule_input *input, int64_t known_id, int64_t *ret_id,
                              struct err *err)
{
    *ret_id = known_id;
    enum err_code code = known_id
                             ? pg_query_values(owner->connection, owner->pg_tenant,
                                               "UPDATE retention_rule SET keep_s = $2,"
                                               " totals_s = nullif($3::bigint, 0) WHERE id = $1",
                                               request->arena, NULL, err, PG_I64(known_id),
                                               PG_I64(input->keep_s), PG_I64(input->totals_s))
                             : add_rule(request, owner, input, ret_id, err);
    if (code || !input->position)
        return code;
    return move_rule(request, owner, *ret_id, input->position, err);
}

static enum err_code set_rule(struct request *request, struct response *response, struct err *err)
{
    struct rule_input input;
    struct pg_result *row;
    int64_t id = 0;
    struct tenant_limits limits = {0};
    struct known_rule known = {0};
    owner_auto owner = {0};
    const bool is_team = request->route->scopes != SCOPE_OPERATOR;
    enum err_code code = read_input(request, &input, err);
    if (code)
        return code;
    if (is_team) /* before a connection is held, since it may take one */
        code = tenant_limits_get(request, &limits, err);
    if (code)
        return code;
    code = owner_begin(request, true, &owner, err);
    if (code)
        return code;
    code = find_rule(request, &owner, &input, &known, err);
    if (code)
        return code;
    code = check_is_new(&input, &known, err);
    if (code)
        return code;
    if (is_team)
        code = check_length(&input, &known, &limits, err);
    if (!code && is_team && !is_shorter(&input, &known)) /* a full disk allows only less data */
        code = disk_check(request->server->disk, err);
    if (code)
        return code;
    code = put_rule(request, &owner, &input, known.id, &id, err);
    if (code)
        return code;
    code = audit_record_for(
        owner.connection, request, owner.tenant_id, "retention.set",
        arena_printf(request->arena, "%.*s %s%s%s", AUDIT_SELECTOR_BYTES, input.selector,
                     input.keep, input.totals ? ", totals " : "", input.totals ? input.totals : ""),
        err);
    if (code)
        return code;
    code = pg_query_values(owner.connection, owner.pg_tenant,
                           "SELECT * FROM (" RULE_SELECT ") r WHERE r.id = $2", request->arena,
                           &row, err, PG_I64(owner.tenant_id), PG_I64(id));
    if (code)
        return code;
    code = pg_commit(owner.connection, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    write_rule(&json, row, 0);
    return json_response_send(&json, request, response, 200, err);
}

/* ---- deleting ---- */

static enum err_code remove_rule(struct request *request, struct response *response,
                                 struct err *err)
{
    int64_t id = 0;
    struct pg_result *row;
    owner_auto owner = {0};
    enum err_code code = owner_begin(request, true, &owner, err);
    if (code)
        return code;
    code = json_response_path_id(request, owner.rule_param, &id, err);
    if (code)
        return code;
    code = pg_query_values(owner.connection, owner.pg_tenant,
                           "DELETE FROM retention_rule WHERE tenant_id = $1 AND id = $2"
                           " RETURNING selector",
                           request->arena, &row, err, PG_I64(owner.tenant_id), PG_I64(id));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_NOT_FOUND, "There is no rule %" PRId64 " of retention", id);
    code = audit_record_for(
        owner.connection, request, owner.tenant_id, "retention.remove",
        arena_printf(request->arena, "%.*s", AUDIT_SELECTOR_BYTES, pg_get_text(row, 0, 0)), err);
    if (code)
        return code;
    code = pg_commit(owner.connection, err);
    if (code)
        return code;
    return json_response_nothing(request, response);
}

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/retention", ACCESS_SCOPES, SCOPE_ADMIN, 0, 0, list_rules},
    {HTTP_POST, "/api/v1/retention", ACCESS_SCOPES, SCOPE_ADMIN, ROUTE_NEEDS_NO_SPACE,
     BODY_MAX_BYTES, set_rule},
    {HTTP_DELETE, "/api/v1/retention/{id}", ACCESS_SCOPES, SCOPE_ADMIN, 0, 0, remove_rule},
    {HTTP_GET, "/api/v1/admin/tenants/{id}/retention", ACCESS_SCOPES, SCOPE_OPERATOR, 0, 0,
     list_rules},
    {HTTP_POST, "/api/v1/admin/tenants/{id}/retention", ACCESS_SCOPES, SCOPE_OPERATOR, 0,
     BODY_MAX_BYTES, set_rule},
    {HTTP_DELETE, "/api/v1/admin/tenants/{id}/retention/{rule}", ACCESS_SCOPES, SCOPE_OPERATOR, 0,
     0, remove_rule},
};

const struct route_table retention_routes = {routes, sizeof(routes) / sizeof(*routes)};
