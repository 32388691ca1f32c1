/*
 * change_limit: the rate of changes by a team, and by an address without credentials.
 *
 * A change is a request with an unsafe method: most write a row of the audit log, and all write to
 * the database. Changes that have rates of their own are not counted: requests of agents, uploads
 * (api/identity/quota.h), passwords and reports of abuse. Operators have no limit. The settings
 * tenant-changes-per-minute and anonymous-changes-per-minute are the rates, in memory of each
 * server (api/http/rate_limiter.h); the changes of CHANGE_LIMIT_BURST_MINUTES may come at once.
 * Threads: any.
 */
#ifndef API_IDENTITY_CHANGE_LIMIT_H
#define API_IDENTITY_CHANGE_LIMIT_H

#include "lib/base/err_code.h"

struct request;

enum { CHANGE_LIMIT_BURST_MINUTES = 10 };

/* Called before the handler of any request, after auth_check_access. A request that is handled
 * again from the start counts once. Handles: ERR_RATE_LIMITED, with retry_after_s. */
enum err_code change_limit_take(struct request *request, struct err *err) MUST_USE;

#endif
