#include "tests/unit/test.h"

#include "api/server/routes.h"
#include "lib/base/err.h"

#include <stdlib.h>

static const struct route *match(enum http_method method, const char *path,
                                 struct span params[REQUEST_MAX_PATH_PARAMS])
{
    const struct route *route;
    struct err err;
    return routes_match(method, span_text(path), params, &route, &err) ? NULL : route;
}

static void assert_matches(enum http_method method, const char *path, const char *pattern)
{
    struct span params[REQUEST_MAX_PATH_PARAMS];
    const struct route *route = match(method, path, params);
    assert_non_null(route);
    assert_string_equal(route->pattern, pattern);
}

static void prefers_the_narrow_pattern(void **state)
{
    (void)state;
    assert_matches(HTTP_GET, "/p/abc", "/p/{id}");
    assert_matches(HTTP_GET, "/p/abc.svg", "/p/{id}.svg");
    assert_matches(HTTP_GET, "/p/abc.pb.gz", "/p/{id}.pb.gz");
    assert_matches(HTTP_GET, "/p/abc/raw", "/p/{id}/raw");
    assert_matches(HTTP_GET, "/p/abc/delete", "/p/{id}/delete");
    assert_matches(HTTP_GET, "/", "/");
    assert_matches(HTTP_HEAD, "/healthz", "/healthz");
}

static void returns_the_path_parameters(void **state)
{
    (void)state;
    struct span params[REQUEST_MAX_PATH_PARAMS];
    assert_non_null(match(HTTP_GET, "/d/left..right", params));
    assert_true(span_equal_text(params[0], "left"));
    assert_true(span_equal_text(params[1], "right"));
    assert_int_equal(params[2].size, 0);
    assert_non_null(match(HTTP_GET, "/p/a.pb.gz.pb.gz", params));
    assert_true(span_equal_text(params[0], "a.pb.gz"));
    assert_non_null(match(HTTP_PUT, "/api/v1/uploads/u/parts/12", params));
    assert_true(span_equal_text(params[0], "u"));
    assert_true(span_equal_text(params[1], "12"));
}

static void parameters_are_not_empty_and_contain_no_slash(void **state)
{
    (void)state;
    static const char *const paths[] = {"/p/",  "/p",       "/p/a/b", "/d/a..", "/d/..b", "/d/a.b",
                                        "/p//", "/assets/", "//",     "",       "healthz"};
    struct span params[REQUEST_MAX_PATH_PARAMS];
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
        assert_null(match(HTTP_GET, paths[i], params));
}

static void distinguishes_a_wrong_method_from_a_wrong_path(void **state)
{
    (void)state;
    struct span params[REQUEST_MAX_PATH_PARAMS];
    const struct route *route;
    struct err err;
    assert_int_equal(routes_match(HTTP_DELETE, SPAN_LITERAL("/healthz"), params, &route, &err),
                     ERR_UNSUPPORTED);
    assert_int_equal(routes_match(HTTP_DELETE, SPAN_LITERAL("/nothing"), params, &route, &err),
                     ERR_NOT_FOUND);
    buf_auto allow;
    buf_init(&allow, 256);
    routes_allow(SPAN_LITERAL("/healthz"), &allow);
    assert_true(span_equal_text(buf_span(&allow), "GET, HEAD"));
    buf_clear(&allow);
    routes_allow(SPAN_LITERAL("/nothing"), &allow);
    assert_int_equal(allow.size, 0);
}

/* Writes that anybody may send are listed here. */
static bool may_be_open(const struct route *route)
{
    static const char *const open[] = {"/api/v1/session", "/api/v1/invitations/accept",
                                       "/api/v1/invitations/look", "/api/v1/shares/{id}",
                                       "/api/v1/links"};
    for (size_t i = 0; i < sizeof(open) / sizeof(*open); i++) {
        if (strncmp(route->pattern, open[i], strlen(open[i])) == 0)
            return true;
    }
    return strncmp(route->pattern, "/api/v1/uploads/", 16) == 0;
}

static void rows_are_complete_and_consistent(void **state)
{
    (void)state;
    size_t table_count;
    const struct route_table *const *tables = routes_all(&table_count);
    assert_true(table_count >= 5);
    for (size_t table = 0; table < table_count; table++) {
        for (size_t i = 0; i < tables[table]->route_count; i++) {
            const struct route *route = &tables[table]->routes[i];
            bool is_read = route->method == HTTP_GET;
            assert_non_null(route->handle);
            assert_true(route->pattern[0] == '/');
            assert_true(route->method != HTTP_HEAD && route->method != HTTP_OPTIONS);
            assert_true(route->access != ACCESS_SCOPES || route->scopes != 0);
            /* Inline handlers run before authentication. */
            assert_true(!(route->flags & ROUTE_INLINE) || (is_read && !route->access));
            assert_true(!(route->flags & ROUTE_CORS) || is_read);
            assert_true(!is_read || route->max_body_bytes == 0);
            assert_true(route->max_body_bytes <= (size_t)8 << 20);
            if (!is_read && route->access == ACCESS_PUBLIC && !may_be_open(route))
                fail_msg("%s is open to all", route->pattern);
            if (strstr(route->pattern, "/admin/"))
                assert_true(route->access == ACCESS_SCOPES && (route->scopes & SCOPE_OPERATOR));
        }
    }
}

static void no_row_is_hidden_behind_another(void **state)
{
    (void)state;
    size_t table_count;
    const struct route_table *const *tables = routes_all(&table_count);
    for (size_t table = 0; table < table_count; table++) {
        for (size_t i = 0; i < tables[table]->route_count; i++) {
            const struct route *route = &tables[table]->routes[i];
            /* A path that matches the pattern, with one letter for each parameter. */
            char path[256];
            size_t size = 0;
            for (const char *at = route->pattern; *at; at++) {
                if (*at == '{') {
                    path[size++] = 'q';
                    at = strchr(at, '}');
                } else {
                    path[size++] = *at;
                }
            }
            path[size] = '\0';
            struct span params[REQUEST_MAX_PATH_PARAMS];
            assert_ptr_equal(match(route->method, path, params), route);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefers_the_narrow_pattern),
        cmocka_unit_test(returns_the_path_parameters),
        cmocka_unit_test(parameters_are_not_empty_and_contain_no_slash),
        cmocka_unit_test(distinguishes_a_wrong_method_from_a_wrong_path),
        cmocka_unit_test(rows_are_complete_and_consistent),
        cmocka_unit_test(no_row_is_hidden_behind_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
