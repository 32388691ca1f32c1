/* Symbols of JIT code from files that real processes wrote. */
#include "agent/process/process_file.h"
#include "agent/symbols/jit_symbols.h"
#include "agent/symbols/perf_map.h"
#include "lib/base/clock.h"
#include "lib/base/os.h"
#include "tests/unit/test.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOBODY = 65534, GROUPS_MAX = 3000 };

struct fixture {
    pid_t child; /* of another user if this process may set users */
    char path[64];
    char other[64];
    struct jit_budget budget;
    struct jit_budget *shared; /* used instead of budget unless NULL */
    struct jit_symbols *names;
    pid_t number; /* process number for the child, or 0 for any */
};

static void write_file(const char *path, const char *text, uid_t user)
{
    fd_auto fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(os_write_all(fd, text, strlen(text)), 0);
    if (getuid() == 0)
        assert_int_equal(fchown(fd, user, user), 0);
}

static uid_t user_of_child(void)
{
    return getuid() ? getuid() : NOBODY;
}

/* Returns -1 if this process may not choose numbers. */
static pid_t fork_as(pid_t number)
{
    const struct clone_args arguments = {.exit_signal = SIGCHLD,
                                         .set_tid = (uint64_t)(uintptr_t)&number,
                                         .set_tid_size = number ? 1 : 0};
    return number ? (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments)) : fork();
}

/* Starts a child and waits until its users and groups are set, if this process may set them. */
static void start_child(struct fixture *fixture, uid_t real, uid_t effective, size_t group_count)
{
    gid_t groups[GROUPS_MAX];
    for (size_t i = 0; i < group_count; i++)
        groups[i] = (gid_t)(1000000000 + i);
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    fixture->child = fork_as(fixture->number);
    assert_true(fixture->child >= 0);
    if (fixture->child == 0) {
        if (getuid() == 0 &&
            (setgroups(group_count, groups) || setresuid(real, effective, effective)))
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
    snprintf(fixture->path, sizeof(fixture->path), "/tmp/perf-%d.map", fixture->child);
    (void)unlink(fixture->path); /* left behind by an earlier process with this number */
    snprintf(fixture->other, sizeof(fixture->other), "/tmp/perf-names-%d", fixture->child);
    fixture->names =
        jit_symbols_create(fixture->shared ? fixture->shared : &fixture->budget,
                           (uint32_t)fixture->child, process_file_owner((uint32_t)fixture->child));
}

static int begin(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.budget = {.max_bytes = 1 << 20}};
    start_child(&fixture, NOBODY, NOBODY, 0);
    *state = &fixture;
    return 0;
}

static void end_child(struct fixture *fixture)
{
    kill(fixture->child, SIGKILL);
    waitpid(fixture->child, NULL, 0);
}

static int end(void **state)
{
    struct fixture *fixture = *state;
    end_child(fixture);
    (void)unlink(fixture->path);
    (void)unlink(fixture->other);
    jit_symbols_release(fixture->names);
    assert_int_equal(fixture->budget.used_bytes, 0);
    return 0;
}

static void read_now(struct fixture *fixture)
{
    const struct jit_source source = {.shown_id = (uint32_t)fixture->child};
    jit_symbols_read(fixture->names, &source);
}

static bool has_name(const struct fixture *fixture, const char *name)
{
    struct jitdump_location location;
    return jit_symbols_look_up(fixture->names, 0x1000, &location) &&
           span_equal_text(location.function, name);
}

/* The first line and again the last line name the code at 0x1000. */
static void write_names(const char *path, int count, uid_t user)
{
    char *text = malloc((size_t)count * 32 + 64), *at = text;
    at += sprintf(at, "1000 20 first\n");
    for (int i = 1; i < count; i++)
        at += sprintf(at, "%x 20 other\n", 0x1000 + 0x20 * i);
    sprintf(at, "1000 20 last\n");
    write_file(path, text, user);
    free(text);
}

static void names_that_the_process_wrote_are_read(void **state)
{
    struct fixture *fixture = *state;
    assert_true(jit_symbols_is_due(fixture->names, 0));
    read_now(fixture);
    assert_false(has_name(fixture, "mine"));
    write_file(fixture->path, "1000 20 mine\n", user_of_child());
    read_now(fixture);
    assert_true(has_name(fixture, "mine"));
}

