/*
 * team_version: which version of what a team's people set a change was made from.
 *
 * Each part has a version, an ETag of what people said: lists send it, and who changes the part
 * names the one that was looked at (If-Match). Once somebody else has changed the part, that change
 * is refused with ERR_STALE instead of undoing what nobody saw. A change without If-Match is taken
 * as it comes, as scripts want it. Tokens are not among the parts: none is ever changed.
 *
 * team_id is the team; pg_tenant is the one that the connection speaks for, or PG_NO_TENANT.
 */
#ifndef API_IDENTITY_TEAM_ETAG_H
#define API_IDENTITY_TEAM_ETAG_H

#include "lib/base/err.h"

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

/* Adds the ETag. Asked for before what is shown, so that it is never of something newer. */
enum err_code team_etag_tell(struct request *request, struct response *response,
                             struct pg_connection *connection, int64_t pg_tenant, int64_t team_id,
                             enum team_part part, struct err *err) MUST_USE;

/* In the transaction of a change, before it: until its end nobody else changes any part. Handles:
 * ERR_STALE. */
enum err_code team_etag_check(struct request *request, struct pg_connection *connection,
                              int64_t pg_tenant, int64_t team_id, enum team_part part,
                              struct err *err) MUST_USE;

#endif
