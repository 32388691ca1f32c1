#include "tests/unit/test.h"

#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char path[64];
    int fd;
};

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static int set_up(void **state)
{
    struct fixture *fixture = mem_new(struct fixture, 1);
    snprintf(fixture->path, sizeof(fixture->path), "/tmp/perfolio-os-XXXXXX");
    if (!mkdtemp(fixture->path))
        return -1;
    fixture->fd = open(fixture->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    os_fault_reset();
    close(fixture->fd);
    nftw(fixture->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(fixture);
    return 0;
}

static int create(const struct fixture *fixture, const char *name, const char *text)
{
    int fd = os_openat(fixture->fd, name, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(os_write_all(fd, text, strlen(text)), 0);
    return fd;
}

static void assert_content(const struct fixture *fixture, const char *name, const char *text)
{
    char content[64] = "";
    int fd = openat(fixture->fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_msg("%s is not there", name);
    assert_true(read(fd, content, sizeof(content) - 1) >= 0);
    close(fd);
    assert_string_equal(content, text);
}

static bool is_there(const struct fixture *fixture, const char *name)
{
    return faccessat(fixture->fd, name, F_OK, 0) == 0;
}

static void opens_regular_files_only_and_never_blocks(void **state)
{
    const struct fixture *fixture = *state;
    struct stat status;
    os_close(create(fixture, "file", "12345"));
    assert_int_equal(mkfifoat(fixture->fd, "fifo", 0600), 0);
    assert_int_equal(mkdirat(fixture->fd, "folder", 0700), 0);
    assert_int_equal(symlinkat("file", fixture->fd, "link"), 0);
    const int fd = os_open_file(fixture->fd, "file", &status);
    assert_true(fd >= 0);
    assert_int_equal(status.st_size, 5);
    os_close(fd);
    assert_int_equal(os_open_file(fixture->fd, "fifo", &status), -1);
    assert_int_equal(errno, EMEDIUMTYPE);
    assert_int_equal(os_open_file(fixture->fd, "folder", &status), -1);
    assert_int_equal(errno, EMEDIUMTYPE);
    assert_int_equal(os_open_file(fixture->fd, "link", &status), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(os_open_file(fixture->fd, "none", &status), -1);
    assert_int_equal(errno, ENOENT);
}

static void fails_the_nth_call_only(void **state)
{
    const struct fixture *fixture = *state;
    int fd = create(fixture, "file", "");
    os_fault_plan(OS_CALL_WRITE, 2, ENOSPC, false);
    assert_int_equal(os_write(fd, "a", 1), 1);
    assert_int_equal(os_write(fd, "b", 1), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(os_write(fd, "c", 1), 1);
    assert_int_equal(os_fault_count(OS_CALL_WRITE), 3);
    os_close(fd);
    assert_content(fixture, "file", "ac");
}

static void keeps_failing_if_requested(void **state)
{
    const struct fixture *fixture = *state;
    int fd = create(fixture, "file", "");
    os_fault_plan(OS_CALL_SYNC, 1, EIO, true);
    assert_int_equal(os_fsync(fd), -1);
    assert_int_equal(os_fdatasync(fd), -1);
    os_fault_reset();
    assert_int_equal(os_fsync(fd), 0);
    os_close(fd);
}

static void a_short_write_is_continued(void **state)
{
    const struct fixture *fixture = *state;
    int fd = create(fixture, "file", "");
    os_fault_plan(OS_CALL_WRITE, 1, 0, false);
    assert_int_equal(os_write_all(fd, "12345678", 8), 0);
    assert_int_equal(os_fault_count(OS_CALL_WRITE), 2);
    os_close(fd);
    assert_content(fixture, "file", "12345678");
}

static void loses_writes_since_the_last_sync(void **state)
{
    const struct fixture *fixture = *state;
    int fd = create(fixture, "file", "old ");
    os_fault_record(fixture->path);
    assert_int_equal(os_write_all(fd, "synced ", 7), 0);
    assert_int_equal(os_fdatasync(fd), 0);
    assert_int_equal(os_write_all(fd, "lost", 4), 0);
    assert_content(fixture, "file", "old synced lost");
    os_fault_lose_unsynced();
    os_close(fd);
    assert_content(fixture, "file", "old synced ");
}

static void loses_names_in_unsynced_folders(void **state)
{
    const struct fixture *fixture = *state;
    os_fault_record(fixture->path);
    int kept = create(fixture, "kept", "1");
    assert_int_equal(os_fsync(kept), 0);
    assert_int_equal(os_fsync(fixture->fd), 0);
    int lost = create(fixture, "lost", "2");
    assert_int_equal(os_fsync(lost), 0);
    assert_int_equal(os_mkdirat(fixture->fd, "folder", 0700), 0);
    int inner = create(fixture, "folder/inner", "3");
    assert_int_equal(os_fsync(inner), 0);
    os_fault_lose_unsynced();
    os_close(kept);
    os_close(lost);
    os_close(inner);
    assert_content(fixture, "kept", "1");
    assert_false(is_there(fixture, "lost"));
    assert_false(is_there(fixture, "folder"));
}

static void a_name_without_its_content_is_an_empty_file(void **state)
{
    const struct fixture *fixture = *state;
    os_fault_record(fixture->path);
    int fd = create(fixture, "file", "never synced");
    assert_int_equal(os_fsync(fixture->fd), 0);
    os_fault_lose_unsynced();
    os_close(fd);
    assert_content(fixture, "file", "");
}

static void undoes_renames_and_removals(void **state)
{
    const struct fixture *fixture = *state;
    os_close(create(fixture, "a", "a"));
    os_close(create(fixture, "b", "b"));
    os_close(create(fixture, "c", "c"));
    os_fault_record(fixture->path);
    assert_int_equal(os_renameat(fixture->fd, "a", fixture->fd, "b"), 0);
    assert_int_equal(os_unlinkat(fixture->fd, "c"), 0);
    assert_content(fixture, "b", "a");
    os_fault_lose_unsynced();
    assert_content(fixture, "a", "a");
    assert_content(fixture, "b", "b");
    assert_content(fixture, "c", "c");
    os_fault_record(fixture->path);
    assert_int_equal(os_renameat(fixture->fd, "a", fixture->fd, "b"), 0);
    assert_int_equal(os_fsync(fixture->fd), 0);
    os_fault_lose_unsynced();
    assert_false(is_there(fixture, "a"));
    assert_content(fixture, "b", "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opens_regular_files_only_and_never_blocks, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(fails_the_nth_call_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_failing_if_requested, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_short_write_is_continued, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loses_writes_since_the_last_sync, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loses_names_in_unsynced_folders, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_name_without_its_content_is_an_empty_file, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(undoes_renames_and_removals, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
