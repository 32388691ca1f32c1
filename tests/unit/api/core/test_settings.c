#include "tests/unit/test.h"

#include "api/core/settings.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 16 };

struct fixture {
    struct settings settings;
    struct err err;
    char file[64];
};

static int set_up(void **state)
{
    struct fixture *fixture = mem_new(struct fixture, 1);
    settings_init(&fixture->settings);
    snprintf(fixture->file, sizeof(fixture->file), "/tmp/perfolio-settings-%d.ini", (int)getpid());
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    unlink(fixture->file);
    unsetenv("PERFOLIO_WORKER_QUEUE");
    unsetenv("PERFOLIO_LISTEN");
    unsetenv("PERFOLIO_INTAKE_THREADS");
    unsetenv("PERFOLIO_INGEST_THREADS");
    settings_fini(&fixture->settings);
    mem_free(fixture);
    return 0;
}

/* Arguments end with NULL. */
static enum err_code load(struct fixture *fixture, const char *const *texts)
{
    char *arguments[MAX_ARGUMENTS] = {NULL};
    int count = 0;
    bool wants_help;
    for (; texts[count]; count++)
        arguments[count] = mem_strdup(texts[count]);
    enum err_code code =
        settings_load(&fixture->settings, count, arguments, &wants_help, &fixture->err);
    for (int i = 0; i < count; i++)
        mem_free(arguments[i]);
    return code;
}
#define LOAD(fixture, ...) load(fixture, (const char *const[]){__VA_ARGS__, NULL})

static void write_file(const struct fixture *fixture, const char *text)
{
    FILE *file = fopen(fixture->file, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_refused(struct fixture *fixture, enum err_code code, const char *part)
{
    assert_int_equal(code, ERR_INVALID);
    if (!strstr(fixture->err.message, part))
        fail_msg("'%s' does not contain '%s'", fixture->err.message, part);
}

static void defaults_are_those_of_make_run(void **state)
{
    struct fixture *fixture = *state;
    const struct settings *settings = &fixture->settings;
    assert_int_equal(LOAD(fixture, "--log-level=info"), ERR_NONE);
    assert_string_equal(settings->data_dir, "perfolio-data");
    assert_int_equal(settings->listen_count, 1);
    assert_string_equal(settings->listen[0], "localhost:7443");
    assert_true(settings->anonymous_sharing);
    assert_false(settings->http2);
    assert_int_equal(settings->anonymous_expiry_s, 365 * 86400);
}

static void flags_take_both_forms_and_units(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(LOAD(fixture, "--worker-queue", "7", "--max-profile-bytes=3MiB",
                          "--anonymous-expiry", "2w", "--idle-timeout=5m", "--http2", "yes",
                          "--log-level", "debug"),
                     ERR_NONE);
    assert_int_equal(fixture->settings.worker_queue, 7);
    assert_int_equal(fixture->settings.max_profile_bytes, 3 << 20);
    assert_int_equal(fixture->settings.anonymous_expiry_s, 14 * 86400);
    assert_int_equal(fixture->settings.idle_timeout_s, 300);
    assert_true(fixture->settings.http2);
    assert_int_equal(fixture->settings.log_level, LOG_DEBUG);
}

static void flags_override_the_environment_which_overrides_the_file(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture, "[server]\nworker-queue = 1\nworker-threads = 2\nloop-threads = 3\n");
    setenv("PERFOLIO_WORKER_QUEUE", "10", 1);
    setenv("PERFOLIO_LISTEN", "localhost:1, [::1]:2", 1);
    assert_int_equal(LOAD(fixture, "--config", fixture->file, "--worker-threads", "20"), ERR_NONE);
    assert_int_equal(fixture->settings.worker_queue, 10);
    assert_int_equal(fixture->settings.worker_threads, 20);
    assert_int_equal(fixture->settings.loop_threads, 3);
    assert_int_equal(fixture->settings.listen_count, 2);
    assert_string_equal(fixture->settings.listen[1], "[::1]:2");
}

/* Old names are accepted; in the environment the new name overrides the old one. */
static void old_names_are_accepted(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture, "[server]\nintake-threads = 5\n");
    assert_int_equal(LOAD(fixture, "--config", fixture->file), ERR_NONE);
    assert_int_equal(fixture->settings.ingest_threads, 5);
    setenv("PERFOLIO_INTAKE_THREADS", "6", 1);
    assert_int_equal(LOAD(fixture, "--config", fixture->file), ERR_NONE);
    assert_int_equal(fixture->settings.ingest_threads, 6);
    setenv("PERFOLIO_INGEST_THREADS", "7", 1);
    assert_int_equal(LOAD(fixture, "--config", fixture->file), ERR_NONE);
    assert_int_equal(fixture->settings.ingest_threads, 7);
    assert_int_equal(LOAD(fixture, "--intake-threads", "8"), ERR_NONE);
    assert_int_equal(fixture->settings.ingest_threads, 8);
}

static void listen_flags_add_up_and_override_other_sources(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture, "[server]\nlisten = localhost:1\n");
    assert_int_equal(LOAD(fixture, "--config", fixture->file, "--listen", "a:5", "--listen=[::]:6"),
                     ERR_NONE);
    assert_int_equal(fixture->settings.listen_count, 2);
    assert_string_equal(fixture->settings.listen[0], "a:5");
    assert_string_equal(fixture->settings.listen[1], "[::]:6");
}

