/*
 * share_access: decides who may see and who may change a share.
 *
 *   public, unlisted   anyone who has the link
 *   team               principals of the share's tenant with SCOPE_READ; the token that created
 *                      the share, also if it has only SCOPE_SHARE
 *   password           the same principals; and anyone who sends the password, in the header field
 *                      X-Perfolio-Password or once to /api/v1/shares/{id}/unlock, which sets a
 *                      signed cookie
 *
 * An anonymous client that requests a team share is asked to sign in (ERR_UNAUTHENTICATED); for
 * principals of other teams it does not exist (ERR_NOT_FOUND). Passwords are stored as scrypt
 * hashes; guesses are limited (api/identity/password_attempt.h). Threads: any.
 */
#ifndef API_SHARE_SHARE_ACCESS_H
#define API_SHARE_SHARE_ACCESS_H

#include "api/http/request.h"

struct share;

/* Whether the request may read the share. Errors: ERR_NOT_FOUND (a team share, the principal is of
 * another team), ERR_UNAUTHENTICATED (a team share, the client is anonymous; or the password is
 * missing or wrong), ERR_RATE_LIMITED (too many wrong passwords), ERR_BUSY (too many passwords are
 * being compared). */
enum err_code share_access_check_read(struct request *request, const struct share *share,
                                      struct err *err) MUST_USE;

/* share_find and share_access_check_read. *ret_share lives in the request's arena. Errors: those of
 * both. */
enum err_code share_access_find(struct request *request, struct span id, struct share *ret_share,
                                struct err *err) MUST_USE;

/* Whether the request's principal belongs to the share's tenant, has SCOPE_SHARE and may read the
 * share without its password. False for anonymous shares: their tenant has no members. */
bool share_access_is_editor(const struct request *request, const struct share *share);

/* Whether the request may change or delete the share: editors, and clients that present the delete
 * token in X-Perfolio-Delete-Token; if that field is sent, only the token in it counts. Errors:
 * ERR_FORBIDDEN (the delete token is wrong, or the principal's scopes do not suffice),
 * ERR_UNAUTHENTICATED (the client is anonymous), ERR_NOT_FOUND (the principal is of another team).
 */
enum err_code share_access_check_edit(struct request *request, const struct share *share,
                                      struct err *err) MUST_USE;

/* Checks a password typed into the form and, if it is right, adds the cookie that opens the share.
 * The share must have a password. Errors: ERR_UNAUTHENTICATED (it is wrong), ERR_RATE_LIMITED,
 * ERR_BUSY. */
enum err_code share_access_unlock(struct request *request, struct response *response,
                                  const struct share *share, struct span password,
                                  struct err *err) MUST_USE;

/* Public or unlisted: the link alone suffices. */
bool share_access_is_open(const struct share *share);

/* "public, no-cache" or "private, no-cache", depending on the share's visibility: clients always
 * revalidate, which is cheap with an ETag, so that a deleted share disappears at once. */
const char *share_access_cache_control(const struct share *share);

/* Adds X-Robots-Tag, which forbids search engines to index the share, unless it is public. */
void share_access_add_robots(struct request *request, struct response *response,
                             const struct share *share);

#endif
