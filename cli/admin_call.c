/*
 * What administrators ask of the server, as a table: which request, which of the arguments go
 * where, and what of the answer is shown.
 */
#include "cli/admin.h"
#include "cli/client.h"
#include "cli/link.h"
#include "cli/value.h"
#include "lib/base/mem.h"

#include <inttypes.h>

enum { MAX_COLUMNS = 8, MAX_CELL_COLUMNS = 48, MAX_CELL_BYTES = 4096, PAGE_SIZE = 100 };

enum uses {
    TAKES_ID = 1 << 0,        /* the first argument goes into the path */
    TAKES_PAIRS = 1 << 1,     /* KEY=VALUE … become the body */
    NEEDS_TENANT = 1 << 2,    /* --tenant goes into the path */
    MAY_HAVE_TENANT = 1 << 3, /* with --tenant, tenant_path is used */
    TAKES_ROLE = 1 << 4,
    TAKES_SCOPES = 1 << 5,
    TAKES_EXPIRES = 1 << 6,
    TAKES_REASON = 1 << 7,
    NEEDS_YES = 1 << 8,
    IS_OPTIONAL = 1 << 9, /* the field argument may be left out */
    TAKES_LINK = 1 << 10, /* the first argument is a share's link or id and goes into the path */
    IS_PAGED = 1 << 11,
    TAKES_NAME = 1 << 12,
};

struct call {
    const char *noun, *verb;
    const char *arguments; /* for help */
    const char *summary;
    const char *method;
    const char *path; /* with one %s for the id or the tenant */
    const char *tenant_path;
    const char *field; /* of the body that the (next) argument becomes */
    unsigned uses;
    const char *result;               /* member to print on standard output */
    const char *columns[MAX_COLUMNS]; /* of a list */
};

#define TENANTS "/api/v1/admin/tenants"

static const struct call calls[] = {
    {"tenant",
     "list",
     "",
     "list the server's tenants",
     "GET",
     TENANTS,
     NULL,
     NULL,
     0,
     NULL,
     {"id", "name", "created_at", "usage.users", "usage.bytes_stored", "quotas.max_bytes_stored"}},
    {"tenant", "create", "NAME", "make a tenant", "POST", TENANTS, NULL, "name", 0, "id", {0}},
    {"tenant",
     "show",
     "ID",
     "show a tenant with its usage and limits",
     "GET",
     TENANTS "/%s",
     NULL,
     NULL,
     TAKES_ID,
     NULL,
     {0}},
    {"tenant",
     "set",
     "ID KEY=VALUE...",
     "change its name or limits",
     "PATCH",
     TENANTS "/%s",
     NULL,
     NULL,
     TAKES_ID | TAKES_PAIRS,
     NULL,
     {0}},
    {"tenant",
     "delete",
     "ID --yes",
     "delete a tenant and all that it has",
     "DELETE",
     TENANTS "/%s",
     NULL,
     NULL,
     TAKES_ID | NEEDS_YES,
     NULL,
     {0}},
    {"user",
     "list",
     "",
     "list the users of your tenant",
     "GET",
     "/api/v1/users",
     NULL,
     NULL,
     0,
     NULL,
     {"id", "email", "name", "role", "created_at"}},
    {"user",
     "add",
     "EMAIL --tenant ID [--role ROLE]",
     "add a user to a tenant",
     "POST",
     TENANTS "/%s/users",
     NULL,
     "email",
     NEEDS_TENANT | TAKES_ROLE | TAKES_NAME,
     "url",
     {0}},
    {"user",
     "role",
     "ID ROLE",
     "make a user owner, member or viewer",
     "PATCH",
     "/api/v1/users/%s",
     NULL,
     "role",
     TAKES_ID,
     NULL,
     {0}},
    {"user",
     "remove",
     "ID",
     "remove a user from your tenant",
     "DELETE",
     "/api/v1/users/%s",
     NULL,
     NULL,
     TAKES_ID,
     NULL,
     {0}},
    {"token",
     "list",
     "",
     "list the tokens of your tenant",
     "GET",
     "/api/v1/tokens",
     NULL,
     NULL,
     0,
     NULL,
     {"id", "name", "scopes", "created_at", "last_used_at", "expires_at"}},
    {"token",
     "create",
     "NAME [--scopes A,B] [--expires TIME] [--tenant ID]",
     "make a token and print it",
     "POST",
     "/api/v1/tokens",
     TENANTS "/%s/tokens",
     "name",
     MAY_HAVE_TENANT | TAKES_SCOPES | TAKES_EXPIRES,
     "token",
     {0}},
    {"token",
     "revoke",
     "ID",
     "revoke a token",
     "DELETE",
     "/api/v1/tokens/%s",
     NULL,
     NULL,
     TAKES_ID,
     NULL,
     {0}},
    {"invite",
     "create",
     "EMAIL [--role ROLE]",
     "invite someone and print the link",
     "POST",
     "/api/v1/invitations",
     NULL,
     "email",
     TAKES_ROLE,
     "url",
     {0}},
    {"invite",
     "list",
     "",
     "list open invitations",
     "GET",
     "/api/v1/invitations",
     NULL,
     NULL,
     0,
     NULL,
     {"id", "email", "role", "created_at", "expires_at"}},
    {"invite",
     "revoke",
     "ID",
     "take an invitation back",
     "DELETE",
     "/api/v1/invitations/%s",
     NULL,
     NULL,
     TAKES_ID,
     NULL,
     {0}},
    {"login-link",
     NULL,
     "[EMAIL]",
     "make a one-time sign-in link",
     "POST",
     "/api/v1/admin/login-codes",
     NULL,
     "email",
     IS_OPTIONAL,
     "url",
     {0}},
    {"report",
     "list",
     "",
     "list what viewers reported",
     "GET",
     "/api/v1/admin/reports",
     NULL,
     NULL,
     IS_PAGED,
     NULL,
     {"id", "share_id", "created_at", "reason"}},
    {"share",
     "takedown",
     "LINK --reason TEXT",
     "take a share down",
     "POST",
     "/api/v1/admin/shares/%s/takedown",
     NULL,
     NULL,
     TAKES_LINK | TAKES_REASON,
     NULL,
     {0}},
    {"audit",
     NULL,
     "",
     "show who did what in your tenant",
     "GET",
     "/api/v1/audit",
     NULL,
     NULL,
     IS_PAGED,
     NULL,
     {"at", "actor", "action", "target", "address"}},
};
enum { CALL_COUNT = sizeof(calls) / sizeof(calls[0]) };

