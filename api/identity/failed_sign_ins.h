/*
 * failed_sign_ins: wrong passwords for an account, shown to its owner: GET /api/v1/failed-sign-ins.
 *
 * The last FAILED_SIGN_INS_KEPT failures of an account are kept, for FAILED_SIGN_INS_DAYS. A
 * session shows the failures since the user's previous sign-in, before the one that began this
 * session.
 */
#ifndef API_IDENTITY_FAILED_SIGN_INS_H
#define API_IDENTITY_FAILED_SIGN_INS_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct request;
struct response;

enum { FAILED_SIGN_INS_KEPT = 100, FAILED_SIGN_INS_DAYS = 30 };

/* Records a wrong password. An error while recording it is logged and does not affect the request.
 * user_id 0 with TENANT_ANONYMOUS: the e-mail has no account; the row is written only so that the
 * response takes the same time, and no user sees it. */
void failed_sign_ins_record(const struct request *request, int64_t tenant_id, int64_t user_id);

/* The handler of the route. Errors: ERR_FORBIDDEN (the client is not a signed-in user). */
enum err_code failed_sign_ins_get(struct request *request, struct response *response,
                                  struct err *err);

#endif
