/*
 * device_cookie: marks a browser that has signed in to an account, so that guesses of others at the
 * password do not delay this browser (api/identity/password_attempt.h). The design is that of
 * OWASP's "Slow Down Online Guessing Attacks with Device Cookies".
 *
 * The cookie contains the time of the sign-in, a random id and an HMAC of both and the account's
 * e-mail under the server's durable key; nothing is stored. It proves no identity and grants
 * nothing. It lasts for DEVICE_COOKIE_LIFETIME_S. A browser has one cookie, for the account that it
 * signed in to last.
 */
#ifndef API_IDENTITY_DEVICE_COOKIE_H
#define API_IDENTITY_DEVICE_COOKIE_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

struct request;
struct response;

#define DEVICE_COOKIE "__Host-perfolio_device"
enum { DEVICE_COOKIE_LIFETIME_S = 180 * 86400 };

/* Adds a new cookie for account, the e-mail as the database compares it. Errors: ERR_DATABASE,
 * ERR_BUSY. */
enum err_code device_cookie_add(struct request *request, struct response *response,
                                const char *account, struct err *err) MUST_USE;

/* The id in the request's cookie, borrowed from the request; empty if the cookie is missing, of
 * another account, forged or too old. Errors: ERR_DATABASE, ERR_BUSY. */
enum err_code device_cookie_find(struct request *request, const char *account, struct span *ret_id,
                                 struct err *err) MUST_USE;

#endif
