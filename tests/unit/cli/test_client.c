#include "tests/unit/test.h"

#include "cli/client.h"
#include "lib/base/err.h"

static void pauses_double_and_vary(void **state)
{
    (void)state;
    int64_t longest = 500;
    for (int attempt = 1; attempt <= 12; attempt++) {
        assert_int_equal(client_pause_ms(attempt, 0, 0), longest / 2);
        for (uint64_t random = 0; random < 100000; random += 977)
            assert_in_range(client_pause_ms(attempt, 0, random), longest / 2, longest);
        longest = longest * 2 > 30000 ? 30000 : longest * 2;
    }
}

static void retry_after_is_obeyed(void **state)
{
    (void)state;
    assert_int_equal(client_pause_ms(1, 7, 0), 7000);
    for (uint64_t random = 0; random < 100000; random += 977)
        assert_in_range(client_pause_ms(3, 8, random), 8000, 10000);
    assert_int_equal(client_pause_ms(1, 120, 0), 120000);
    assert_int_equal(client_pause_ms(1, 121, 0), -1);
}

static enum err_code problem_of(int status, const char *body, struct err *err)
{
    http_client_response_auto response;
    http_client_response_init(&response);
    response.status = status;
    response.retry_after_s = 3;
    buf_append_text(&response.body, body);
    return client_problem(&response, err);
}

static void problem_documents_become_errors(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(problem_of(429,
                                "{\"type\":\"/problems/quota\",\"title\":\"t\","
                                "\"detail\":\"the tenant's space is used up\"}",
                                &err),
                     ERR_QUOTA);
    assert_string_equal(err.message, "the tenant's space is used up");
    assert_int_equal(err.retry_after_s, 3);
    assert_int_equal(problem_of(422, "{\"type\":\"/problems/unsupported\",\"title\":\"t\"}", &err),
                     ERR_UNSUPPORTED);
    assert_string_equal(err.message, "t");
    assert_int_equal(
        problem_of(500, "{\"type\":\"/x\",\"detail\":\"d\",\"request_id\":\"r7\"}", &err),
        ERR_INTERNAL);
    assert_string_equal(err.message, "d (request r7)");
}

static void responses_of_other_programs_become_errors_by_status(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum err_code code;
    } cases[] = {
        {400, ERR_INVALID},      {401, ERR_UNAUTHENTICATED},
        {403, ERR_FORBIDDEN},    {404, ERR_NOT_FOUND},
        {408, ERR_TIMEOUT},      {409, ERR_CONFLICT},
        {410, ERR_GONE},         {413, ERR_TOO_LARGE},
        {415, ERR_UNSUPPORTED},  {418, ERR_INVALID},
        {429, ERR_RATE_LIMITED}, {500, ERR_INTERNAL},
        {502, ERR_BUSY},         {503, ERR_BUSY},
        {504, ERR_TIMEOUT},      {301, ERR_NETWORK},
    };
    struct err err;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(problem_of(cases[i].status, "<html>nginx</html>", &err), cases[i].code);
        assert_int_equal(problem_of(cases[i].status, "", &err), cases[i].code);
        assert_int_equal(problem_of(cases[i].status, "[\"detail\"]", &err), cases[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_double_and_vary),
        cmocka_unit_test(retry_after_is_obeyed),
        cmocka_unit_test(problem_documents_become_errors),
        cmocka_unit_test(responses_of_other_programs_become_errors_by_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
