#include "store/catalogue/catalogue.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_internal.h"

enum err_code catalogue_renew_writer(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, struct err *err)
{
    struct pg_result *result;
    const enum err_code code = pg_query_values(connection, PG_NO_TENANT,
                                               "UPDATE store_writer SET seen_at = now() "
                                               "WHERE id = $1 AND ended_at IS NULL",
                                               arena, &result, err, PG_I64(writer_id));
    return code ? code : catalogue_check_count(pg_affected(result), 1, err);
}

#define RELEASE_SQL " SET leased_by = NULL, leased_until = now() + $4 * interval '1 s'"
#define LEAVE_SQL                                                                                  \
    "UPDATE block SET leased_by = NULL, leased_until = NULL, merge_after = now() + $4"             \
    " * interval '1 s' WHERE tenant_id = $1 AND id = ANY ($2::bigint[]) AND leased_by = $3"

enum err_code catalogue_renew(struct pg_pool *jobs, int64_t writer_id,
                              const struct catalogue_claim *claim, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    const char *sql =
        claim->level
            ? "UPDATE block SET leased_until = now() + $4 * interval '1 s' WHERE tenant_id = $1"
              " AND id = ANY ($2::bigint[]) AND leased_by = $3 AND swapped_at IS NULL"
            : "UPDATE segment_tenant SET leased_until = now() + $4 * interval '1 s'"
              " WHERE tenant_id = $1 AND segment_id = ANY ($2::bigint[]) AND leased_by = $3"
              " AND NOT is_swapped";
    const struct pg_value values[] = {PG_I64(claim->tenant_id),
                                      PG_TEXT(catalogue_id_list(arena, claim)), PG_I64(writer_id),
                                      PG_I64(CATALOGUE_LEASE_S)};
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    code = catalogue_renew_writer(connection, arena, writer_id, err);
    if (code)
        return code;
    code = pg_query(connection, PG_NO_TENANT, sql, values, 4, arena, &result, err);
    if (code)
        return code;
    return catalogue_check_count(pg_affected(result), claim->id_count, err);
}

static enum err_code end_lease(struct pg_pool *jobs, const char *sql, int64_t writer_id,
                               const struct catalogue_claim *claim, int64_t wait_s, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(jobs, &connection, err);
    return code
               ? code
               : pg_query_values(connection, PG_NO_TENANT, sql, arena, &result, err,
                                 PG_I64(claim->tenant_id), PG_TEXT(catalogue_id_list(arena, claim)),
                                 PG_I64(writer_id), PG_I64(wait_s));
}

enum err_code catalogue_release(struct pg_pool *jobs, int64_t writer_id,
                                const struct catalogue_claim *claim, int64_t wait_s,
                                struct err *err)
{
    const char *sql = claim->level ? "UPDATE block" RELEASE_SQL " WHERE tenant_id = $1"
                                     " AND id = ANY ($2::bigint[]) AND leased_by = $3"
                                   : "UPDATE segment_tenant" RELEASE_SQL " WHERE tenant_id = $1"
                                     " AND segment_id = ANY ($2::bigint[]) AND leased_by = $3";
    return end_lease(jobs, sql, writer_id, claim, wait_s, err);
}

enum err_code catalogue_leave(struct pg_pool *jobs, int64_t writer_id,
                              const struct catalogue_claim *claim, int64_t wait_s, struct err *err)
{
    return end_lease(jobs, LEAVE_SQL, writer_id, claim, wait_s, err);
}