void admin_print_calls(const struct cli *cli)
{
    const char *bold = terminal_style(&cli->terminal, stdout, STYLE_BOLD);
    const char *reset = terminal_style(&cli->terminal, stdout, STYLE_RESET);
    for (size_t i = 0; i < CALL_COUNT; i++) {
        const struct call *call = &calls[i];
        printf("  %s%s%s%s%s %s\n      %s\n", bold, call->noun, call->verb ? " " : "",
               call->verb ? call->verb : "", reset, call->arguments, call->summary);
    }
    printf("  %sbackup%s, %srestore%s [ARGUMENTS]\n"
           "      run perfoliod's subcommand of that name on this machine\n",
           bold, reset, bold, reset);
}

static const struct call *find_call(struct admin *admin)
{
    for (size_t i = 0; i < CALL_COUNT; i++) {
        const struct call *call = &calls[i];
        if (strcmp(call->noun, admin->noun) != 0)
            continue;
        if (!call->verb)
            return call;
        if (admin->arguments.count && strcmp(call->verb, admin->arguments.texts[0]) == 0) {
            admin->verb = call->verb;
            admin->arguments.texts++;
            admin->arguments.count--;
            return call;
        }
    }
    return NULL;
}

static const char *take_argument(struct admin *admin)
{
    if (admin->arguments.count == 0)
        return NULL;
    admin->arguments.count--;
    return *admin->arguments.texts++;
}

static enum err_code usage(struct admin *admin, const struct call *call, struct err *err)
{
    return cli_usage(admin->cli, err, "usage: perfolio admin %s%s%s %s", call->noun,
                     call->verb ? " " : "", call->verb ? call->verb : "", call->arguments);
}

/* Numbers, true, false and null as such, the rest as text. */
static json_t *value_of(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    if (value && !json_is_object(value) && !json_is_array(value))
        return value;
    json_decref(value);
    return json_string(text);
}

