/*
 * Lines: method, path, query, then header fields "name: value". What reaches a handler before it
 * reads a body: the route, its parameters, query and cookies.
 */
#include "tests/fuzz/fuzz.h"

#include "api/request.h"
#include "api/routes.h"
#include "lib/base/mem.h"

enum { FIELDS_MAX = 16 };

static size_t read_fields(struct span rest, struct http_field fields[FIELDS_MAX])
{
    size_t count = 0;
    struct span line;
    while (count < FIELDS_MAX && span_take_line(&rest, &line)) {
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
    enum err_code code = routes_match(request->method, request->path, params, &route, &err);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = span_of(data, size), method = {0}, path = {0}, query = {0};
    span_take_line(&rest, &method);
    span_take_line(&rest, &path);
    span_take_line(&rest, &query);
    struct http_field fields[FIELDS_MAX];
    arena_auto arena = arena_create();
    struct request request = {.arena = arena, .path = path, .query = query, .fields = fields};
    request.field_count = read_fields(rest, fields);
    request.method = HTTP_GET;
    http_method_parse(method, &request.method);
    match_route(&request);
    read_query(&request);
    fuzz_check(is_within(request_cookie(&request, "__Host-perfolio_session"), rest));
    fuzz_check(is_within(request_field(&request, "x-csrf-token"), rest));
    request_accepts_encoding(&request, "zstd");
    struct response response = {0};
    response_is_cached(&request, &response, "\"abc\"", "no-cache");
    return 0;
}
