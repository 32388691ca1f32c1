#include "tests/unit/test.h"

#include "cli/save.h"
#include "lib/base/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static void what_is_not_committed_leaves_nothing(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_whole_files_and_replaces_only_when_asked),
        cmocka_unit_test(what_is_not_committed_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
