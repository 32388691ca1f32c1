#include "tests/unit/test.h"

#include "api/server/route_match.h"
#include "api/server/routes.h"
#include "lib/base/err.h"

#include <stdlib.h>

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
    const struct route_table *const *tables = routes_all.tables;
    const size_t table_count = routes_all.table_count;
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
    const struct route_table *const *tables = routes_all.tables;
    const size_t table_count = routes_all.table_count;
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
            const struct route *matched = NULL;
            struct err err;
            assert_int_equal(
                route_match(&routes_all, route->method, span_text(path), params, &matched, &err),
                ERR_NONE);
            assert_ptr_equal(matched, route);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete_and_consistent),
        cmocka_unit_test(no_row_is_hidden_behind_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