static json_t *split_list(const char *text)
{
    json_t *list = json_array();
    struct span rest = span_text(text), item;
    while (rest.size) {
        span_split(rest, ',', &item, &rest);
        item = span_trim(item);
        if (item.size)
            json_array_append_new(list, json_stringn((const char *)item.data, item.size));
    }
    return list;
}

static bool fill_body(struct admin *admin, const struct call *call, json_t *body)
{
    const char *text = call->field ? take_argument(admin) : NULL;
    if (text)
        json_object_set_new(body, call->field, json_string(text));
    else if (call->field && !(call->uses & IS_OPTIONAL))
        return false;
    if (call->uses & TAKES_PAIRS) {
        bool has_any = false;
        for (text = take_argument(admin); text; text = take_argument(admin), has_any = true) {
            const char *equals = strchr(text, '=');
            if (!equals || equals == text)
                return false;
            char *key = arena_strndup(admin->cli->arena, text, (size_t)(equals - text));
            json_object_set_new(body, key, value_of(equals + 1));
        }
        if (!has_any)
            return false;
    }
    if (call->uses & TAKES_ROLE)
        json_object_set_new(body, "role", json_string(admin->role ? admin->role : "member"));
    if ((call->uses & TAKES_NAME) && admin->name)
        json_object_set_new(body, "name", json_string(admin->name));
    if ((call->uses & TAKES_EXPIRES) && admin->expires)
        json_object_set_new(body, "expires", json_string(admin->expires));
    if (call->uses & TAKES_SCOPES)
        json_object_set_new(body, "scopes",
                            split_list(admin->scopes ? admin->scopes : "share,read"));
    if (call->uses & TAKES_REASON) {
        if (!admin->reason)
            return false;
        json_object_set_new(body, "reason", json_string(admin->reason));
    }
    return admin->arguments.count == 0;
}

static const char *fill_path(struct admin *admin, const struct call *call)
{
    struct arena *arena = admin->cli->arena;
    const char *pattern = call->path, *text = NULL;
    struct link link;
    if ((call->uses & MAY_HAVE_TENANT) && admin->tenant)
        pattern = call->tenant_path;
    if (!strstr(pattern, "%s"))
        return pattern;
    if (call->uses & (TAKES_ID | TAKES_LINK))
        text = take_argument(admin);
    else
        text = admin->tenant;
    if (text && (call->uses & TAKES_LINK))
        text = link_parse(text, arena, &link) && !link.is_diff ? link.a : NULL;
    if (!text || !text[0])
        return NULL;
    buf_auto path;
    buf_init(&path, MAX_CELL_BYTES);
    const char *gap = strstr(pattern, "%s");
    buf_append(&path, pattern, (size_t)(gap - pattern));
    buf_append_url(&path, span_text(text));
    buf_append_text(&path, gap + 2);
    return buf_failed(&path) ? NULL : arena_strndup(arena, path.data, path.size);
}

static void append_cell(struct buf *cell, const json_t *value)
{
    char time[VALUE_TEXT_BYTES];
    const json_t *item;
    size_t i;
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        bool is_time = strlen(text) >= 20 && text[4] == '-' && text[10] == 'T';
        terminal_append_clean(cell, span_text(is_time ? value_time(text, time) : text));
    } else if (json_is_integer(value)) {
        buf_printf(cell, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_boolean(value)) {
        buf_append_text(cell, json_is_true(value) ? "yes" : "no");
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, item)
        {
            buf_append_text(cell, i ? "," : "");
            append_cell(cell, item);
        }
    } else if (json_is_object(value)) {
        append_cell(cell,
                    json_object_get(value, json_object_get(value, "email") ? "email" : "name"));
    } else {
        buf_append_text(cell, "-");
    }
}

/* A member by name, or by "outer.inner". */
static const json_t *member_of(const json_t *row, const char *name)
{
    struct span outer, inner;
    if (!span_split(span_text(name), '.', &outer, &inner))
        return json_object_get(row, name);
    return json_object_get(json_object_getn(row, (const char *)outer.data, outer.size),
                           (const char *)inner.data);
}

static const json_t *find_list(const json_t *answer)
{
    const char *name;
    json_t *member;
    if (json_is_array(answer))
        return answer;
    json_object_foreach((json_t *)(uintptr_t)answer, name, member)
    {
        if (json_is_array(member))
            return member;
    }
    return NULL;
}

static const char *heading_of(const char *column)
{
    const char *dot = strchr(column, '.');
    return dot ? dot + 1 : column;
}

