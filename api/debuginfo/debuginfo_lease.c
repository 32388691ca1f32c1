#include "api/debuginfo/debuginfo_lease.h"

#include "api/core/server.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

enum err_code debuginfo_lease_renew(struct server *server, const struct debuginfo_lease *lease,
                                    int duration_s, bool *ret_is_ours, struct err *err)
{
    struct pg_result *rows;
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    enum err_code code = pg_take(server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "UPDATE symbol_job SET leased_until = now() + $3 * interval '1 s'"
                           " WHERE id = $1 AND fence = $2",
                           arena, &rows, err, PG_I64(lease->job_id), PG_I64(lease->fence),
                           PG_I64(duration_s));
    if (code)
        return code;
    *ret_is_ours = pg_affected(rows) == 1;
    return ERR_NONE;
}

enum err_code debuginfo_lease_end(struct pg_connection *connection, int64_t tenant_id,
                                  const struct debuginfo_lease *lease, struct arena *arena,
                                  struct err *err)
{
    struct pg_result *rows;
    enum err_code code = pg_query_values(
        connection, tenant_id, "DELETE FROM symbol_job WHERE id = $1 AND fence = $2", arena, &rows,
        err, PG_I64(lease->job_id), PG_I64(lease->fence));
    if (!code && pg_affected(rows) != 1)
        code = err_set(err, ERR_CONFLICT, "the job went to another server");
    return code;
}
