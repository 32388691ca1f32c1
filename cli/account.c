#include "cli/account.h"

#include "cli/link.h"
#include "cli/token_destination.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/input/config.h"
#include "lib/input/secret.h"

#include <stdlib.h>
#include <strings.h>

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

enum err_code account_clean_url(const char *url, struct arena *arena, const char **ret_url,
                                struct err *err)
{
    size_t length = strlen(url);
    const char *host = link_is_url(url) ? strstr(url, "://") + 3 : NULL;
    while (length && url[length - 1] == '/')
        length--;
    if (!host || host >= url + length)
        return err_set(err, ERR_INVALID, "invalid server URL \"%.100s\": use https://host[:port]",
                       url);
    for (const char *at = url; at < url + length; at++) {
        if ((unsigned char)*at <= ' ' || strchr("?#@\\\"<>", *at))
            return err_set(err, ERR_INVALID,
                           "a server URL is https://host[:port] without user, query or fragment");
    }
    *ret_url = arena_strndup(arena, url, length);
    return ERR_NONE;
}

/* Removes white space around the token, such as a line break copied from a file. If nothing is
 * left, *ret_token is not set. */
static enum err_code read_token(const char *text, const char *source, struct arena *arena,
                                const char **ret_token, struct err *err)
{
    const struct span token = span_trim(span_text(text));
    if (token.size == 0)
        return ERR_NONE;
    const enum err_code code = secret_check_token(token, source, err);
    if (code)
        return code;
    *ret_token = arena_strndup(arena, token.data, token.size);
    return ERR_NONE;
}

enum err_code account_load(struct arena *arena, struct account *ret_account, struct err *err)
{
    struct account account = {.url = env("PERFOLIO_URL"), .ca_file = env("PERFOLIO_CA_FILE")};
    const char *token = env("PERFOLIO_TOKEN");
    config_auto config = NULL;
    enum err_code code =
        token ? read_token(token, "PERFOLIO_TOKEN", arena, &account.token, err) : ERR_NONE;
    if (code)
        return code;
    code = config_path(CONFIG_FOLDER_CONFIG, "config.ini", arena, &account.config_file, err);
    if (code)
        return code;
    code = config_load(account.config_file, &config, err);
    if (code)
        return code;
    const char *stored_url = config_get(config, "server", "url");
    const char *stored_token = config_get(config, "server", "token");
    const char *stored_ca = config_get(config, "server", "ca_file");
    account.is_readable_by_others = stored_token && !config_is_private(config);
    bool is_stored_server =
        stored_url && (!account.url || token_destination_is_same(account.url, stored_url));
    if (!account.url && stored_url)
        account.url = arena_strdup(arena, stored_url);
    if (!account.token && stored_token && is_stored_server)
        code = read_token(stored_token, account.config_file, arena, &account.token, err);
    if (code)
        return code;
    if (!account.ca_file && stored_ca && is_stored_server)
        account.ca_file = arena_strdup(arena, stored_ca);
    if (account.url) {
        code = account_clean_url(account.url, arena, &account.url, err);
        if (code)
            return err_add(err, "%s", env("PERFOLIO_URL") ? "PERFOLIO_URL" : account.config_file);
    }
    *ret_account = account;
    return ERR_NONE;
}

enum err_code account_save(const struct account *account, struct err *err)
{
    config_auto config = NULL;
    enum err_code code = config_load(account->config_file, &config, err);
    if (code)
        return code;
    config_set(config, "server", "url", account->url);
    config_set(config, "server", "token", account->token);
    config_set(config, "server", "ca_file", account->ca_file);
    return config_save(config, err);
}
