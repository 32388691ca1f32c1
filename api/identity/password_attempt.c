#include "api/identity/password_attempt.h"

#include "api/http/rate_limiter.h"
#include "api/identity/password.h"
#include "api/identity/password_cache.h"

#include <stdio.h>

enum { PER_MINUTE = 10, BURST = 600, PAIR_BYTES = 512 };

struct attempt_kinds {
    enum limit_kind address, pair, all;
};

static const struct attempt_kinds kinds_of[] = {
    [PASSWORD_OF_ACCOUNT] = {LIMIT_SIGN_IN_ADDRESS, LIMIT_SIGN_IN_PAIR, LIMIT_SIGN_IN_ACCOUNT},
    [PASSWORD_OF_SHARE] = {LIMIT_SHARE_PASSWORD_ADDRESS, LIMIT_SHARE_PASSWORD_PAIR,
                           LIMIT_SHARE_PASSWORD},
};

/* The key for the pair of address and password. */
static struct span pair_of(const struct password_attempt *attempt, char text[PAIR_BYTES])
{
    char subscriber[RATE_LIMITER_SUBSCRIBER_BYTES];
    rate_limiter_subscriber(attempt->address, subscriber);
    snprintf(text, PAIR_BYTES, "%s %.*s", subscriber, SPAN_PRINT(attempt->key));
    return span_text(text);
}

static void forgive_address(struct rate_limiter *rate_limiter,
                            const struct password_attempt *attempt)
{
    rate_limiter_forgive(rate_limiter, kinds_of[attempt->subject].address, attempt->address);
    rate_limiter_forgive(rate_limiter, LIMIT_SIGN_IN_SITE, attempt->address);
}

/* Counts a failure before the result is known, so that parallel attempts cannot all pass the check.
 * forgive_attempt takes it back. */
static enum err_code begin_attempt(struct rate_limiter *rate_limiter,
                                   const struct password_attempt *attempt, struct span pair,
                                   struct err *err)
{
    const struct attempt_kinds *kinds = &kinds_of[attempt->subject];
    enum err_code code;
    if (attempt->device.size) {
        code = rate_limiter_take_password(rate_limiter, LIMIT_PASSWORD_DEVICES, attempt->key, err);
        return code
                   ? code
                   : rate_limiter_attempt(rate_limiter, LIMIT_SIGN_IN_DEVICE, attempt->device, err);
    }
    code = rate_limiter_take_password(rate_limiter, LIMIT_PASSWORD_ADDRESS, attempt->address, err);
    if (code)
        return code;
    code = rate_limiter_attempt(rate_limiter, kinds->address, attempt->address, err);
    if (code)
        return code;
    rate_limiter_fail(rate_limiter, LIMIT_SIGN_IN_SITE, attempt->address);
    code = rate_limiter_attempt(rate_limiter, kinds->pair, pair, err);
    if (code) {
        forgive_address(rate_limiter, attempt);
        return code;
    }
    code = rate_limiter_take(rate_limiter, kinds->all, attempt->key, PER_MINUTE, BURST, err);
    if (code) {
        forgive_address(rate_limiter, attempt);
        rate_limiter_forgive(rate_limiter, kinds->pair, pair);
    }
    return code;
}

static void forgive_attempt(struct rate_limiter *rate_limiter,
                            const struct password_attempt *attempt, struct span pair,
                            bool has_matched)
{
    const struct attempt_kinds *kinds = &kinds_of[attempt->subject];
    enum limit_kind own = attempt->device.size ? LIMIT_SIGN_IN_DEVICE : kinds->pair;
    struct span own_key = attempt->device.size ? attempt->device : pair;
    if (!attempt->device.size) {
        forgive_address(rate_limiter, attempt);
        rate_limiter_give_back(rate_limiter, kinds->all, attempt->key);
    }
    if (has_matched)
        rate_limiter_reset(rate_limiter, own, own_key);
    else
        rate_limiter_forgive(rate_limiter, own, own_key);
}

static enum limit_slot slot_of(const struct password_attempt *attempt)
{
    if (attempt->device.size)
        return SLOT_PASSWORD_DEVICE;
    return attempt->subject == PASSWORD_OF_SHARE ? SLOT_PASSWORD_SHARE : SLOT_PASSWORD;
}

enum err_code password_attempt_verify(struct password_cache *cache,
                                      struct rate_limiter *rate_limiter,
                                      const struct password_attempt *attempt, struct span password,
                                      const char *stored, bool *ret_matches, struct err *err)
{
    char text[PAIR_BYTES];
    struct span pair = pair_of(attempt, text);
    const bool is_known = attempt->device.size > 0;
    enum err_code code = begin_attempt(rate_limiter, attempt, pair, err);
    if (code)
        return code;
    bool matches = stored && password_cache_has(cache, stored, password);
    if (!matches) {
        code = password_verify(rate_limiter, slot_of(attempt),
                               is_known ? attempt->key : attempt->address, password, stored,
                               &matches, err);
        if (!code && matches)
            password_cache_add(cache, stored, password);
    }
    if (code || matches)
        forgive_attempt(rate_limiter, attempt, pair, !code);
    if (code)
        return code;
    *ret_matches = matches;
    return ERR_NONE;
}