static void print_columns(const struct cli *cli, const struct call *call, const json_t *list)
{
    int widths[MAX_COLUMNS] = {0};
    buf_auto cell;
    buf_init(&cell, MAX_CELL_BYTES);
    size_t i;
    const json_t *row;
    for (int column = 0; column < MAX_COLUMNS && call->columns[column]; column++) {
        widths[column] = (int)strlen(heading_of(call->columns[column]));
        json_array_foreach(list, i, row)
        {
            buf_clear(&cell);
            append_cell(&cell, member_of(row, call->columns[column]));
            int width = terminal_width(buf_span(&cell));
            widths[column] = width > widths[column] ? width : widths[column];
        }
        if (cli->terminal.is_output_terminal && widths[column] > MAX_CELL_COLUMNS)
            widths[column] = MAX_CELL_COLUMNS;
    }
    fputs(terminal_style(&cli->terminal, stdout, STYLE_BOLD), stdout);
    for (int column = 0; column < MAX_COLUMNS && call->columns[column]; column++)
        printf("%s%-*s", column ? "  " : "", widths[column], heading_of(call->columns[column]));
    printf("%s\n", terminal_style(&cli->terminal, stdout, STYLE_RESET));
    json_array_foreach(list, i, row)
    {
        for (int column = 0; column < MAX_COLUMNS && call->columns[column]; column++) {
            buf_clear(&cell);
            append_cell(&cell, member_of(row, call->columns[column]));
            fputs(column ? "  " : "", stdout);
            terminal_print_cell(stdout, buf_span(&cell), widths[column]);
        }
        putchar('\n');
    }
}

static void print_members(const json_t *answer)
{
    const char *name;
    json_t *member;
    buf_auto cell;
    buf_init(&cell, MAX_CELL_BYTES);
    json_object_foreach((json_t *)(uintptr_t)answer, name, member)
    {
        buf_clear(&cell);
        if (json_is_object(member)) {
            char *text = json_dumps(member, 0);
            terminal_append_clean(&cell, span_text(text));
            free(text);
        } else {
            append_cell(&cell, member);
        }
        printf("%-24s %.*s\n", name, SPAN_PRINT(buf_span(&cell)));
    }
}

static void print_answer(const struct admin *admin, const struct call *call, const json_t *answer)
{
    struct cli *cli = admin->cli;
    const json_t *list = call->columns[0] ? find_list(answer) : NULL;
    const json_t *result = call->result ? json_object_get(answer, call->result) : NULL;
    if (admin->is_json && answer) {
        json_dumpf(answer, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
        putchar('\n');
    } else if (list) {
        print_columns(cli, call, list);
    } else if (result && json_is_string(result)) {
        puts(json_string_value(result));
    } else if (result && json_is_integer(result)) {
        printf("%" JSON_INTEGER_FORMAT "\n", json_integer_value(result));
    } else if (answer && strcmp(call->method, "GET") == 0) {
        print_members(answer);
    } else {
        terminal_note(&cli->terminal, "done");
    }
    if (list && client_text(answer, "next_cursor", NULL))
        terminal_note(&cli->terminal, "there are more than these");
}

enum err_code admin_call(struct admin *admin, struct err *err)
{
    const struct call *call = find_call(admin);
    if (!call)
        return cli_usage(admin->cli, err,
                         "perfolio admin does not know that; perfolio admin help lists what it "
                         "knows");
    json_auto_t *body = json_object(), *answer = NULL;
    client_auto client = NULL;
    const char *path = fill_path(admin, call);
    bool has_body = strcmp(call->method, "POST") == 0 || strcmp(call->method, "PATCH") == 0;
    if (!path || !fill_body(admin, call, body))
        return usage(admin, call, err);
    if ((call->uses & NEEDS_YES) && !admin->is_confirmed)
        return cli_usage(admin->cli, err, "this cannot be undone: say --yes");
    if (call->uses & IS_PAGED)
        path = arena_printf(admin->cli->arena, "%s?limit=%d", path, PAGE_SIZE);
    enum err_code code = cli_connect(admin->cli, NULL, &client, err);
    if (!code)
        code = client_call_json(client, call->method, path, has_body ? body : NULL, &answer, err);
    if (code)
        return code;
    print_answer(admin, call, answer);
    return cli_flush(err);
}
