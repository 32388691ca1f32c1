#include "api/password.h"

#include <string.h>

/* A stored text that no password fits: its hash is all zeros. Same parameters as new ones have. */
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

enum err_code password_hash(struct limiter *limiter, struct span password,
                            char ret_text[DIGEST_PASSWORD_BYTES], struct err *err)
{
    enum err_code code = limiter_enter(limiter, SLOT_PASSWORD, err);
    if (code)
        return code;
    code = digest_password_hash(password, ret_text, err);
    limiter_leave(limiter, SLOT_PASSWORD);
    return code;
}

enum err_code password_verify(struct limiter *limiter, enum limit_slot slot, struct span password,
                              const char *stored, bool *ret_matches, struct err *err)
{
    bool has_hash = stored && stored[0] != '\0';
    bool matches;
    if (password.size > PASSWORD_MAX_BYTES) {
        *ret_matches = false;
        return ERR_NONE;
    }
    enum err_code code = limiter_enter(limiter, slot, err);
    if (code)
        return code;
    code = digest_password_verify(password, has_hash ? stored : NOBODYS_HASH, &matches, err);
    limiter_leave(limiter, slot);
    if (!code)
        *ret_matches = matches && has_hash;
    return code;
}
