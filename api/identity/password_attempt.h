/*
 * password_attempt: limits the guesses at the password of an account or of a share.
 *
 * Wrong passwords from one address must not delay the right one from another address, and many
 * addresses together must not guess without bound. A password belongs to one e-mail or one share.
 *
 *   per address               passwords-per-minute (30) attempts, right or wrong, twice as many at
 *                             once
 *   per address               20 failures, then a wait of 1 s that doubles up to 1 h
 *   per address and password  5 failures, then a wait of 1 s that doubles up to 1 h; forgotten
 *                             after a day without a failure
 *   per password              600 wrong ones, and 10 a minute more, from all addresses together
 *
 * So N addresses together have at most 41 * N guesses at one password on the first day and 24 * N
 * on each further day, and never more than 600 + 14,400 a day, per server process.
 *
 * A browser that has signed in to the account before proves it with its device cookie
 * (api/identity/device_cookie.h). It is not subject to these limits, but has a limit and a slot for
 * hashing of its own: 10 failures, then a wait of 1 s that doubles up to 1 h. All such browsers of
 * an account together have passwords-per-minute attempts. So the owner of an account can sign in
 * there even while other addresses have used up the limit of the password.
 * Threads: any.
 */
#ifndef API_IDENTITY_PASSWORD_ATTEMPT_H
#define API_IDENTITY_PASSWORD_ATTEMPT_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>

struct password_cache;
struct rate_limiter;

enum password_subject { PASSWORD_OF_ACCOUNT, PASSWORD_OF_SHARE };

struct password_attempt {
    enum password_subject subject;
    struct span key;     /* the e-mail as the database compares it, or the share's id */
    struct span address; /* of the client */
    struct span device;  /* the id in a valid device cookie for the account; else empty */
};

/* Compares password with stored within the limits: with the cache, then by a hash
 * (password_verify). Errors: ERR_RATE_LIMITED (a limit is reached; nothing was compared), ERR_BUSY
 * (too many are being compared). */
enum err_code password_attempt_verify(struct password_cache *cache,
                                      struct rate_limiter *rate_limiter,
                                      const struct password_attempt *attempt, struct span password,
                                      const char *stored, bool *ret_matches,
                                      struct err *err) MUST_USE;

#endif
