/*
 * team_etag: the version of the settings that people of a team change, to detect concurrent
 * changes.
 *
 * Each part has a version, an ETag of its stored settings. Responses with the part contain it, and
 * a request that changes the part names the version that its author saw (If-Match). If another
 * person has changed the part since, the request is refused with ERR_STALE, because it would undo a
 * change that its author has not seen. A request without If-Match is accepted, for scripts. Tokens
 * are not among the parts, because they are never changed.
 *
 * team_id is the team; pg_tenant is the tenant of the connection, or PG_NO_TENANT.
 */
#ifndef API_IDENTITY_TEAM_ETAG_H
#define API_IDENTITY_TEAM_ETAG_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct pg_connection;
struct request;
struct response;

enum team_part {
    TEAM_SETTINGS, /* its name and the labels that make series */
    TEAM_PEOPLE,
    TEAM_INVITATIONS,
    TEAM_RETENTION
};

/* Adds the ETag of the part to the response. Call it before reading the part, so that the ETag is
 * never newer than the content. */
enum err_code team_etag_add(struct request *request, struct response *response,
                            struct pg_connection *connection, int64_t pg_tenant, int64_t team_id,
                            enum team_part part, struct err *err) MUST_USE;

/* Compares If-Match with the present version. Call it in the transaction that changes the part,
 * before the change: it locks the team's row, so other transactions cannot change the team until
 * this one ends. Errors: ERR_STALE. */
enum err_code team_etag_check(struct request *request, struct pg_connection *connection,
                              int64_t pg_tenant, int64_t team_id, enum team_part part,
                              struct err *err) MUST_USE;

#endif
