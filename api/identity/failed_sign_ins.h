/*
 * failed_sign_ins: records when and from which address a wrong password was entered for an account.
 * The passwords are not stored. The owner of the account sees these failures (GET
 * /api/v1/failed-sign-ins).
 *
 * The last FAILED_SIGN_INS_KEPT failures of an account are kept, for 30 days (the sweep in
 * identity.c). A session shows the failures since the last sign-in before the one that began it.
 */
#ifndef API_IDENTITY_FAILED_SIGN_INS_H
#define API_IDENTITY_FAILED_SIGN_INS_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct request;
struct response;

enum { FAILED_SIGN_INS_KEPT = 100 };

/* Records that a wrong password was entered. An error while recording it is logged and does not
 * affect the request. user_id 0 with TENANT_ANONYMOUS: the e-mail has no account; the row is
 * written only so that the response takes as long as for an account that exists, and no user sees
 * it. */
void failed_sign_ins_record(const struct request *request, int64_t tenant_id, int64_t user_id);

/* The handler of the route. Errors: ERR_FORBIDDEN (the client is not a signed-in user). */
enum err_code failed_sign_ins_get(struct request *request, struct response *response,
                                  struct err *err);

#endif
