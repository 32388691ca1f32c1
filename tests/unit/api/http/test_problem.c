#include "tests/unit/test.h"

#include "api/http/problem.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static struct request a_request(struct arena *arena)
{
    struct request request = {.arena = arena, .path = SPAN_LITERAL("/a \"b\"")};
    snprintf(request.id, sizeof(request.id), "0123456789abcdef");
    return request;
}

static const char *field(const struct response *response, const char *name)
{
    for (size_t i = 0; i < response->field_count; i++) {
        if (span_equal_text(response->fields[i].name, name))
            return (const char *)response->fields[i].value.data;
    }
    return NULL;
}

static json_t *document(const struct response *response)
{
    return json_loadb((const char *)response->bytes.data, response->bytes.size, 0, NULL);
}

static void every_kind_has_status_title_and_page(void **state)
{
    (void)state;
    for (int code = ERR_NONE + 1; code < ERR_CODE_COUNT; code++) {
        enum err_code kind = (enum err_code)code;
        assert_in_range(problem_status(kind), 400, 599);
        assert_true(strlen(problem_title(kind)) > 2);
        assert_true(strlen(problem_explanation(kind)) > 10);
        assert_true(problem_find(span_text(err_code_name(kind))) == kind);
        assert_int_equal(problem_is_internal(kind), problem_status(kind) >= 500 &&
                                                        kind != ERR_BUSY && kind != ERR_TIMEOUT &&
                                                        kind != ERR_CANCELLED);
    }
    assert_true(problem_find(SPAN_LITERAL("unheard-of")) == ERR_NONE);
    assert_true(problem_find(SPAN_LITERAL("none")) == ERR_NONE);
}

static void contains_the_reason_and_the_time_to_retry(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct request request = a_request(arena);
    struct response response = {.status = 200};
    response_add(&request, &response, "x-before", "1");
    struct err err;
    err_set(&err, ERR_RATE_LIMITED, "slow \"down\"");
    err.retry_after_s = 17;
    problem_respond(&request, &response, 0, &err);
    assert_int_equal(response.status, 429);
    assert_string_equal(response.content_type, "application/problem+json");
    assert_string_equal(field(&response, "retry-after"), "17");
    assert_string_equal(field(&response, "cache-control"), "no-store");
    assert_null(field(&response, "x-before"));
    json_t *json = document(&response);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "type")), "/problems/rate-limited");
    assert_string_equal(json_string_value(json_object_get(json, "detail")), "slow \"down\"");
    assert_string_equal(json_string_value(json_object_get(json, "instance")), "/a \"b\"");
    assert_string_equal(json_string_value(json_object_get(json, "request_id")), "0123456789abcdef");
    assert_int_equal(json_integer_value(json_object_get(json, "status")), 429);
    json_decref(json);
}

static void internal_errors_are_logged_only(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct request request = a_request(arena);
    struct response response = {0};
    struct err err;
    err_set(&err, ERR_DATABASE, "relation secret_table does not exist");
    problem_respond(&request, &response, 0, &err);
    assert_int_equal(response.status, 503);
    assert_non_null(field(&response, "retry-after"));
    assert_null(memmem(response.bytes.data, response.bytes.size, "secret_table", 12));
}

static void a_very_long_path_still_gets_a_document(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct request request = a_request(arena);
    size_t size = 300000;
    char *path = arena_alloc(arena, size, 1);
    memset(path, '"', size);
    request.path = span_of(path, size);
    struct response response = {0};
    struct err err;
    err_set(&err, ERR_NOT_FOUND, "nothing here");
    problem_respond(&request, &response, 0, &err);
    json_t *json = document(&response);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "detail")), "nothing here");
    json_decref(json);
}

static void a_401_requests_credentials(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct request request = a_request(arena);
    struct response response = {0};
    struct err err;
    err_set(&err, ERR_UNAUTHENTICATED, "sign in");
    problem_respond(&request, &response, 0, &err);
    assert_int_equal(response.status, 401);
    assert_non_null(strstr(field(&response, "www-authenticate"), "Bearer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_status_title_and_page),
        cmocka_unit_test(contains_the_reason_and_the_time_to_retry),
        cmocka_unit_test(internal_errors_are_logged_only),
        cmocka_unit_test(a_very_long_path_still_gets_a_document),
        cmocka_unit_test(a_401_requests_credentials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