static void names_written_before_the_end_are_read_after_it(void **state)
{
    struct fixture *fixture = *state;
    read_now(fixture);
    end_child(fixture);
    write_file(fixture->path, "1000 20 late\n", user_of_child());
    jit_symbols_read_late(fixture->names, INT64_MAX, 0);
    assert_true(has_name(fixture, "late"));
}

static void a_file_of_another_user_is_not_read(void **state)
{
    struct fixture *fixture = *state;
    if (getuid() != 0)
        skip();
    write_file(fixture->path, "1000 20 secret\n", 0);
    read_now(fixture);
    assert_false(has_name(fixture, "secret"));
    assert_int_equal(chown(fixture->path, NOBODY, NOBODY), 0);
    read_now(fixture);
    assert_true(has_name(fixture, "secret"));
}

static void a_file_that_an_earlier_process_left_is_not_read(void **state)
{
    struct fixture *fixture = *state;
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = time(NULL) - 60}};
    write_file(fixture->path, "1000 20 left\n", user_of_child());
    assert_int_equal(utimensat(AT_FDCWD, fixture->path, times, 0), 0);
    read_now(fixture);
    assert_false(has_name(fixture, "left"));
    write_file(fixture->path, "1000 20 mine\n", user_of_child());
    read_now(fixture);
    assert_true(has_name(fixture, "mine"));
}

static void names_of_a_later_process_of_the_number_are_not_read(void **state)
{
    struct fixture *fixture = *state, later = {.shared = &fixture->budget};
    const pid_t number = fixture->child;
    if (getuid() != 0)
        skip();
    write_file(fixture->path, "1000 20 mine\n", NOBODY);
    read_now(fixture);
    end_child(fixture);
    usleep(20000); /* start times have a resolution of 10 ms */
    later.number = number;
    start_child(&later, 0, 0, 0);
    write_file(fixture->path, "1000 20 another's\n", 0);
    read_now(fixture);
    jit_symbols_read_late(fixture->names, INT64_MAX, 0);
    assert_true(has_name(fixture, "mine"));
    write_file(fixture->path, "1000 20 another of nobody's\n", NOBODY);
    read_now(fixture);
    assert_true(has_name(fixture, "mine"));
    jit_symbols_release(later.names);
}

/* Files of owners are read alternately: after a read, an owner must wait longer than another one.
 */
static void owners_read_symbol_files_alternately(void **state)
{
    struct fixture *fixture = *state, other = {.shared = &fixture->budget};
    if (getuid() != 0)
        skip();
    start_child(&other, 0, 0, 0);
    fixture->budget.max_bytes = 16 << 20;
    write_names(fixture->path, 100000, NOBODY);
    const int64_t began_ns = clock_monotonic_ns();
    read_now(fixture);
    const int64_t spent_ns = clock_monotonic_ns() - began_ns, far_ns = INT64_MAX / 2;
    assert_false(jit_symbols_is_due(other.names, far_ns));
    assert_true(jit_symbols_compare_read_order(other.names, fixture->names) < 0);
    clock_sleep_ms((int)(10 * spent_ns / CLOCK_NS_PER_MS) + 1);
    assert_true(jit_symbols_is_due(other.names, far_ns));
    assert_false(jit_symbols_is_due(fixture->names, far_ns));
    clock_sleep_ms((int)(10 * spent_ns / CLOCK_NS_PER_MS) + 1);
    assert_true(jit_symbols_is_due(fixture->names, far_ns));
    end_child(&other);
    jit_symbols_release(other.names);
}

static void a_link_is_not_followed(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture->other, "1000 20 elsewhere\n", user_of_child());
    assert_int_equal(symlink(fixture->other, fixture->path), 0);
    read_now(fixture);
    assert_false(has_name(fixture, "elsewhere"));
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(rename(fixture->other, fixture->path), 0);
    read_now(fixture);
    assert_true(has_name(fixture, "elsewhere"));
}

