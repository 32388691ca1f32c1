#include "api/supervisor/supervisor.h"

#include "api/core/settings.h"
#include "api/http/listener.h"
#include "api/identity/identity.h"
#include "api/ops/migrate.h"
#include "api/ops/postgres.h"
#include "api/ops/storage_identity.h"
#include "api/ops/vacuum_full.h"
#include "api/server/server_run.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/io/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "5,6" to descriptors. */
static enum err_code parse_listeners(const char *text, struct server_start *start, struct err *err)
{
    struct span rest = span_text(text);
    for (bool has_more = true; has_more;) {
        struct span one, after;
        uint64_t fd;
        has_more = span_split(rest, ',', &one, &after);
        if (!span_parse_u64(has_more ? one : rest, &fd) || fd > 65535 ||
            start->listener_count == SERVER_MAX_LISTENERS)
            return err_set(err, ERR_INVALID,
                           "serve-child is used only by perfoliod itself; see --help");
        start->listeners[start->listener_count++] = (int)fd;
        rest = after;
    }
    return ERR_NONE;
}

enum err_code supervisor_serve_child(const struct settings *settings, int argument_count,
                                     char *const *arguments, struct err *err)
{
    struct server_start start = {0};
    char conninfo[POSTGRES_CONNINFO_BYTES], jobs_conninfo[POSTGRES_CONNINFO_BYTES];
    if (argument_count != 3)
        return err_set(err, ERR_INVALID,
                       "serve-child is used only by perfoliod itself; see --help");
    start.ready_fd = atoi(arguments[1]);
    enum err_code code = parse_listeners(arguments[2], &start, err);
    if (code)
        return code;
    if (*settings->database_url) {
        start.conninfo = start.jobs_conninfo = settings->database_url;
        start.set_roles = true;
    } else {
        postgres_conninfo(arguments[0], "perfolio_server", conninfo);
        postgres_conninfo(arguments[0], "perfolio_jobs", jobs_conninfo);
        start.conninfo = conninfo;
        start.jobs_conninfo = jobs_conninfo;
    }
    return server_run(settings, &start, err);
}

static enum err_code migrate_and_bootstrap(const struct settings *settings,
                                           struct pg_connection *connection, const char *token,
                                           struct identity_bootstrap *ret_result, struct err *err)
{
    int applied_count = 0;
    enum err_code code = *settings->database_url
                             ? migrate_run_external(connection, &applied_count, err)
                             : migrate_run(connection, &applied_count, err);
    if (code)
        return code;
    if (applied_count > 0)
        log_event(LOG_INFO, "applied migrations to the database", "migrations=%d", applied_count);
    if (storage_identity_check(connection, settings, err))
        return err->code;
    return identity_bootstrap(connection, *token ? token : NULL, ret_result, err);
}

enum err_code supervisor_migrate_child(const struct settings *settings, int argument_count,
                                       char *const *arguments, struct err *err)
{
    struct identity_bootstrap result;
    struct pg_connection *connection = NULL;
    char conninfo[POSTGRES_CONNINFO_BYTES], token[256] = "";
    if (argument_count != 1)
        return err_set(err, ERR_INVALID,
                       "migrate-child is used only by perfoliod itself; see --help");
    if (!fgets(token, sizeof(token), stdin))
        token[0] = '\0';
    token[strcspn(token, "\n")] = '\0';
    postgres_conninfo(arguments[0], "perfolio_owner", conninfo);
    struct pg_pool *pool =
        pg_pool_create(*settings->database_url ? settings->database_url : conninfo, NULL, 1);
    enum err_code code = pg_take(pool, &connection, err);
    if (!code)
        code = migrate_and_bootstrap(settings, connection, token, &result, err);
    pg_give(connection);
    pg_pool_destroy(pool);
    if (code)
        return code;
    printf("%s\n%s\n", result.admin_token, result.login_code);
    return ERR_NONE;
}

enum err_code supervisor_vacuum_child(const struct settings *settings, int argument_count,
                                      char *const *arguments, struct err *err)
{
    char conninfo[POSTGRES_CONNINFO_BYTES], path[PATH_MAX];
    if (argument_count != 1)
        return err_set(err, ERR_INVALID,
                       "vacuum-child is used only by perfoliod itself; see --help");
    postgres_conninfo(arguments[0], "perfolio_cluster", conninfo);
    snprintf(path, sizeof(path), "%s/pg", settings->data_dir);
    pg_pool_auto pool = pg_pool_create(conninfo, NULL, 1);
    pg_auto connection = NULL;
    enum err_code code = pg_take(pool, &connection, err);
    if (code)
        return code;
    return vacuum_full_if_useful(connection, path, err);
}
