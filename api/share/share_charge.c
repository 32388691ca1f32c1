#include "api/share/share_charge.h"

#include "api/http/request.h"
#include "api/identity/quota.h"
#include "api/share/share.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

enum err_code share_charge_lock(struct request *request, struct pg_connection *connection,
                                const struct share *share, struct err *err)
{
    struct pg_result *rows;
    enum err_code code = pg_query_values(
        connection, share->tenant_id,
        "SELECT FROM share WHERE id = $1::text AND state = 'live' FOR NO KEY UPDATE",
        request->arena, &rows, err, PG_TEXT(share->id));
    if (code || pg_row_count(rows) == 1)
        return code;
    return err_set(err, ERR_GONE,
                   "this share has just been deleted: ask its creator for another link");
}

enum err_code share_charge_change(struct request *request, struct pg_connection *connection,
                                  const struct share *share, int64_t delta, struct err *err)
{
    if (delta == 0)
        return ERR_NONE;
    enum err_code code =
        pg_queue_values(connection, share->tenant_id,
                        "UPDATE share SET row_bytes = row_bytes + $2::bigint WHERE id = $1::text",
                        request->arena, err, PG_TEXT(share->id), PG_I64(delta));
    return code ? code : quota_change(request, connection, share->tenant_id, delta, err);
}
