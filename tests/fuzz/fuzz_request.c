/*
 * The parts of a request that handlers read: route and parameters, query, cookies, the settings of
 * a share, a JSON body. Lines: method, path, query, header fields "name: value", an empty line, a
 * body.
 */
#include "tests/fuzz/fuzz.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/json_body.h"
#include "api/http/request.h"
#include "api/server/route_match.h"
#include "api/server/routes.h"
#include "api/share/share_settings.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"

enum { FIELDS_MAX = 16 };

static size_t read_fields(struct span *rest, struct http_field fields[FIELDS_MAX])
{
    size_t count = 0;
    struct span line;
    while (count < FIELDS_MAX && span_take_line(rest, &line) && line.size) {
        span_split(line, ':', &fields[count].name, &fields[count].value);
        fields[count].value = span_trim(fields[count].value);
        count++;
    }
    return count;
}

static bool is_within(struct span part, struct span whole)
{
    return part.size == 0 ||
           (part.data >= whole.data && part.data + part.size <= whole.data + whole.size);
}

static void match_route(struct request *request)
{
    struct span params[REQUEST_MAX_PATH_PARAMS] = {0};
    const struct route *route = NULL;
    struct err err;
    enum err_code code =
        route_match(&routes_all, request->method, request->path, params, &route, &err);
    fuzz_check(code == ERR_NONE || code == ERR_NOT_FOUND || code == ERR_UNSUPPORTED);
    if (code)
        return;
    fuzz_check(route && route->handle);
    for (size_t i = 0; i < REQUEST_MAX_PATH_PARAMS; i++)
        fuzz_check(is_within(params[i], request->path));
}

static void read_query(const struct request *request)
{
    static const char *const known[] = {"title", "label", "limit", "expires", "", NULL};
    struct err err;
    struct span value;
    int64_t number = 0;
    for (size_t i = 0; known[i]; i++) {
        size_t n = 0;
        while (n < 8 && request_query_nth(request, known[i], n, &value))
            n++;
        fuzz_check((n > 0) == request_query(request, known[i], &value));
        enum err_code code = request_query_i64(request, known[i], -5, 1000, 7, &number, &err);
        fuzz_check(code == ERR_NONE ? number >= -5 && number <= 1000 : code == ERR_INVALID);
    }
    enum err_code code = request_check_query(request, known, &err);
    fuzz_check(code == ERR_NONE || code == ERR_INVALID);
}

/* An accepted value must satisfy the constraints of the database. */
static void read_settings(struct request *request)
{
    struct share_settings settings;
    struct err err;
    for (int64_t tenant_id = TENANT_ANONYMOUS; tenant_id <= TENANT_DEFAULT; tenant_id++) {
        request->principal.tenant_id = tenant_id;
        enum err_code code = share_settings_read(request, &settings, &err);
        /* A team's share without an account is the only refusal that depends on no input. */
        fuzz_check(code == ERR_NONE || code == ERR_INVALID ||
                   (code == ERR_UNAUTHENTICATED && tenant_id == TENANT_ANONYMOUS));
        if (code)
            continue;
        fuzz_check(span_is_utf8(span_text(settings.title)));
        fuzz_check(span_is_utf8(span_text(settings.labels)));
        fuzz_check(!strpbrk(settings.filename, "/\\\r\n"));
        fuzz_check(settings.expires_s == 0 || settings.expires_s >= 3600);
        fuzz_check((settings.visibility == SHARE_PASSWORD) == (settings.password.size > 0));
        fuzz_check(tenant_id != TENANT_ANONYMOUS || settings.visibility != SHARE_TEAM);
    }
}

static void read_body(struct request *request)
{
    static const char *const known[] = {"name", "scopes", "role", "expires", NULL};
    struct json_body *body;
    struct err err;
    const char *text, *const *texts;
    size_t count;
    int64_t number;
    if (json_body_parse(request, known, &body, &err)) {
        fuzz_check(err.code == ERR_INVALID && err.message[0]);
        return;
    }
    for (size_t i = 0; known[i]; i++) {
        if (!json_body_text(body, known[i], 0, 20, &text, &err))
            fuzz_check(!text || strlen(text) <= 20);
        if (!json_body_i64(body, known[i], 1, 9, 5, &number, &err))
            fuzz_check(number >= 1 && number <= 9);
        if (!json_body_texts(body, known[i], 3, &texts, &count, &err))
            fuzz_check(count <= 3);
        fuzz_check(!json_body_is_null(body, known[i]) || json_body_has(body, known[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = span_of(data, size), method = {0}, path = {0}, query = {0};
    span_take_line(&rest, &method);
    span_take_line(&rest, &path);
    span_take_line(&rest, &query);
    struct http_field fields[FIELDS_MAX];
    arena_auto arena = arena_create();
    const struct settings settings = {.anonymous_expiry_s = INT64_C(365) * 24 * 3600};
    struct server server = {.settings = &settings};
    struct request request = {
        .arena = arena, .server = &server, .path = path, .query = query, .fields = fields};
    struct span head = rest;
    request.field_count = read_fields(&rest, fields);
    request.body = rest;
    request.method = HTTP_GET;
    http_method_parse(method, &request.method);
    match_route(&request);
    read_query(&request);
    read_settings(&request);
    read_body(&request);
    fuzz_check(is_within(request_cookie(&request, "__Host-perfolio_session"), head));
    fuzz_check(is_within(request_field(&request, "x-csrf-token"), head));
    request_accepts_encoding(&request, "zstd");
    struct response response = {0};
    response_is_cached(&request, &response, "\"abc\"", "no-cache");
    return 0;
}
