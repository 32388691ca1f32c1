#include "tests/unit/test.h"

#include "api/core/settings.h"
#include "api/http/local_ca.h"
#include "lib/base/mem.h"

/* As the server reads them: with the certificate that the supervisor names. */
static bool is_used(const char *certificate, const char *public_url, const char *listen,
                    const char *trust)
{
    struct settings settings;
    struct err err;
    bool wants_help;
    const char *const texts[] = {"--data-dir",
                                 "/d",
                                 "--tls-cert",
                                 certificate,
                                 "--tls-key",
                                 "/d/tls/server.key",
                                 "--public-url",
                                 public_url,
                                 "--listen",
                                 listen,
                                 "--trust-forwarded-for",
                                 trust};
    char *arguments[sizeof(texts) / sizeof(*texts)];
    int count = (int)(sizeof(texts) / sizeof(*texts));
    for (int i = 0; i < count; i++)
        arguments[i] = mem_strdup(texts[i]);
    settings_init(&settings);
    assert_int_equal(settings_load(&settings, count, arguments, &wants_help, &err), ERR_NONE);
    bool result = local_ca_is_used(&settings);
    for (int i = 0; i < count; i++)
        mem_free(arguments[i]);
    settings_fini(&settings);
    return result;
}

static bool is_used_at(const char *public_url, const char *listen)
{
    return is_used("/d/tls/server.crt", public_url, listen, "no");
}

static void clients_meet_it_where_the_public_url_is_a_listener(void **state)
{
    (void)state;
    assert_true(is_used_at("https://localhost:7443", "localhost:7443"));
    assert_true(is_used_at("https://localhost:7443", "0.0.0.0:7443"));
    assert_true(is_used_at("https://127.0.0.1:7443", "localhost:7443"));
    assert_true(is_used_at("https://[::1]:7443", "[::1]:7443"));
    assert_true(is_used_at("https://perf.example.org", "0.0.0.0:443"));
    assert_true(is_used_at("https://perf.example.org:7443/", "[::]:7443"));
    assert_true(is_used_at("https://[2001:db8::1]", "[2001:db8::1]:443"));
    assert_true(is_used_at("https://LOCALHOST:7443", "localhost:7443"));
    assert_true(is_used_at("https://localhost:40123", "localhost:0"));
}

static void something_else_ends_tls_at_another_port_or_before_localhost(void **state)
{
    (void)state;
    assert_false(is_used_at("https://perf.example.org", "localhost:7443"));
    assert_false(is_used_at("https://perf.example.org", "0.0.0.0:7443"));
    assert_false(is_used_at("https://perf.example.org:7443", "localhost:7443"));
    assert_false(is_used_at("https://perf.example.org:7443", "127.0.0.2:7443"));
    assert_false(is_used_at("https://[2001:db8::1]", "[2001:db8::1]:7443"));
    assert_false(is_used_at("http://perf.example.org:7443", "0.0.0.0:7443"));
    assert_false(is_used_at("https://perf.example.org:x", "0.0.0.0:7443"));
}

static void settings_say_that_there_is_another_certificate(void **state)
{
    (void)state;
    assert_true(is_used("/d/tls/server.crt", "https://a.example:7443", "0.0.0.0:7443", "no"));
    assert_false(is_used("/d/tls/server.crt", "https://a.example:7443", "0.0.0.0:7443", "yes"));
    assert_false(is_used("/d/tls/custom.crt", "https://a.example:7443", "0.0.0.0:7443", "no"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_meet_it_where_the_public_url_is_a_listener),
        cmocka_unit_test(something_else_ends_tls_at_another_port_or_before_localhost),
        cmocka_unit_test(settings_say_that_there_is_another_certificate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
