#include "cli/arguments.h"
#include "cli/linked_object.h"
#include "cli/stored_share.h"
#include "cli/token_destination.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

struct delete
{
    struct cli *cli;
    struct arguments arguments;
    const char *token;
};

static const struct option_row rows[] = {
    {"token", 't', "TOKEN",
     "The delete token that came with the share (- reads it from "
     "standard input)",
     OPTION_TEXT(struct delete, token)},
    {0},
};

static enum err_code check_arguments(void *values, struct err *err)
{
    const struct delete *delete = values;
    return delete->token && delete->arguments.texts.count > 1
               ? err_set(err, ERR_INVALID, "--token can be used with one share only")
               : ERR_NONE;
}

static const struct option_part parts[] = {ARGUMENTS_PART(offsetof(struct delete, arguments)), {0}};
static const struct option_table options = {
    .rows = rows,
    .check = check_arguments,
    .arguments = "LINK...",
    .text = "Delete shares permanently.\v"
            "Shares that you pushed from this machine need no token, because their delete tokens "
            "are stored here. On other machines use the delete token, the delete link "
            "(LINK/delete#TOKEN) or an account with the right to delete. With --token, only that "
            "token is used.",
    .parts = parts,
};

/* The token that the user gave, on the command line or in the link; no other one is then used. */
static const char *given_token(const struct delete *delete, const struct linked_object *target)
{
    return delete->token ? delete->token : target->link.delete_token;
}

/* The delete token that push stored; NULL: use the account's token. */
static const char *stored_token(const struct delete *delete, const struct linked_object *target)
{
    struct stored_share stored;
    struct link stored_link;
    struct err ignored;
    struct arena *arena = delete->cli->arena;
    /* Sent only to the server that issued it. */
    if (stored_share_find(target->link.a, arena, &stored, &ignored) || !stored.delete_token[0] ||
        !link_parse(stored.url, arena, &stored_link) || !stored_link.base ||
        !token_destination_is_same(stored_link.base, client_base(target->client)))
        return NULL;
    return stored.delete_token;
}

static enum err_code delete_one(void *context, const char *text, struct err *err)
{
    const struct delete *delete = context;
    struct cli *cli = delete->cli;
    linked_object_auto target = {0};
    enum err_code code = linked_object_open(cli, text, &target, err);
    if (code)
        return code;
    const char *given = given_token(delete, &target);
    const char *token = given ? given : stored_token(delete, &target);
    if (!token && !client_has_token(target.client))
        return err_set(
            err, ERR_UNAUTHENTICATED,
            "no delete token of %s is stored here: it was deleted already, or pushed from "
            "another machine, whose delete token --token takes",
            text);
    if (token && !token_destination_is_confidential(client_base(target.client)))
        return cli_usage(cli, err, "a delete token cannot be sent unencrypted: use https");
    http_client_response_auto response;
    http_client_response_init(&response);
    struct client_request request;
    client_request_init(&request, "DELETE",
                        arena_printf(cli->arena, "/api/v1/shares/%s", target.link.a));
    if (token)
        client_request_add(&request, "X-Perfolio-Delete-Token", token);
    request.is_anonymous = given;
    code = client_send(target.client, &request, &response, err);
    if (!code || code == ERR_GONE)
        stored_share_remove(target.link.a);
    if (code)
        return err_add(err, "%s", text);
    terminal_note(&cli->terminal, "deleted %s/p/%s", client_base(target.client), target.link.a);
    return ERR_NONE;
}

static enum err_code run_delete(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct delete delete = {.cli = cli,
                            .arguments = {.cli = cli, .wanted = "give a link or an id"}};
    enum err_code code = ERR_NONE;
    cli_parse(&delete_command, argc, argv, &delete);
    if (delete.token && strcmp(delete.token, "-") == 0)
        code = cli_read_secret(cli, "-", &delete.token, err);
    return code ? code : arguments_each(&delete.arguments, "deleted", delete_one, &delete, err);
}

const struct command delete_command = {
    .name = "delete",
    .summary = "delete shares",
    .options = &options,
    .arguments = ARGUMENTS_LINKS,
    .run = run_delete,
};
