#include "lib/io/pg_internal.h"

#include "lib/base/err.h"

#include <string.h>

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* https://www.postgresql.org/docs/15/errcodes-appendix.html */
static enum err_code code_from_sqlstate(const char *state)
{
    static const struct {
        const char *prefix;
        enum err_code code;
    } table[] = {
        {"23502", ERR_INVALID},   {"23514", ERR_INVALID}, {"23", ERR_CONFLICT}, {"40", ERR_BUSY},
        {"42501", ERR_FORBIDDEN}, {"22", ERR_INVALID},    {"57014", ERR_BUSY},  {"55P03", ERR_BUSY},
        {"53300", ERR_BUSY},      {"25P03", ERR_BUSY},    {"53400", ERR_QUOTA},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (starts_with(state, table[i].prefix))
            return table[i].code;
    return ERR_DATABASE;
}

const char *pg_public_text(enum err_code code)
{
    static const char *const texts[ERR_CODE_COUNT] = {
        [ERR_INVALID] = "a value of the request is malformed or out of range: correct it, then "
                        "send the request again",
        [ERR_CONFLICT] = "another request has changed the same data, or it exists already: read it "
                         "again, then repeat the change",
        [ERR_FORBIDDEN] = "this belongs to another team: use credentials of that team",
        [ERR_BUSY] = "the database is busy: try again in a few seconds",
        [ERR_DATABASE] = "the server cannot use its database: try again in a few seconds",
    };
    return texts[code];
}

/* A statement was prepared before a table changed, or the server no longer has it; or the session
 * is read-only, because the database was when it began. */
static bool needs_new_connection(const char *state)
{
    return starts_with(state, "0A000") || starts_with(state, "26000") ||
           starts_with(state, "25006") || starts_with(state, "57P0") || starts_with(state, "08");
}

enum err_code pg_fail_database(struct err *err, const char *what, const char *message)
{
    size_t size = strcspn(message, "\n");
    err_set(err, ERR_DATABASE, "%s: %.*s", what, (int)size, message);
    err->retry_after_s = 2;
    err->public_text = pg_public_text(ERR_DATABASE);
    return ERR_DATABASE;
}

enum err_code pg_fail_connection(struct pg_connection *connection, struct err *err)
{
    connection->must_close = true;
    pg_fail_database(err, "The database does not respond", PQerrorMessage(connection->handle));
    err->is_disconnect = true;
    return ERR_DATABASE;
}

enum err_code pg_fail_result(struct pg_connection *connection, const PGresult *result,
                             struct err *err)
{
    if (PQresultStatus(result) == PGRES_PIPELINE_ABORTED)
        return pg_fail_database(err, "The database has skipped a statement",
                                "an earlier one failed");
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (!state || !message) {
        connection->must_close = true;
        pg_fail_database(err, "The database does not respond", PQresultErrorMessage(result));
        err->is_disconnect = true;
        return ERR_DATABASE;
    }
    if (needs_new_connection(state))
        connection->must_close = true;
    enum err_code code = code_from_sqlstate(state);
    if (code == ERR_QUOTA)
        return err_set(err, code, "%s", message);
    err_set(err, code, "%s (SQLSTATE %s)", message, state);
    err->is_rolled_back = starts_with(state, "40");
    err->public_text = pg_public_text(code);
    if (code == ERR_DATABASE || code == ERR_BUSY)
        err->retry_after_s = 2;
    err->is_disconnect = code == ERR_DATABASE && connection->must_close;
    return code;
}

enum err_code pg_fail_given_up(struct err *err)
{
    return pg_fail_database(err, "The database does not respond", "waiting for it to come back");
}