static void a_program_that_acts_for_another_user_has_no_names(void **state)
{
    struct fixture *fixture = *state;
    if (getuid() != 0)
        skip();
    end_child(fixture);
    jit_symbols_release(fixture->names);
    start_child(fixture, NOBODY, 0, 0);
    write_file(fixture->path, "1000 20 secret\n", 0);
    read_now(fixture);
    assert_false(has_name(fixture, "secret"));
}

static void a_user_in_many_groups_has_names(void **state)
{
    struct fixture *fixture = *state;
    if (getuid() != 0)
        skip();
    end_child(fixture);
    jit_symbols_release(fixture->names);
    start_child(fixture, NOBODY, NOBODY, GROUPS_MAX);
    assert_int_equal(process_file_owner((uint32_t)fixture->child), NOBODY);
    write_file(fixture->path, "1000 20 mine\n", NOBODY);
    read_now(fixture);
    assert_true(has_name(fixture, "mine"));
}

static void memory_is_shared_by_all(void **state)
{
    struct fixture *fixture = *state;
    write_names(fixture->path, 40000, user_of_child());
    read_now(fixture);
    assert_true(has_name(fixture, "first"));
    assert_int_equal(fixture->budget.refused, 1);
    assert_true(fixture->budget.used_bytes > 0);
    assert_true(fixture->budget.used_bytes <= fixture->budget.max_bytes / 2);
    fixture->budget.is_closed = true;
    assert_false(jit_symbols_is_due(fixture->names, INT64_MAX));
}

static void processes_of_a_user_leave_a_quarter_for_others(void **state)
{
    enum { COUNT = 8 };
    struct fixture *fixture = *state, others[COUNT];
    if (getuid() != 0)
        skip();
    for (int i = 0; i < COUNT; i++) {
        others[i] = (struct fixture){.shared = &fixture->budget};
        start_child(&others[i], NOBODY, NOBODY, 0);
        write_names(others[i].path, 40000, NOBODY);
        read_now(&others[i]);
    }
    assert_true(has_name(&others[0], "first"));
    assert_true(has_name(&others[1], "first"));
    assert_int_equal(fixture->budget.refused, COUNT);
    end_child(fixture);
    jit_symbols_release(fixture->names);
    start_child(fixture, 0, 0, 0);
    write_names(fixture->path, 1000, 0);
    read_now(fixture);
    assert_true(has_name(fixture, "last"));
    for (int i = 0; i < COUNT; i++)
        end_child(&others[i]);
    for (int i = 0; i < COUNT; i++) {
        (void)unlink(others[i].path);
        jit_symbols_release(others[i].names);
    }
}

static void long_names_are_cut_at_a_character(void **state)
{
    enum { BYTES = PERF_MAP_NAME_MAX_BYTES };
    char text[BYTES + 64];
    (void)state;
    struct perf_map *map = perf_map_create();
    int used = sprintf(text, "1000 20 ");
    memset(text + used, 'n', BYTES - 1);
    memcpy(text + used + BYTES - 1, "\xc3\xa9 and more", 11);
    perf_map_take(map, span_text(text));
    assert_int_equal(perf_map_find(map, 0x1000).size, BYTES - 1);
    perf_map_destroy(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_that_the_process_wrote_are_read, begin, end),
        cmocka_unit_test_setup_teardown(names_written_before_the_end_are_read_after_it, begin, end),
        cmocka_unit_test_setup_teardown(a_file_of_another_user_is_not_read, begin, end),
        cmocka_unit_test_setup_teardown(a_file_that_an_earlier_process_left_is_not_read, begin,
                                        end),
        cmocka_unit_test_setup_teardown(names_of_a_later_process_of_the_number_are_not_read, begin,
                                        end),
        cmocka_unit_test_setup_teardown(owners_read_symbol_files_alternately, begin, end),
        cmocka_unit_test_setup_teardown(a_link_is_not_followed, begin, end),
        cmocka_unit_test_setup_teardown(a_program_that_acts_for_another_user_has_no_names, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_user_in_many_groups_has_names, begin, end),
        cmocka_unit_test_setup_teardown(memory_is_shared_by_all, begin, end),
        cmocka_unit_test_setup_teardown(processes_of_a_user_leave_a_quarter_for_others, begin, end),
        cmocka_unit_test(long_names_are_cut_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