static void errors_name_their_source(void **state)
{
    struct fixture *fixture = *state;
    assert_refused(fixture, LOAD(fixture, "--wrong", "1"), "--wrong");
    assert_refused(fixture, LOAD(fixture, "stray"), "stray");
    assert_refused(fixture, LOAD(fixture, "--listen"), "--listen needs a value");
    assert_refused(fixture, LOAD(fixture, "--listen", "nowhere"), "host:port");
    assert_refused(fixture, LOAD(fixture, "--listen", "a:70000"), "host:port");
    assert_refused(fixture, LOAD(fixture, "--worker-queue", "0"), "outside 1 to");
    assert_refused(fixture, LOAD(fixture, "--worker-queue", "7x"), "--worker-queue");
    assert_refused(fixture, LOAD(fixture, "--max-profile-bytes", "99999999999999999999"),
                   "not a number");
    assert_refused(fixture, LOAD(fixture, "--max-profile-bytes", "9000000000TiB"), "outside");
    assert_refused(fixture, LOAD(fixture, "--idle-timeout", "5 years"), "s, m, h, d or w");
    assert_refused(fixture, LOAD(fixture, "--http2", "perhaps"), "yes or no");
    assert_refused(fixture, LOAD(fixture, "--tls-cert", "a.pem"), "go together");
}

static void errors_in_the_file_name_its_line(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture, "[server]\nworker-queue = 1\nworker-quue = 2\n");
    assert_refused(fixture, LOAD(fixture, "--config", fixture->file), "line 3");
    write_file(fixture, "[sever]\nworker-queue = 1\n");
    assert_refused(fixture, LOAD(fixture, "--config", fixture->file), "[sever]");
    write_file(fixture, "[server]\nhttp2 = maybe\n");
    assert_refused(fixture, LOAD(fixture, "--config", fixture->file), "line 2");
    write_file(fixture, "[server]\nno sense\n");
    assert_refused(fixture, LOAD(fixture, "--config", fixture->file), "line 2");
    assert_refused(fixture, LOAD(fixture, "--config", "/does/not/exist"), "/does/not/exist");
    setenv("PERFOLIO_WORKER_QUEUE", "many", 1);
    assert_refused(fixture, LOAD(fixture, "--http2=no"), "PERFOLIO_WORKER_QUEUE");
}

static void public_urls_lose_their_last_slash_and_need_a_scheme(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(LOAD(fixture, "--public-url", "https://perf.example.org/"), ERR_NONE);
    assert_string_equal(fixture->settings.public_url, "https://perf.example.org");
    assert_refused(fixture, LOAD(fixture, "--public-url", "perf.example.org"), "https://");
}

/* The environment passes all settings to a child process. */
static void the_environment_passes_all_settings(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(LOAD(fixture, "--worker-queue", "7", "--max-profile-bytes=3MiB", "--listen",
                          "a:1", "--listen", "b:2", "--anonymous-sharing", "no", "--data-dir",
                          "/with space/x", "--log-level", "error", "--session-lifetime", "1d"),
                     ERR_NONE);
    char **environment = settings_to_environment(&fixture->settings);
    struct settings copy;
    struct err err;
    bool wants_help;
    for (char **at = environment; *at; at++)
        if (strncmp(*at, "PERFOLIO_", 9) == 0)
            putenv(*at);
    settings_init(&copy);
    enum err_code code = settings_load(&copy, 0, NULL, &wants_help, &err);
    for (char **at = environment; *at; at++) {
        char name[128];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*at, "="), *at);
        if (strncmp(name, "PERFOLIO_", 9) == 0)
            unsetenv(name);
    }
    assert_int_equal(code, ERR_NONE);
    assert_int_equal(copy.worker_queue, 7);
    assert_int_equal(copy.max_profile_bytes, 3 << 20);
    assert_int_equal(copy.listen_count, 2);
    assert_string_equal(copy.listen[1], "b:2");
    assert_false(copy.anonymous_sharing);
    assert_string_equal(copy.data_dir, "/with space/x");
    assert_int_equal(copy.log_level, LOG_ERROR);
    assert_int_equal(copy.session_lifetime_s, 86400);
    settings_fini(&copy);
    settings_free_environment(environment);
}

static void help_is_recognised_anywhere(void **state)
{
    struct fixture *fixture = *state;
    char wrong[] = "--wrong", help[] = "--help";
    char *arguments[] = {wrong, help};
    bool wants_help = false;
    assert_int_equal(settings_load(&fixture->settings, 2, arguments, &wants_help, &fixture->err),
                     ERR_NONE);
    assert_true(wants_help);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(defaults_are_those_of_make_run),
        TEST(flags_take_both_forms_and_units),
        TEST(flags_override_the_environment_which_overrides_the_file),
        TEST(old_names_are_accepted),
        TEST(listen_flags_add_up_and_override_other_sources),
        TEST(errors_name_their_source),
        TEST(errors_in_the_file_name_its_line),
        TEST(public_urls_lose_their_last_slash_and_need_a_scheme),
        TEST(the_environment_passes_all_settings),
        TEST(help_is_recognised_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
