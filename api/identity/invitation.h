/*
 * invitation: links with which somebody joins a tenant: /api/v1/invitations.
 *
 * The link is <public url>/invite#<secret>; the part after # never reaches a server's log. It is
 * for one e-mail and one role, can be used once and expires after settings.invitation_lifetime_s.
 * An e-mail has one invitation in a tenant: a new one replaces it. Members cannot be invited (409).
 * A person with an account in another tenant can be invited, since the inviting team may not learn
 * of the account, but cannot accept (409).
 */
#ifndef API_IDENTITY_INVITATION_H
#define API_IDENTITY_INVITATION_H

#include "api/http/request.h"

enum { INVITATION_MAX_PER_TENANT = 1000 };

enum err_code invitation_list(struct request *request, struct response *response, struct err *err);
enum err_code invitation_post(struct request *request, struct response *response, struct err *err);
enum err_code invitation_delete(struct request *request, struct response *response,
                                struct err *err);
/* Whether the link's secret is valid, and for whom. Only its holder can ask. */
enum err_code invitation_look(struct request *request, struct response *response, struct err *err);
enum err_code invitation_accept(struct request *request, struct response *response,
                                struct err *err);

#endif
