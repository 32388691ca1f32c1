#include "cli/admin/admin.h"
#include "cli/admin/admin_print.h"
#include "cli/admin/admin_table.h"
#include "cli/client.h"
#include "cli/link.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

enum { MAX_PATH_BYTES = 4096, PAGE_SIZE = 100 };

static const char *take_argument(struct admin *admin)
{
    if (admin->arguments.count == 0)
        return NULL;
    admin->arguments.count--;
    return *admin->arguments.texts++;
}

static enum err_code refuse_usage(struct admin *admin, const struct admin_call *call,
                                  struct err *err)
{
    return cli_usage(admin->cli, err, "usage: perfolio admin %s%s%s %s", call->noun,
                     call->verb ? " " : "", call->verb ? call->verb : "",
                     call->arguments ? call->arguments : "");
}

/* Returns the first given option that the call does not use; NULL: none. The caller refuses it,
 * because ignoring it would hide a mistake. */
static const char *find_useless_option(const struct admin *admin, const struct admin_call *call)
{
    const struct {
        const char *name;
        bool is_given;
    } options[] = {
        {"tenant", admin->tenant},     {"role", admin->role},     {"scopes", admin->scopes},
        {"expires", admin->expires},   {"reason", admin->reason}, {"name", admin->name},
        {"start", admin->start},       {"end", admin->end},       {"keep", admin->keep},
        {"position", admin->position}, {"totals", admin->totals},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (options[i].is_given && !(call->uses & admin_option_uses(options[i].name)))
            return options[i].name;
    }
    return NULL;
}

/* Numbers, true, false and null become JSON literals, all other values strings. */
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

/* Makes the body of the arguments that fill_path has left, and of options. Returns false if one is
 * missing, malformed or too many. */
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
            json_object_set_new(body, key,
                                call->uses & TAKES_TEXTS ? json_string(equals + 1)
                                                         : value_of(equals + 1));
        }
        if (!has_any && !(call->uses & TAKES_TEXTS))
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
    if (call->uses & TAKES_KEEP) {
        if (!admin->keep)
            return false;
        json_object_set_new(body, "keep", json_string(admin->keep));
        if (admin->totals)
            json_object_set_new(body, "totals", json_string(admin->totals));
        if (admin->position)
            json_object_set_new(body, "position", value_of(admin->position));
    }
    if (call->uses & TAKES_REASON) {
        if (!admin->reason)
            return false;
        json_object_set_new(body, "reason", json_string(admin->reason));
    }
    return admin->arguments.count == 0;
}

/* The argument for the next %s of the path; NULL if it is missing or invalid. */
static const char *path_value(struct admin *admin, const struct admin_call *call, bool is_tenant)
{
    struct link link;
    if (is_tenant)
        return admin->tenant;
    const char *text = take_argument(admin);
    if (text && (call->uses & TAKES_LINK))
        return link_parse(text, admin->cli->arena, &link) && !link.is_diff ? link.a : NULL;
    return text;
}

/* Appends a parameter; the path has a query already, as find_useless_option has checked
 * (TAKES_WINDOW). */
static void append_time(struct buf *path, const char *name, const char *text)
{
    if (!text)
        return;
    buf_printf(path, "&%s=", name);
    buf_append_url(path, span_text(text));
}

/* Replaces each %s of the path. Call it before fill_body, because the first argument is that of the
 * path. NULL: an argument or the tenant is missing. */
static const char *fill_path(struct admin *admin, const struct admin_call *call)
{
    bool has_tenant = (call->uses & MAY_HAVE_TENANT) && admin->tenant;
    bool is_tenant = has_tenant || (call->uses & NEEDS_TENANT);
    const char *rest = has_tenant ? call->tenant_path : call->path;
    buf_auto path;
    buf_init(&path, MAX_PATH_BYTES);
    for (const char *gap; (gap = strstr(rest, "%s")) != NULL; rest = gap + 2) {
        const char *text = path_value(admin, call, is_tenant);
        if (!text || !text[0])
            return NULL;
        buf_append(&path, rest, (size_t)(gap - rest));
        buf_append_url(&path, span_text(text));
        is_tenant = false;
    }
    buf_append_text(&path, rest);
    append_time(&path, "start", admin->start);
    append_time(&path, "end", admin->end);
    return buf_failed(&path) ? NULL : arena_strndup(admin->cli->arena, path.data, path.size);
}

static json_t *find_list(json_t *response)
{
    const char *name;
    json_t *member;
    json_object_foreach(response, name, member)
    {
        if (json_is_array(member))
            return member;
    }
    return NULL;
}

/* Requests all pages; *ret_response is the first one with the rows of all of them. */
static enum err_code call_paged(struct admin *admin, struct client *client, const char *path,
                                json_t **ret_response, struct err *err)
{
    json_auto_t *all = NULL;
    const char *cursor = NULL;
    do {
        json_t *page = NULL;
        buf_auto url;
        buf_init(&url, MAX_PATH_BYTES);
        buf_printf(&url, "%s?limit=%d", path, PAGE_SIZE);
        if (cursor) {
            buf_append_text(&url, "&cursor=");
            buf_append_url(&url, span_text(cursor));
        }
        buf_append_byte(&url, 0);
        if (buf_failed(&url))
            return err_set(err, ERR_TOO_LARGE, "the server's cursor is too long");
        enum err_code code =
            client_call_json(client, "GET", (const char *)url.data, NULL, &page, err);
        if (code)
            return code;
        cursor = client_text(page, "next_cursor", NULL);
        if (cursor)
            cursor = arena_strdup(admin->cli->arena, cursor);
        if (!all) {
            all = page;
            continue;
        }
        json_t *list = find_list(all), *more = find_list(page);
        bool has_more = more && json_array_size(more) > 0;
        if (list && more)
            json_array_extend(list, more);
        json_decref(page);
        if (!has_more)
            break; /* the same cursor again would never end */
    } while (cursor);
    if (json_object_get(all, "next_cursor"))
        json_object_set_new(all, "next_cursor", json_null());
    *ret_response = json_incref(all);
    return ERR_NONE;
}

enum err_code admin_call(struct admin *admin, struct err *err)
{
    const struct admin_call *call = admin_find_call(admin);
    if (!call)
        return admin_refuse(admin, err);
    const char *useless = find_useless_option(admin, call);
    if (useless)
        return cli_usage(admin->cli, err, "perfolio admin %s%s%s does not take --%s", call->noun,
                         call->verb ? " " : "", call->verb ? call->verb : "", useless);
    json_auto_t *body = json_object(), *response = NULL;
    client_auto client = NULL;
    const char *path = fill_path(admin, call);
    bool has_body = strcmp(call->method, "POST") == 0 || strcmp(call->method, "PATCH") == 0;
    if (!path || !fill_body(admin, call, body))
        return refuse_usage(admin, call, err);
    if ((call->uses & NEEDS_YES) && !admin->is_confirmed)
        return cli_usage(admin->cli, err, "this cannot be undone: add --yes to confirm");
    enum err_code code = cli_connect(admin->cli, NULL, &client, err);
    if (!code && (call->uses & IS_PAGED))
        code = call_paged(admin, client, path, &response, err);
    else if (!code)
        code = client_call_json(client, call->method, path, has_body ? body : NULL, &response, err);
    if (code)
        return code;
    admin_print_response(admin, call, response);
    return cli_flush(err);
}
