/*
 * account: which server, with which token, trusting which CA.
 *
 * PERFOLIO_URL, PERFOLIO_TOKEN and PERFOLIO_CA_FILE win over what `perfolio login` has stored in
 * $XDG_CONFIG_HOME/perfolio/config.ini ([server] url, token, ca_file). A stored token and CA file
 * belong to the stored server: with another PERFOLIO_URL they are not used.
 */
#ifndef CLI_ACCOUNT_H
#define CLI_ACCOUNT_H

#include "lib/base/err.h"

#include <stdbool.h>

struct arena;

struct account {
    const char *url;     /* without "/" at its end; NULL when none is known */
    const char *token;   /* NULL: anonymous */
    const char *ca_file; /* NULL: the system's */
    const char *config_file;
    bool is_readable_by_others; /* the settings file, and it holds a token: worth a warning */
};

/* Texts live in arena. Handles: ERR_INVALID (settings file, or a URL that is none), ERR_IO. */
enum err_code account_load(struct arena *arena, struct account *ret_account,
                           struct err *err) MUST_USE;

/* Replaces what is stored; NULLs remove. Handles: ERR_INVALID, ERR_IO. */
enum err_code account_save(const struct account *account, struct err *err) MUST_USE;

/* http(s)://host[:port][/prefix] without trailing slashes, query, fragment and user information.
 * Handles: ERR_INVALID. */
enum err_code account_clean_url(const char *url, struct arena *arena, const char **ret_url,
                                struct err *err) MUST_USE;

/* May a secret travel to that server: https, or http to this machine only. */
bool account_is_confidential(const char *url);

#endif
