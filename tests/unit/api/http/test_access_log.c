#include "tests/unit/test.h"

#include "api/http/access_log.h"
#include "lib/base/err.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t used = fread(text, 1, size - 1, file);
    text[used] = '\0';
    fclose(file);
}

static void lines_go_to_the_new_file_after_a_reopen(void **state)
{
    (void)state;
    char folder[] = "/tmp/perfolio-test-XXXXXX", path[64], old[64], text[256];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/access.log", folder);
    snprintf(old, sizeof(old), "%s/access.log.1", folder);
    struct access_log *log;
    struct err err;
    assert_int_equal(access_log_create(path, &log, &err), ERR_NONE);
    access_log_append(log, SPAN_LITERAL("one\n"));
    do
        read_file(path, text, sizeof(text));
    while (text[0] == '\0');
    assert_int_equal(rename(path, old), 0);
    access_log_append(log, SPAN_LITERAL("two\n"));
    do
        read_file(old, text, sizeof(text));
    while (!strstr(text, "two"));
    /* Twice: the second call replaces a descriptor that the writer may not have taken yet. */
    assert_int_equal(access_log_reopen(log, &err), ERR_NONE);
    assert_int_equal(access_log_reopen(log, &err), ERR_NONE);
    access_log_append(log, SPAN_LITERAL("three\n"));
    access_log_destroy(log);
    read_file(old, text, sizeof(text));
    char more[256];
    read_file(path, more, sizeof(more));
    assert_string_equal(text, "one\ntwo\n");
    assert_string_equal(more, "three\n");
    unlink(path);
    unlink(old);
    rmdir(folder);
}

static void a_path_that_cannot_be_opened_is_named(void **state)
{
    (void)state;
    struct access_log *log;
    struct err err;
    assert_int_equal(access_log_create("/nowhere/access.log", &log, &err), ERR_IO);
    assert_non_null(strstr(err.message, "/nowhere/access.log"));
}

static void drops_lines_rather_than_grow(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0); /* nobody reads: the writer blocks once the pipe is full */
    char path[64];
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
    struct access_log *log;
    struct err err;
    assert_int_equal(access_log_create(path, &log, &err), ERR_NONE);
    static char line[1 << 16];
    memset(line, 'x', sizeof(line));
    /* 12.5 MiB: more than fit into the queue (4 MiB), the lines that the writer is writing (4 MiB)
     * and the pipe together. */
    for (int i = 0; i < 200; i++)
        access_log_append(log, span_of(line, sizeof(line)));
    assert_true(access_log_dropped(log) > 0);
    close(ends[0]); /* writes fail from now on */
    close(ends[1]);
    access_log_destroy(log);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_go_to_the_new_file_after_a_reopen),
        cmocka_unit_test(a_path_that_cannot_be_opened_is_named),
        cmocka_unit_test(drops_lines_rather_than_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
