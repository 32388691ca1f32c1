/*
 * password: passwords of users and of shares, hashed with scrypt, few at a time.
 *
 * One hash takes 16 MiB and a fifth of a CPU second. Every hash, of a right, wrong or new password,
 * counts for the client's address (setting passwords-per-minute). At most two hashes for accounts
 * are computed at once, for different sites, and at low priority if the site has failed before;
 * RATE_LIMITER_WAITERS requests wait for their end, those from sites that have not failed before in
 * front; further ones are refused (503). So a client with many addresses cannot keep others from
 * signing in. The routes with ROUTE_PASSWORD have threads of their own, so such requests do not
 * occupy workers. Passwords of shares, which anyone can create, have one slot of their own, for
 * which one request waits. Another hash may be computed for a browser with a device cookie; it
 * counts for the account instead of the address. Threads: any.
 */
#ifndef API_IDENTITY_PASSWORD_H
#define API_IDENTITY_PASSWORD_H

#include "api/http/rate_limiter.h"
#include "lib/base/digest.h"

enum { PASSWORD_MIN_BYTES = 10, PASSWORD_MAX_BYTES = 256 };

/* Checks the length of a user's password. Errors: ERR_INVALID. */
enum err_code password_check(struct span password, struct err *err) MUST_USE;

/* Computes the text to store. slot: SLOT_PASSWORD or SLOT_PASSWORD_SHARE; address: the client's.
 * Errors: ERR_BUSY, ERR_RATE_LIMITED. */
enum err_code password_hash(struct rate_limiter *rate_limiter, enum limit_slot slot,
                            struct span address, struct span password,
                            char ret_text[DIGEST_PASSWORD_BYTES], struct err *err) MUST_USE;

/* Compares password with stored, a text of password_hash. NULL or "" takes the same time and never
 * matches, so the time does not reveal whether there is an account. slot and source: as for
 * rate_limiter_enter. Does not count the attempt; password_attempt_verify does. Errors: ERR_BUSY.
 */
enum err_code password_verify(struct rate_limiter *rate_limiter, enum limit_slot slot,
                              struct span source, struct span password, const char *stored,
                              bool *ret_matches, struct err *err) MUST_USE;

#endif
