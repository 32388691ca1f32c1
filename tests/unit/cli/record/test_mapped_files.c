#include "tests/unit/test.h"

#include "cli/record/mapped_files.h"
#include "lib/base/os.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/perfolio-kept-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return !mkdtemp(folder) || chdir(folder);
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static void write_file(const char *name, const char *text)
{
    fd_auto fd = os_openat(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(os_write_all(fd, text, strlen(text)), 0);
}

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void add(struct mapped_files *files, const char *build_id, const char *name)
{
    mapped_files_add(files, build_id, path_of(name), os_openat(AT_FDCWD, name, O_RDONLY, 0));
}

/* Returns the state and, if the file is open, its text. */
static enum mapped_file_state find(struct mapped_files *files, const char *build_id,
                                   const char *name, char text[16])
{
    fd_auto fd = -1;
    const enum mapped_file_state state =
        mapped_files_find(files, span_text(build_id), span_text(path_of(name)), &fd);
    memset(text, 0, 16);
    if (state == MAPPED_FILE_OPEN)
        assert_true(os_pread(fd, text, 15, 0) >= 0);
    return state;
}

static void deleted_and_replaced_files_are_still_available(void **state)
{
    (void)state;
    struct mapped_files *files = mapped_files_create();
    char text[16];
    write_file("one", "first");
    write_file("two", "second");
    add(files, "ab", "one");
    add(files, "", "two");
    assert_int_equal(find(files, "ab", "one", text), MAPPED_FILE_AT_PATH);
    assert_int_equal(find(files, "", "two", text), MAPPED_FILE_AT_PATH);
    write_file("new", "another");
    assert_int_equal(rename("new", "one"), 0);
    assert_int_equal(unlink("two"), 0);
    assert_int_equal(find(files, "ab", "one", text), MAPPED_FILE_OPEN);
    assert_string_equal(text, "first");
    assert_int_equal(find(files, "", "two", text), MAPPED_FILE_OPEN);
    assert_string_equal(text, "second");
    assert_int_equal(find(files, "cd", "one", text), MAPPED_FILE_NONE);
    assert_int_equal(find(files, "", "one", text), MAPPED_FILE_NONE);
    mapped_files_destroy(files);
}

static void a_modified_file_is_another_file(void **state)
{
    (void)state;
    struct mapped_files *files = mapped_files_create();
    char text[16];
    write_file("three", "before");
    add(files, "", "three");
    add(files, "ef", "three");
    write_file("three", "thereafter");
    assert_int_equal(find(files, "", "three", text), MAPPED_FILE_CHANGED);
    assert_int_equal(find(files, "ef", "three", text), MAPPED_FILE_CHANGED);
    mapped_files_destroy(files);
}

static void two_files_without_an_id_at_one_path_are_not_distinguished(void **state)
{
    (void)state;
    struct mapped_files *files = mapped_files_create();
    char text[16];
    write_file("four", "first");
    add(files, "", "four");
    add(files, "", "four");
    assert_int_equal(find(files, "", "four", text), MAPPED_FILE_AT_PATH);
    assert_int_equal(unlink("four"), 0);
    write_file("four", "second");
    add(files, "", "four");
    assert_int_equal(find(files, "", "four", text), MAPPED_FILE_SEVERAL);
    mapped_files_destroy(files);
}

/* A quarter of 40 descriptors may be used: system files are closed first, and their identity is
 * still known. */
static void files_of_the_system_are_closed_first(void **state)
{
    (void)state;
    struct rlimit usual;
    char text[16], name[16], id[16];
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const struct rlimit few = {.rlim_cur = 40, .rlim_max = 40};
    const pid_t child = fork();
    if (child > 0) {
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        return;
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct mapped_files *files = mapped_files_create();
    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof(id), "a%d", i);
        mapped_files_add(files, id, "/usr/bin/env",
                         os_openat(AT_FDCWD, "/usr/bin/env", O_RDONLY, 0));
    }
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof(name), "many%d", i);
        write_file(name, name);
        add(files, i == 11 ? "" : name, name);
        assert_int_equal(i == 11 ? 0 : unlink(name), 0);
    }
    for (int i = 0; i < 11; i++) {
        snprintf(name, sizeof(name), "many%d", i);
        if (find(files, name, name, text) != (i < 10 ? MAPPED_FILE_OPEN : MAPPED_FILE_CHANGED))
            _exit(1);
    }
    if (find(files, "", "many11", text) != MAPPED_FILE_AT_PATH)
        _exit(1);
    mapped_files_destroy(files);
    _exit(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deleted_and_replaced_files_are_still_available),
        cmocka_unit_test(a_modified_file_is_another_file),
        cmocka_unit_test(two_files_without_an_id_at_one_path_are_not_distinguished),
        cmocka_unit_test(files_of_the_system_are_closed_first),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
