#include "tests/unit/test.h"

#include "cli/account.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/perfolio-account-XXXXXX";

static int make_home(void **state)
{
    (void)state;
    if (!folder[0] || !mkdtemp(folder))
        return 1;
    setenv("HOME", folder, 1);
    unsetenv("XDG_CONFIG_HOME");
    return 0;
}

static int remove_home(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static int clean_environment(void **state)
{
    (void)state;
    unsetenv("PERFOLIO_URL");
    unsetenv("PERFOLIO_TOKEN");
    unsetenv("PERFOLIO_CA_FILE");
    return 0;
}

static void loads_what_was_saved(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct account account;
    struct err err;
    assert_int_equal(account_load(arena, &account, &err), ERR_NONE);
    assert_null(account.url);
    account.url = "https://host";
    account.token = "pf_secret";
    account.ca_file = "/etc/ca.pem";
    assert_int_equal(account_save(&account, &err), ERR_NONE);
    struct account again;
    assert_int_equal(account_load(arena, &again, &err), ERR_NONE);
    assert_string_equal(again.url, "https://host");
    assert_string_equal(again.token, "pf_secret");
    assert_string_equal(again.ca_file, "/etc/ca.pem");
    assert_false(again.is_readable_by_others);
    struct stat status;
    assert_int_equal(stat(again.config_file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(chmod(again.config_file, 0640), 0);
    assert_int_equal(account_load(arena, &again, &err), ERR_NONE);
    assert_true(again.is_readable_by_others);
}

static void the_environment_takes_precedence(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct account account;
    struct err err;
    setenv("PERFOLIO_URL", "https://host/", 1);
    setenv("PERFOLIO_TOKEN", "pf_other", 1);
    assert_int_equal(account_load(arena, &account, &err), ERR_NONE);
    assert_string_equal(account.url, "https://host");
    assert_string_equal(account.token, "pf_other");
    assert_string_equal(account.ca_file, "/etc/ca.pem");
}

static void a_saved_token_is_not_sent_to_another_server(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct account account;
    struct err err;
    setenv("PERFOLIO_URL", "https://elsewhere", 1);
    assert_int_equal(account_load(arena, &account, &err), ERR_NONE);
    assert_null(account.token);
    assert_null(account.ca_file);
}

static void refuses_an_invalid_server_url(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "host",           "https://",      "https:///",          "ftp://host",
        "https://u@host", "https://h?q=1", "https://h#fragment", "https://h ost",
    };
    arena_auto arena = arena_create();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *url;
        struct err err;
        assert_int_equal(account_clean_url(cases[i], arena, &url, &err), ERR_INVALID);
    }
    const char *url;
    struct err err;
    assert_int_equal(account_clean_url("https://h:1/prefix//", arena, &url, &err), ERR_NONE);
    assert_string_equal(url, "https://h:1/prefix");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(loads_what_was_saved, clean_environment),
        cmocka_unit_test_setup(the_environment_takes_precedence, clean_environment),
        cmocka_unit_test_setup(a_saved_token_is_not_sent_to_another_server, clean_environment),
        cmocka_unit_test(refuses_an_invalid_server_url),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
