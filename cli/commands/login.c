#include "cli/cli.h"
#include "cli/client.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/input/secret.h"

#include <stdlib.h>
#include <unistd.h>

enum { MAX_TOKEN_BYTES = 1024 };

struct login {
    struct cli *cli;
    const char *url;
    const char *ca_file;
    const char *token_file;
    bool is_anonymous;
};

static const struct option_row rows[] = {
    {"ca-file", 0, "FILE", "Trust this CA (PEM) instead of the system's",
     OPTION_TEXT(struct login, ca_file)},
    {"token-file", 0, "FILE", "The token is the first line of FILE",
     OPTION_TEXT(struct login, token_file)},
    {"anonymous", 0, NULL, "Store the server without a token",
     OPTION_FLAG(struct login, is_anonymous)},
    {0},
};

static enum err_code take_server(void *values, const char *text, struct err *err)
{
    struct login *login = values;
    if (login->url)
        return err_set(
            err, ERR_INVALID,
            "one server only; the token is read from the terminal or from standard input");
    login->url = text;
    return ERR_NONE;
}

static const struct option_table options = {
    .rows = rows,
    .take_argument = take_server,
    .arguments = "[https://HOST[:PORT]]",
    .text = "Check a server, token and CA file and store them for later commands.\v"
            "The token is read from the terminal or from standard input, never from the command "
            "line. The default URL is PERFOLIO_URL or that of the last login.",
};

static enum err_code read_token(struct cli *cli, const char *file, const char **ret_token,
                                struct err *err)
{
    const enum err_code code = cli_read_secret(cli, file, ret_token, err);
    return code ? code
                : secret_check_token(span_text(*ret_token),
                                     strcmp(file, "-") == 0 ? "standard input" : file, err);
}

static enum err_code prompt_token(struct cli *cli, const char *url, const char **ret_token,
                                  struct err *err)
{
    if (!isatty(STDIN_FILENO))
        return read_token(cli, "-", ret_token, err);
    buf_auto typed;
    buf_init(&typed, MAX_TOKEN_BYTES);
    enum err_code code = terminal_prompt_secret(
        arena_printf(cli->arena, "Token for %s (a new one is made at %s/settings): ", url, url),
        &typed, err);
    if (code)
        return code;
    struct span token = span_trim(buf_span(&typed));
    if (token.size == 0)
        return cli_usage(cli, err,
                         "no token was given: use --anonymous to store the server without one");
    if (secret_check_token(token, "the typed text", err))
        return err->code;
    *ret_token = arena_strndup(cli->arena, token.data, token.size);
    return ERR_NONE;
}

static enum err_code gather_account(struct login *login, struct account *account, struct err *err)
{
    struct cli *cli = login->cli;
    enum err_code code = ERR_NONE;
    *account = cli->account;
    if (login->url) {
        code = account_clean_url(login->url, cli->arena, &account->url, err);
        if (code) {
            cli->is_usage_error = true;
            return code;
        }
        if (!getenv("PERFOLIO_CA_FILE")) /* the stored CA file belongs to another server */
            account->ca_file = NULL;
    }
    if (!account->url)
        return cli_usage(cli, err, "give the server: perfolio login https://host");
    if (login->ca_file)
        account->ca_file = login->ca_file;
    if (account->ca_file) { /* absolute, because later commands run in other folders */
        char *path = realpath(account->ca_file, NULL);
        if (!path)
            return err_set_errno(err, ERR_NOT_FOUND, "reading the CA file %s", account->ca_file);
        account->ca_file = arena_strdup(cli->arena, path);
        free(path);
    }
    const char *environment_token = getenv("PERFOLIO_TOKEN");
    account->token = NULL;
    if (login->is_anonymous)
        return ERR_NONE;
    if (login->token_file)
        return read_token(cli, login->token_file, &account->token, err);
    if (environment_token && span_trim(span_text(environment_token)).size) {
        account->token = cli->account.token; /* already validated */
        return ERR_NONE;
    }
    return prompt_token(cli, account->url, &account->token, err);
}

static void say_who(struct cli *cli, const struct account *account, const json_t *session)
{
    const json_t *user = json_object_get(session, "user");
    const json_t *tenant = json_object_get(session, "tenant");
    const char *tenant_name =
        json_is_string(tenant) ? json_string_value(tenant) : client_text(tenant, "name", "");
    const char *who = client_text(user, "email", client_text(user, "name", ""));
    if (!account->token)
        terminal_note(&cli->terminal, "%s is stored; sharing there is %s", account->url,
                      json_is_false(json_object_get(session, "anonymous_sharing"))
                          ? "for those with an account only"
                          : "open to all");
    else
        terminal_note(&cli->terminal, "signed in at %s%s%s%s%s", account->url, who[0] ? " as " : "",
                      who, tenant_name[0] ? " in tenant " : "", tenant_name);
    terminal_note(&cli->terminal, "stored in %s", account->config_file);
}

static enum err_code run_login(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct login login = {.cli = cli};
    struct account account;
    json_auto_t *session = NULL;
    client_auto client = NULL;
    cli_parse(&login_command, argc, argv, &login);
    enum err_code code = gather_account(&login, &account, err);
    if (code)
        return code;
    cli->account = account;
    code = cli_connect(cli, NULL, &client, err);
    if (code)
        return code;
    code = client_get_json(client, "/api/v1/session", &session, err);
    if (code == ERR_NOT_FOUND)
        return err_set(err, ERR_NETWORK, "%s is not a Perfolio server", account.url);
    if (code)
        return code;
    if (account.token && strcmp(client_text(session, "kind", ""), "anonymous") == 0)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "the server rejected the token: create a new one on its settings page");
    code = account_save(&account, err);
    if (code)
        return code;
    say_who(cli, &account, session);
    return ERR_NONE;
}

const struct command login_command = {
    .name = "login",
    .summary = "store server, token and CA file for later commands",
    .options = &options,
    .arguments = ARGUMENTS_NONE,
    .run = run_login,
};

static enum err_code refuse_argument(void *values, const char *text, struct err *err)
{
    (void)values;
    (void)text;
    return err_set(err, ERR_INVALID, "logout takes no arguments");
}

static const struct option_table logout_options = {
    .take_argument = refuse_argument,
    .text = "Remove the token, server and CA file that login stored.\v"
            "The token itself stays valid: revoke it on the server's settings page.",
};

static enum err_code run_logout(struct cli *cli, int argc, char **argv, struct err *err)
{
    cli_parse(&logout_command, argc, argv, NULL);
    const struct account nothing = {.config_file = cli->account.config_file};
    enum err_code code = account_save(&nothing, err);
    if (code)
        return code;
    terminal_note(&cli->terminal, "signed out; the token itself stays valid until it is revoked");
    return ERR_NONE;
}

const struct command logout_command = {
    .name = "logout",
    .summary = "remove the stored server, token and CA file",
    .options = &logout_options,
    .arguments = ARGUMENTS_NONE,
    .run = run_logout,
};
