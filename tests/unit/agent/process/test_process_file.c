/* Opens files by a path that a process reported and that leads to another file now. */
#include "tests/unit/test.h"

#include "agent/process/proc_text.h"
#include "agent/process/process_file.h"
#include "lib/base/os.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

struct fixture {
    char folder[64];
    char library[80]; /* the path that the process reports */
    char other[80];   /* the file that replaced it */
    int watch_fd;     /* inotify of other: detects who opens it */
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

static void only_regular_files_are_opened(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(mkfifo(fixture->other, 0600), 0);
    watch_other(fixture);
    assert_int_equal(open_library(fixture, 0), -1);
    assert_false(was_opened(fixture));
}

static void a_file_with_another_inode_is_not_opened(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;
    make_file(fixture->other);
    watch_other(fixture);
    assert_int_equal(stat(fixture->other, &status), 0);
    assert_int_equal(open_library(fixture, status.st_ino + 1), -1);
    assert_false(was_opened(fixture));
}

static void files_of_kernel_file_systems_are_not_opened(void **state)
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

static pid_t start_child(uid_t user)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (user && setresuid(user, user, user))
            _exit(1);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* last: a change of the user clears it */
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Otherwise a program could get a quota for each of its processes by ending them in time. */
static void processes_that_have_ended_are_one_owner(void **state)
{
    (void)state;
    const pid_t first = start_child(0), second = start_child(0);
    end_child(first);
    end_child(second);
    const uint64_t owner = process_file_owner((uint32_t)first);
    assert_int_not_equal(owner, 0);
    assert_false(process_file_is_user(owner));
    assert_int_equal(process_file_owner((uint32_t)second), owner);
}

static void processes_belong_to_their_user_and_those_of_root_to_themselves(void **state)
{
    (void)state;
    if (getuid() != 0)
        skip();
    const pid_t first = start_child(NOBODY), second = start_child(0), third = start_child(0);
    assert_int_equal(process_file_owner((uint32_t)first), NOBODY);
    assert_true(process_file_is_user(NOBODY));
    assert_int_not_equal(process_file_owner((uint32_t)second), process_file_owner((uint32_t)third));
    end_child(first);
    end_child(second);
    end_child(third);
}

static void write_text(const char *path, const char *text)
{
    fd_auto fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(os_write_all(fd, text, strlen(text)), 0);
}

/* Like newuidmap for rootless containers: the namespace contains user ids that belong only to the
 * user who created it. */
static void users_of_a_rootless_namespace_belong_to_its_creator(void **state)
{
    (void)state;
    int made[2], mapped[2];
    char byte = 0, path[64];
    if (getuid() != 0)
        skip();
    assert_int_equal(pipe(made) | pipe(mapped), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        byte = setresuid(NOBODY, NOBODY, NOBODY) == 0 && unshare(CLONE_NEWUSER) == 0;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (write(made[1], &byte, 1) != 1 || read(mapped[0], &byte, 1) != 1)
            _exit(1);
        byte = setresuid(1, 1, 1) == 0;
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* last: a change of the user clears it */
        (void)!write(made[1], &byte, 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(made[0], &byte, 1), 1);
    if (!byte) {
        end_child(child);
        skip();
    }
    snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
    write_text(path, "0 65534 1\n1 1000001 1\n");
    assert_int_equal(write(mapped[1], "", 1), 1);
    assert_int_equal(read(made[0], &byte, 1), 1);
    assert_int_equal(byte, 1);
    uint32_t real, effective;
    buf_auto text;
    assert_true(process_file_read_status((uint32_t)child, &text));
    assert_true(proc_text_users(buf_span(&text), &real, &effective));
    assert_int_equal(real, 1000001);
    assert_int_equal(process_file_owner((uint32_t)child), NOBODY);
    end_child(child);
    for (int i = 0; i < 2; i++) {
        close(made[i]);
        close(mapped[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_opened_by_its_path_and_inode, begin, end),
        cmocka_unit_test_setup_teardown(only_regular_files_are_opened, begin, end),
        cmocka_unit_test_setup_teardown(a_file_with_another_inode_is_not_opened, begin, end),
        cmocka_unit_test_setup_teardown(files_of_kernel_file_systems_are_not_opened, begin, end),
        cmocka_unit_test(processes_that_have_ended_are_one_owner),
        cmocka_unit_test(processes_belong_to_their_user_and_those_of_root_to_themselves),
        cmocka_unit_test(users_of_a_rootless_namespace_belong_to_its_creator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
