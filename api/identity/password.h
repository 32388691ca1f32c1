/*
 * password: passwords of users and of shares, hashed with scrypt, few at a time.
 *
 * One hash takes 16 MiB and a fifth of a CPU second. At most two run at once and at most two
 * requests wait for them; more are refused (503), so a flood of attempts cannot occupy all workers.
 * Browsers with a device cookie have a third place of their own, and run before the guesses of
 * others (lib/base/low_priority.h). Threads: any.
 */
#ifndef API_IDENTITY_PASSWORD_H
#define API_IDENTITY_PASSWORD_H

#include "api/http/rate_limiter.h"
#include "lib/base/digest.h"

enum { PASSWORD_MIN_BYTES = 10, PASSWORD_MAX_BYTES = 256 };

/* Whether it is long enough for a user and not too long. Handles: ERR_INVALID. */
enum err_code password_check(struct span password, struct err *err) MUST_USE;

/* Computes the text to store. Handles: ERR_BUSY. */
enum err_code password_hash(struct rate_limiter *rate_limiter, struct span password,
                            char ret_text[DIGEST_PASSWORD_BYTES], struct err *err) MUST_USE;

/* Compares with a stored text. stored NULL or "" takes the same time and never matches, so the time
 * does not reveal whether there is an account. Handles: ERR_BUSY. */
enum err_code password_verify(struct rate_limiter *rate_limiter, enum limit_slot slot,
                              struct span password, const char *stored, bool *ret_matches,
                              struct err *err) MUST_USE;

#endif
