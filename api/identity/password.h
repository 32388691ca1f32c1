/*
 * password: passwords of users and of shares, hashed with scrypt, few at a time.
 *
 * One hash takes 16 MiB and a fifth of a CPU second. Every hash, for a right password, a wrong one
 * or a new one, is counted for the client's address (setting passwords-per-minute). At most two of
 * accounts run at once, of different addresses and at low priority, and three requests wait for
 * them; more are refused (503). So one client cannot keep others from signing in, and a flood of
 * attempts cannot occupy all workers. Passwords of shares, which anyone can make, have a place of
 * their own, for which two requests wait. Browsers with a device cookie have another one, at normal
 * priority; their hashes are counted by account. Threads: any.
 */
#ifndef API_IDENTITY_PASSWORD_H
#define API_IDENTITY_PASSWORD_H

#include "api/http/rate_limiter.h"
#include "lib/base/digest.h"

enum { PASSWORD_MIN_BYTES = 10, PASSWORD_MAX_BYTES = 256 };

/* Whether it is long enough for a user and not too long. Handles: ERR_INVALID. */
enum err_code password_check(struct span password, struct err *err) MUST_USE;

/* Computes the text to store. slot: SLOT_PASSWORD or SLOT_PASSWORD_SHARE; address: the client's.
 * Handles: ERR_BUSY, ERR_RATE_LIMITED. */
enum err_code password_hash(struct rate_limiter *rate_limiter, enum limit_slot slot,
                            struct span address, struct span password,
                            char ret_text[DIGEST_PASSWORD_BYTES], struct err *err) MUST_USE;

/* Compares with a stored text. stored NULL or "" takes the same time and never matches, so the time
 * does not reveal whether there is an account. source: see rate_limiter_enter; the caller counts
 * the attempt (api/identity/password_attempt.h). Handles: ERR_BUSY. */
enum err_code password_verify(struct rate_limiter *rate_limiter, enum limit_slot slot,
                              struct span source, struct span password, const char *stored,
                              bool *ret_matches, struct err *err) MUST_USE;

#endif
