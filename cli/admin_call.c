#include "cli/admin.h"
#include "cli/admin_print.h"
#include "cli/admin_table.h"
#include "cli/client.h"
#include "cli/link.h"
#include "lib/base/mem.h"

enum { MAX_PATH_BYTES = 4096, PAGE_SIZE = 100 };

void admin_print_calls(const struct cli *cli)
{
    const char *bold = terminal_style(&cli->terminal, stdout, STYLE_BOLD);
    const char *reset = terminal_style(&cli->terminal, stdout, STYLE_RESET);
    for (size_t i = 0; i < admin_call_count; i++) {
        const struct admin_call *call = &admin_calls[i];
        printf("  %s%s%s%s%s %s\n      %s\n", bold, call->noun, call->verb ? " " : "",
               call->verb ? call->verb : "", reset, call->arguments ? call->arguments : "",
               call->summary);
    }
    printf("  %sbackup%s, %srestore%s [ARGUMENTS]\n"
           "      run perfoliod's subcommand of that name on this machine\n",
           bold, reset, bold, reset);
}

static const struct admin_call *find_call(struct admin *admin)
{
    for (size_t i = 0; i < admin_call_count; i++) {
        const struct admin_call *call = &admin_calls[i];
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

static enum err_code usage(struct admin *admin, const struct admin_call *call, struct err *err)
{
    return cli_usage(admin->cli, err, "usage: perfolio admin %s%s%s %s", call->noun,
                     call->verb ? " " : "", call->verb ? call->verb : "",
                     call->arguments ? call->arguments : "");
}

/* An option that a call has no use for was meant to do something: say so, do not act without it. */
static const char *find_useless_option(const struct admin *admin, const struct admin_call *call)
{
    const struct {
        const char *name;
        unsigned uses;
        bool is_given;
    } options[] = {
        {"--tenant", NEEDS_TENANT | MAY_HAVE_TENANT, admin->tenant},
        {"--role", TAKES_ROLE, admin->role},
        {"--scopes", TAKES_SCOPES, admin->scopes},
        {"--expires", TAKES_EXPIRES, admin->expires},
        {"--reason", TAKES_REASON, admin->reason},
        {"--name", TAKES_NAME, admin->name},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (options[i].is_given && !(call->uses & options[i].uses))
            return options[i].name;
    }
    return NULL;
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

static bool fill_body(struct admin *admin, const struct admin_call *call, json_t *body)
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

static const char *fill_path(struct admin *admin, const struct admin_call *call)
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
    buf_init(&path, MAX_PATH_BYTES);
    const char *gap = strstr(pattern, "%s");
    buf_append(&path, pattern, (size_t)(gap - pattern));
    buf_append_url(&path, span_text(text));
    buf_append_text(&path, gap + 2);
    return buf_failed(&path) ? NULL : arena_strndup(arena, path.data, path.size);
}

enum err_code admin_call(struct admin *admin, struct err *err)
{
    const struct admin_call *call = find_call(admin);
    if (!call)
        return cli_usage(admin->cli, err,
                         "perfolio admin does not know that; perfolio admin help lists what it "
                         "knows");
    const char *useless = find_useless_option(admin, call);
    if (useless)
        return cli_usage(admin->cli, err, "perfolio admin %s%s%s does not take %s", call->noun,
                         call->verb ? " " : "", call->verb ? call->verb : "", useless);
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
    admin_print_answer(admin, call, answer);
    return cli_flush(err);
}
