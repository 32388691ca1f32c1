/* Files that a process names, where it has put something else by now. */
#include "tests/unit/test.h"

#include "agent/process_file.h"
#include "lib/base/os.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char folder[64];
    char library[80]; /* what the process says */
    char other[80];   /* what somebody has put there */
    int watch_fd;     /* of other: who opens it */
};

static void make_file(const char *path)
{
    fd_auto fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(os_write_all(fd, "code", 4), 0);
}

static int begin(void **state)
{
    static struct fixture fixture;
    snprintf(fixture.folder, sizeof(fixture.folder), "/tmp/perfolio-file-XXXXXX");
    assert_non_null(mkdtemp(fixture.folder));
    snprintf(fixture.library, sizeof(fixture.library), "%s/lib.so", fixture.folder);
    snprintf(fixture.other, sizeof(fixture.other), "%s/other", fixture.folder);
    fixture.watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    *state = &fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;
    os_close(fixture->watch_fd);
    (void)unlink(fixture->library);
    (void)unlink(fixture->other);
    return rmdir(fixture->folder);
}

static void watch_other(struct fixture *fixture)
{
    assert_true(inotify_add_watch(fixture->watch_fd, fixture->other, IN_OPEN) >= 0);
    assert_int_equal(symlink(fixture->other, fixture->library), 0);
}

static bool was_opened(const struct fixture *fixture)
{
    char events[512];
    return read(fixture->watch_fd, events, sizeof(events)) > 0;
}

static int open_library(const struct fixture *fixture, uint64_t inode)
{
    return process_file_open((uint32_t)getpid(), span_text(fixture->library), inode);
}

static void a_file_is_opened_by_its_path_and_inode(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;
    make_file(fixture->other);
    watch_other(fixture);
    assert_int_equal(stat(fixture->other, &status), 0);
    fd_auto any = open_library(fixture, 0), same = open_library(fixture, status.st_ino);
    assert_true(any >= 0 && same >= 0);
    assert_true(was_opened(fixture));
}

static void what_is_no_file_is_not_even_opened(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(mkfifo(fixture->other, 0600), 0);
    watch_other(fixture);
    assert_int_equal(open_library(fixture, 0), -1);
    assert_false(was_opened(fixture));
}

static void a_file_of_another_inode_is_not_even_opened(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;
    make_file(fixture->other);
    watch_other(fixture);
    assert_int_equal(stat(fixture->other, &status), 0);
    assert_int_equal(open_library(fixture, status.st_ino + 1), -1);
    assert_false(was_opened(fixture));
}

static void what_the_kernel_makes_is_not_opened(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const paths[] = {"/proc/self/status", "/proc/kcore",
                                        "/sys/kernel/uevent_seqnum", "/sys/kernel/tracing/trace",
                                        "/sys/kernel/notes"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        assert_int_equal(symlink(paths[i], fixture->library), 0);
        assert_int_equal(open_library(fixture, 0), -1);
        assert_int_equal(unlink(fixture->library), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_opened_by_its_path_and_inode, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_not_even_opened, begin, end),
        cmocka_unit_test_setup_teardown(a_file_of_another_inode_is_not_even_opened, begin, end),
        cmocka_unit_test_setup_teardown(what_the_kernel_makes_is_not_opened, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
