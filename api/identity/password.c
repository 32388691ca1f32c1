#include "api/identity/password.h"

#include "lib/base/err.h"
#include "lib/base/low_priority.h"

#include <string.h>

/* A stored text that matches no password: its hash is all zeros. It has the parameters of new ones.
 */
#define NOBODYS_HASH                                                                               \
    "$scrypt$ln=14,r=8,p=5$00000000000000000000000000000000$"                                      \
    "0000000000000000000000000000000000000000000000000000000000000000"

enum err_code password_check(struct span password, struct err *err)
{
    if (password.size < PASSWORD_MIN_BYTES)
        return err_set(err, ERR_INVALID, "The password needs at least %d characters",
                       PASSWORD_MIN_BYTES);
    if (password.size > PASSWORD_MAX_BYTES)
        return err_set(err, ERR_INVALID, "The password is longer than %d bytes",
                       PASSWORD_MAX_BYTES);
    return ERR_NONE;
}

/* One computation. */
struct hashing {
    struct span password;
    const char *stored; /* for verifying; NULL: compute a hash */
    char *text;
    bool matches;
    enum err_code code;
    struct err *err;
};

static void run_scrypt(void *context)
{
    struct hashing *hashing = context;
    if (hashing->stored)
        hashing->code = digest_password_verify(hashing->password, hashing->stored,
                                               &hashing->matches, hashing->err);
    else
        hashing->code = digest_password_hash(hashing->password, hashing->text, hashing->err);
}

/* scrypt takes a fifth of a second, so it runs at low priority for clients that may be guessing and
 * for new passwords of shares, which anyone can set. For others it does not: beside busy threads of
 * normal priority such a hash would take a minute. */
static void hash_for(struct rate_limiter *rate_limiter, enum limit_slot slot, struct span source,
                     struct hashing *hashing)
{
    const bool is_new_of_share = slot == SLOT_PASSWORD_SHARE && !hashing->stored;
    if (slot != SLOT_PASSWORD_DEVICE &&
        (is_new_of_share || rate_limiter_has_failed(rate_limiter, source)))
        low_priority_call(LOW_PRIORITY_NICE, run_scrypt, hashing);
    else
        run_scrypt(hashing);
}

enum err_code password_hash(struct rate_limiter *rate_limiter, enum limit_slot slot,
                            struct span address, struct span password,
                            char ret_text[DIGEST_PASSWORD_BYTES], struct err *err)
{
    enum err_code code =
        rate_limiter_take_password(rate_limiter, LIMIT_PASSWORD_ADDRESS, address, err);
    if (code)
        return code;
    code = rate_limiter_enter(rate_limiter, slot, address, err);
    if (code)
        return code;
    struct hashing hashing = {.password = password, .text = ret_text, .err = err};
    hash_for(rate_limiter, slot, address, &hashing);
    rate_limiter_leave(rate_limiter, slot, address);
    return hashing.code;
}

enum err_code password_verify(struct rate_limiter *rate_limiter, enum limit_slot slot,
                              struct span source, struct span password, const char *stored,
                              bool *ret_matches, struct err *err)
{
    bool has_hash = stored && stored[0] != '\0';
    if (password.size > PASSWORD_MAX_BYTES) {
        *ret_matches = false;
        return ERR_NONE;
    }
    enum err_code code = rate_limiter_enter(rate_limiter, slot, source, err);
    if (code)
        return code;
    struct hashing hashing = {
        .password = password, .stored = has_hash ? stored : NOBODYS_HASH, .err = err};
    hash_for(rate_limiter, slot, source, &hashing);
    rate_limiter_leave(rate_limiter, slot, source);
    if (hashing.code)
        return hashing.code;
    *ret_matches = hashing.matches && has_hash;
    return ERR_NONE;
}
