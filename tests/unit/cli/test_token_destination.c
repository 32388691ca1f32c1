#include "cli/token_destination.h"
#include "tests/unit/test.h"

static void compares_servers(void **state)
{
    (void)state;
    assert_true(token_destination_is_same("https://host", "https://HOST/"));
    assert_true(token_destination_is_same("https://localhost:7443", "https://127.0.0.1:7443/"));
    assert_true(token_destination_is_same("https://[::1]:7443", "https://LOCALHOST:7443"));
    assert_true(token_destination_is_same("https://127.0.0.1/a/", "https://localhost/a"));
    assert_false(token_destination_is_same("https://localhost:7443", "https://127.0.0.1:7444"));
    assert_false(token_destination_is_same("https://localhost:7443", "http://127.0.0.1:7443"));
    assert_false(
        token_destination_is_same("https://localhost:7443", "https://127.0.0.1.example:7443"));
    assert_false(token_destination_is_same("https://localhost:7443", "https://127.0.0.2:7443"));
    assert_false(token_destination_is_same("https://localhost/a", "https://127.0.0.1/b"));
    assert_false(token_destination_is_same("https://[::1", "https://[::1]"));
    assert_false(token_destination_is_same("https://localhost@host", "https://127.0.0.1@host"));
    assert_false(token_destination_is_same("https://localhost", "https://"));
    assert_false(token_destination_is_same("https://host", "http://host"));
    assert_false(token_destination_is_same("https://host", "https://host:444"));
    assert_false(token_destination_is_same("https://host", "https://host.example"));
    assert_false(token_destination_is_same("https://host", "https://hos"));
}

static void secrets_are_sent_to_localhost_or_encrypted(void **state)
{
    (void)state;
    assert_true(token_destination_is_confidential("https://host"));
    assert_true(token_destination_is_confidential("http://localhost"));
    assert_true(token_destination_is_confidential("http://localhost:7443"));
    assert_true(token_destination_is_confidential("http://127.0.0.1:80/x"));
    assert_true(token_destination_is_confidential("http://[::1]:80"));
    assert_false(token_destination_is_confidential("http://host"));
    assert_false(token_destination_is_confidential("http://localhost.example"));
    assert_false(token_destination_is_confidential("http://127.0.0.1.example"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_servers),
        cmocka_unit_test(secrets_are_sent_to_localhost_or_encrypted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
