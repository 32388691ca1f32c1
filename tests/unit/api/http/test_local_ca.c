#include "tests/unit/test.h"

#include "api/core/settings.h"
#include "api/http/local_ca.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

/* Reads the files as the server does, with the certificate that the supervisor passes. */
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

static void the_public_url_may_lead_to_this_listener(void **state)
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

static void the_public_url_may_lead_to_another_server(void **state)
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

static void the_certificate_of_the_local_ca_is_used_unless_settings_differ(void **state)
{
    (void)state;
    assert_true(is_used("/d/tls/server.crt", "https://a.example:7443", "0.0.0.0:7443", "no"));
    assert_false(is_used("/d/tls/server.crt", "https://a.example:7443", "0.0.0.0:7443", "yes"));
    assert_false(is_used("/d/tls/custom.crt", "https://a.example:7443", "0.0.0.0:7443", "no"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_public_url_may_lead_to_this_listener),
        cmocka_unit_test(the_public_url_may_lead_to_another_server),
        cmocka_unit_test(the_certificate_of_the_local_ca_is_used_unless_settings_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
