#include "api/ingest/age_warning.h"

#include "api/core/server.h"
#include "api/http/request.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <stdint.h>

enum { RECENT_S = 3600 }; /* agents send their profiles sooner */

static const char repeat_text[] =
    "these profiles are older than 24 hours, after which batches are forgotten: if they were sent "
    "before that, they count twice";

/* The shortest time for which a rule of the team keeps profiles, and after which it keeps no totals
 * of them either; 0: no rule is shorter than age_s. */
static int64_t find_shortest_s(struct request *request, int64_t age_s)
{
    struct pg_result *result;
    struct err ignored;
    pg_auto connection = NULL;
    if (pg_take(request->server->database, &connection, &ignored) ||
        pg_query_values(connection, request->principal.tenant_id,
                        "SELECT min(coalesce(totals_s, keep_s)) FROM retention_rule"
                        " WHERE keep_s > 0 AND coalesce(totals_s, keep_s) < $1",
                        request->arena, &result, &ignored, PG_I64(age_s)))
        return 0;
    return pg_is_null(result, 0, 0) ? 0 : pg_get_i64(result, 0, 0);
}

static const char *describe_retention(struct request *request)
{
    enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S };
    const int64_t age_s = (clock_wall_ns() - request->oldest_ns) / CLOCK_NS_PER_S;
    const int64_t kept_s =
        request->oldest_ns && age_s > RECENT_S ? find_shortest_s(request, age_s) : 0;
    if (!kept_s)
        return NULL;
    const bool is_days = kept_s % DAY_S == 0;
    return arena_printf(request->arena,
                        "a rule of retention keeps profiles for %" PRId64 " %s only: no query "
                        "finds older profiles of the series to which it applies",
                        kept_s / (is_days ? DAY_S : HOUR_S), is_days ? "days" : "hours");
}

const char *age_warning_text(struct request *request)
{
    const char *retention = describe_retention(request);
    const char *repeat = request->may_repeat ? repeat_text : NULL;
    if (retention && repeat)
        return arena_printf(request->arena, "%s; %s", retention, repeat);
    return retention ? retention : repeat;
}
