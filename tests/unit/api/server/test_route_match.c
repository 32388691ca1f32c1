#include "tests/unit/test.h"

#include "api/server/route_match.h"
#include "api/server/routes.h"
#include "lib/base/err.h"

static const struct route *match(enum http_method method, const char *path,
                                 struct span params[REQUEST_MAX_PATH_PARAMS])
{
    const struct route *route;
    struct err err;
    return route_match(&routes_all, method, span_text(path), params, &route, &err) ? NULL : route;
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
    assert_int_equal(
        route_match(&routes_all, HTTP_DELETE, SPAN_LITERAL("/healthz"), params, &route, &err),
        ERR_UNSUPPORTED);
    assert_int_equal(
        route_match(&routes_all, HTTP_DELETE, SPAN_LITERAL("/nothing"), params, &route, &err),
        ERR_NOT_FOUND);
    buf_auto allow;
    buf_init(&allow, 256);
    route_match_methods(&routes_all, SPAN_LITERAL("/healthz"), &allow);
    assert_true(span_equal_text(buf_span(&allow), "GET, HEAD"));
    buf_clear(&allow);
    route_match_methods(&routes_all, SPAN_LITERAL("/nothing"), &allow);
    assert_int_equal(allow.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefers_the_narrow_pattern),
        cmocka_unit_test(returns_the_path_parameters),
        cmocka_unit_test(parameters_are_not_empty_and_contain_no_slash),
        cmocka_unit_test(distinguishes_a_wrong_method_from_a_wrong_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
