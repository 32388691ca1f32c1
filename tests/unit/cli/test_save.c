#include "tests/unit/test.h"

#include "cli/interrupt.h"
#include "cli/save.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/perfolio-save-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return !mkdtemp(folder) || chdir(folder);
}

static int remove_folder(void **state)
{
    (void)state;
    unlink("file");
    return rmdir(folder);
}

static void assert_content(const char *expected)
{
    char text[64] = "";
    FILE *file = fopen("file", "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof(text) - 1, file), strlen(expected));
    fclose(file);
    assert_string_equal(text, expected);
}

static int count_files(void)
{
    int count = 0;
    DIR *listing = opendir(".");
    while (readdir(listing))
        count++;
    closedir(listing);
    return count - 2;
}

static void writes_whole_files_and_replaces_only_when_asked(void **state)
{
    (void)state;
    struct err err;
    struct stat status;
    umask(022);
    assert_int_equal(save_bytes(SPAN_LITERAL("one"), "file", false, &err), ERR_NONE);
    assert_content("one");
    assert_int_equal(stat("file", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0644);
    assert_int_equal(save_bytes(SPAN_LITERAL("two"), "file", false, &err), ERR_CONFLICT);
    assert_content("one");
    assert_int_equal(save_bytes(SPAN_LITERAL("two"), "file", true, &err), ERR_NONE);
    assert_content("two");
    assert_int_equal(count_files(), 1);
}

static void an_uncommitted_file_is_removed(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct save save;
    struct err err;
    assert_int_equal(save_open("other", false, arena, &save, &err), ERR_NONE);
    assert_int_equal(write(save.fd, "half", 4), 4);
    save_close(&save);
    save_close(&save);
    assert_int_equal(count_files(), 1);
    assert_int_equal(save_bytes(SPAN_LITERAL("x"), "/dev/null", false, &err), ERR_NONE);
    assert_int_equal(save_bytes(SPAN_LITERAL("x"), "/dev/full", false, &err), ERR_IO);
    assert_int_equal(save_bytes(SPAN_LITERAL("x"), "no/such/folder", false, &err), ERR_IO);
}

static bool is_interrupted_early;

/* Replaces the function of the C library: the user presses Ctrl-C as soon as the file exists. */
int mkostemp(char *path, int flags)
{
    memcpy(path + strlen(path) - 6, "AAAAAA", 6);
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | flags, 0600);
    if (is_interrupted_early)
        raise(SIGINT);
    return fd;
}

static void an_interrupt_right_after_opening_leaves_nothing(void **state)
{
    (void)state;
    int status = 0, before = count_files();
    pid_t child = fork();
    if (child == 0) {
        arena_auto arena = arena_create();
        struct save save;
        struct err err;
        signal(SIGINT, SIG_DFL);
        interrupt_install();
        is_interrupted_early = true;
        _exit(save_open("interrupted", false, arena, &save, &err) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    assert_int_equal(count_files(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_whole_files_and_replaces_only_when_asked),
        cmocka_unit_test(an_uncommitted_file_is_removed),
        cmocka_unit_test(an_interrupt_right_after_opening_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
