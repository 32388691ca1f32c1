/*
 * invitation: links that let somebody join a tenant: /api/v1/invitations.
 *
 * The link is <public url>/invite#<secret>; the part behind # never reaches a server's log. It is
 * for one e-mail and one role, is used once and expires after settings.invitation_lifetime_s. An
 * e-mail has one in a tenant: another withdraws the first. Members are not invited (409); who has
 * an account in another tenant is, since that is nothing to tell here, and cannot accept (409).
 */
#ifndef API_IDENTITY_INVITATION_H
#define API_IDENTITY_INVITATION_H

#include "api/http/request.h"

enum { INVITATION_MAX_PER_TENANT = 1000 };

enum err_code invitation_list(struct request *request, struct response *response, struct err *err);
enum err_code invitation_post(struct request *request, struct response *response, struct err *err);
enum err_code invitation_delete(struct request *request, struct response *response,
                                struct err *err);
/* Is the link's secret still good, and for whom? Tells it to whoever holds the link only. */
enum err_code invitation_look(struct request *request, struct response *response, struct err *err);
enum err_code invitation_accept(struct request *request, struct response *response,
                                struct err *err);

#endif
