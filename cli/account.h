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
    const char *url;            /* without "/" at its end; NULL: not set */
    const char *token;          /* NULL: anonymous */
    const char *ca_file;        /* NULL: the system's */
    const char *config_file;    /* path of the settings file, which may not exist; never NULL */
    bool is_readable_by_others; /* the settings file contains a token and others can read it */
};

/* Reads the environment and the settings file. Texts are in arena or in the environment. Errors:
 * ERR_INVALID (the settings file, the URL or the token is malformed), ERR_IO. */
enum err_code account_load(struct arena *arena, struct account *ret_account,
                           struct err *err) MUST_USE;

/* Writes url, token and ca_file to the settings file; a NULL member is removed from it. Other
 * settings in the file are kept. Errors: ERR_INVALID (the present file is malformed), ERR_IO. */
enum err_code account_save(const struct account *account, struct err *err) MUST_USE;

/* Checks that url has the form http(s)://host[:port][/prefix] and removes slashes from its end.
 * *ret_url is in arena. Errors: ERR_INVALID (another form, user information, a query, a fragment, a
 * blank or a control character). */
enum err_code account_clean_url(const char *url, struct arena *arena, const char **ret_url,
                                struct err *err) MUST_USE;

#endif
