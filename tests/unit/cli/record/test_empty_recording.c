#include "tests/unit/test.h"

#include "cli/record/empty_recording.h"
#include "lib/base/err.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void assert_explained(const struct empty_recording *recording, const char *words)
{
    struct err err;
    assert_int_equal(empty_recording_explain(recording, &err), ERR_NOT_FOUND);
    if (!strstr(err.message, words))
        fail_msg("'%s' is not in '%s'", words, err.message);
}

static void explains_why_a_recording_is_empty(void **state)
{
    (void)state;
    static char name[] = "name";
    char *command[] = {name, NULL};
    struct empty_recording recording = {.frequency_hz = 99, .event = EVENT_CPU};
    assert_explained(&recording, "no process used CPU time");
    recording.target_count = 1;
    assert_explained(&recording, "the process used no CPU time");
    recording.target_count = 2;
    assert_explained(&recording, "the processes used no CPU time");
    recording =
        (struct empty_recording){.command = command, .frequency_hz = 99, .event = EVENT_CPU};
    assert_explained(&recording, "the program used no CPU time, or too little for 99 Hz");
}

/* Writes a setgid program with a unique name. */
static void make_program(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    assert_true(fd >= 0);
    assert_int_equal(fchown(fd, geteuid(), getegid() + 1), 0);
    assert_int_equal(fchmod(fd, 02755), 0);
    close(fd);
}

static void a_program_is_searched_like_exec_does(void **state)
{
    (void)state;
    static char name[] = "perfolio-test-setgid", shell[] = "sh", folder[] = "/tmp/no-sample-XXXXXX";
    char *command[] = {name, NULL};
    const char *const paths[] = {":/nowhere", "/nowhere:", "", "/nowhere::/nowhere", "/nowhere:."};
    struct empty_recording recording = {
        .command = command, .is_unprivileged = true, .frequency_hz = 99};
    if (geteuid() != 0)
        skip();
    const char *before = getenv("PATH");
    assert_true(mkdtemp(folder) && chdir(folder) == 0);
    make_program(name);
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        setenv("PATH", paths[i], 1);
        assert_explained(&recording, "setuid or setgid");
    }
    setenv("PATH", "/nowhere", 1);
    assert_explained(&recording, "used no CPU time");

    /* Without PATH, the default folders are searched and the current folder is not. */
    unsetenv("PATH");
    assert_explained(&recording, "used no CPU time");
    command[0] = shell;
    make_program(shell);
    assert_explained(&recording, "used no CPU time");
    if (before)
        setenv("PATH", before, 1);
    unlink(name);
    unlink(shell);
    assert_true(chdir("/") == 0 && rmdir(folder) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explains_why_a_recording_is_empty),
        cmocka_unit_test(a_program_is_searched_like_exec_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
