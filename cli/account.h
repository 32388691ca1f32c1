/*
 * account: the server, the token and the trusted CA.
 *
 * PERFOLIO_URL, PERFOLIO_TOKEN and PERFOLIO_CA_FILE take precedence over the settings that
 * `perfolio login` stores in $XDG_CONFIG_HOME/perfolio/config.ini ([server] url, token, ca_file). A
 * stored token and CA file belong to the stored server; they are not used if PERFOLIO_URL names
 * another server. client_create (cli/client.h) asks token_destination.h to which server the token
 * may be sent.
 */
#ifndef CLI_ACCOUNT_H
#define CLI_ACCOUNT_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct arena;

struct account {
    const char *url;     /* without "/" at its end; NULL: not set */
    const char *token;   /* NULL: anonymous */
    const char *ca_file; /* NULL: the system's */
    const char *config_file;
    bool is_readable_by_others; /* the settings file contains a token and others can read it */
};

/* Reads the environment and the settings file. Texts are in arena. Errors: ERR_INVALID (the
 * settings file or the URL is malformed), ERR_IO. */
enum err_code account_load(struct arena *arena, struct account *ret_account,
                           struct err *err) MUST_USE;

/* Replaces the stored settings; NULL members are removed. Errors: ERR_INVALID, ERR_IO. */
enum err_code account_save(const struct account *account, struct err *err) MUST_USE;

/* Returns http(s)://host[:port][/prefix] without trailing slashes, query, fragment and user
 * information. Errors: ERR_INVALID. */
enum err_code account_clean_url(const char *url, struct arena *arena, const char **ret_url,
                                struct err *err) MUST_USE;

#endif
