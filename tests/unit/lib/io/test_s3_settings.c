#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "lib/io/s3_settings.h"

#include <stdlib.h>
#include <string.h>

static struct object_s3_options usual(void)
{
    return (struct object_s3_options){.endpoint = "https://S3.example.org/",
                                      .bucket = "profiles",
                                      .access_key = "key",
                                      .secret_key = "secret"};
}

static void assert_host(const char *endpoint, bool is_path_style, const char *expected)
{
    struct err err;
    struct s3_settings settings;
    struct object_s3_options options = usual();
    options.endpoint = endpoint;
    options.is_path_style = is_path_style;
    if (s3_settings_init(&settings, &options, &err))
        fail_msg("%s: %s", endpoint, err.message);
    assert_string_equal(settings.host, expected);
    s3_settings_fini(&settings);
}

/* The host is signed, so it must equal what libcurl sends. */
static void the_host_equals_the_header(void **state)
{
    (void)state;
    assert_host("https://S3.example.org/", true, "s3.example.org");
    assert_host("https://s3.example.org", false, "profiles.s3.example.org");
    assert_host("https://s3.example.org:443", true, "s3.example.org");
    assert_host("http://s3.example.org:80/", true, "s3.example.org");
    assert_host("http://s3.example.org:443", true, "s3.example.org:443");
    assert_host("http://127.0.0.1:7480", true, "127.0.0.1:7480");
    assert_host("http://[::1]:7480", true, "[::1]:7480");
}

static void a_prefix_ends_with_a_slash(void **state)
{
    (void)state;
    static const char *const prefixes[][2] = {
        {NULL, ""}, {"", ""}, {"a", "a/"}, {"a/", "a/"}, {"a/b.c", "a/b.c/"}};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        struct err err;
        struct s3_settings settings;
        struct object_s3_options options = usual();
        options.prefix = prefixes[i][0];
        assert_int_equal(s3_settings_init(&settings, &options, &err), ERR_NONE);
        assert_string_equal(settings.prefix, prefixes[i][1]);
        assert_string_equal(settings.region, "us-east-1");
        s3_settings_fini(&settings);
    }
}

static void assert_refused(struct object_s3_options options)
{
    struct err err;
    struct s3_settings settings;
    assert_int_equal(s3_settings_init(&settings, &options, &err), ERR_INVALID);
    assert_null(strstr(err.message, "secret!"));
    s3_settings_fini(&settings);
}

static void refuses_invalid_settings(void **state)
{
    (void)state;
    static const char *const endpoints[] = {NULL,
                                            "",
                                            "s3.example.org",
                                            "ftp://s3.example.org",
                                            "https://",
                                            "https://a/b",
                                            "https://u@a",
                                            "https://a?b",
                                            "https://a b",
                                            "https://a\r\nX: y"};
    static const char *const buckets[] = {NULL,
                                          "",
                                          "ab",
                                          "a/b",
                                          "a b",
                                          ".abc",
                                          "a..b",
                                          "a%b",
                                          "a-very-long-name-that-goes-on-and-on-until-it-is-over-"
                                          "sixty-three"};
    static const char *const prefixes[] = {"/a", "a//b", "../a", "a/../b", "a b", ".a", "/"};
    for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++) {
        struct object_s3_options options = usual();
        options.endpoint = endpoints[i];
        assert_refused(options);
    }
    for (size_t i = 0; i < sizeof(buckets) / sizeof(buckets[0]); i++) {
        struct object_s3_options options = usual();
        options.bucket = buckets[i];
        assert_refused(options);
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        struct object_s3_options options = usual();
        options.prefix = prefixes[i];
        assert_refused(options);
    }
    struct object_s3_options options = usual();
    options.secret_key = "secret!\r\nX: y";
    assert_refused(options);
    options = usual();
    options.session_token = "to ken";
    assert_refused(options);
    options = usual();
    options.region = "us/east";
    assert_refused(options);
}

static void credentials_may_come_from_the_environment(void **state)
{
    (void)state;
    struct err err;
    struct s3_settings settings;
    struct object_s3_options options = usual();
    options.access_key = options.secret_key = NULL;
    unsetenv("AWS_ACCESS_KEY_ID");
    assert_refused(options);
    setenv("AWS_ACCESS_KEY_ID", "from-there", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
    setenv("AWS_SESSION_TOKEN", "token", 1);
    assert_int_equal(s3_settings_init(&settings, &options, &err), ERR_NONE);
    assert_string_equal(settings.access_key, "from-there");
    assert_string_equal(settings.secret_key, "hidden");
    assert_string_equal(settings.session_token, "token");
    s3_settings_fini(&settings);
    options = usual(); /* keys of the options are not combined with a token of the environment */
    assert_int_equal(s3_settings_init(&settings, &options, &err), ERR_NONE);
    assert_null(settings.session_token);
    s3_settings_fini(&settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_equals_the_header),
        cmocka_unit_test(a_prefix_ends_with_a_slash),
        cmocka_unit_test(refuses_invalid_settings),
        cmocka_unit_test(credentials_may_come_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
