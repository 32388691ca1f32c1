/*
 * invitation: links with which a person joins a tenant: /api/v1/invitations.
 *
 * The link is <public url>/invite#<secret>; browsers do not send the part after # to a server. An
 * invitation is for one e-mail and one role, can be used once and expires after
 * settings.invitation_lifetime_s. A new invitation of the same e-mail to the tenant replaces the
 * earlier one. People of the tenant cannot be invited (409). A person with an account in another
 * tenant can be invited, because the inviting team must not learn that the account exists, but
 * cannot accept the invitation (409).
 */
#ifndef API_IDENTITY_INVITATION_H
#define API_IDENTITY_INVITATION_H

#include "api/http/request.h"

enum { INVITATION_MAX_PER_TENANT = 1000 };

enum err_code invitation_list(struct request *request, struct response *response, struct err *err);
enum err_code invitation_post(struct request *request, struct response *response, struct err *err);
enum err_code invitation_delete(struct request *request, struct response *response,
                                struct err *err);
/* Reports whether the secret of a link is valid, and for which team, e-mail and role. */
enum err_code invitation_look(struct request *request, struct response *response, struct err *err);
enum err_code invitation_accept(struct request *request, struct response *response,
                                struct err *err);

#endif
