#include "tests/unit/test.h"

#include "agent/process/proc_text.h"
#include "agent/process/process.h"
#include "agent/process/process_event.h"
#include "agent/process/process_file.h"
#include "agent/process/processes.h"
#include "lib/base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_loss_during_a_scan_waits_for_the_next_second(void **state)
{
    (void)state;
    struct binaries *binaries = binaries_create();
    const struct processes_options options = {.has_targets = true};
    struct processes *processes = processes_create(binaries, &options);
    const struct process_event lost = {.kind = PROCESS_EVENT_LOST, .lost_count = 1};
    struct processes_counts counts;
    for (int i = 0; i < 3; i++)
        processes_apply(processes, &lost);
    processes_sweep(processes, clock_monotonic_ns() - CLOCK_NS_PER_S / 2);
    processes_count(processes, &counts);
    assert_int_equal(counts.scans, 1);
    /* The request for a scan is kept, and executed once. The scan itself may have taken seconds. */
    processes_sweep(processes, clock_monotonic_ns() + 600 * CLOCK_NS_PER_S);
    processes_sweep(processes, clock_monotonic_ns() + 1200 * CLOCK_NS_PER_S);
    processes_count(processes, &counts);
    assert_int_equal(counts.scans, 2);
    processes_destroy(processes);
    binaries_destroy(binaries);
}

static void copy_file(const char *from, const char *to)
{
    char command[512];
    snprintf(command, sizeof(command), "cp %s %s.new && mv %s.new %s", from, to, to, to);
    assert_int_equal(system(command), 0);
}

/* Applies a mapping event of a kernel that reports no build ids; returns the binary of the
 * mapping. */
static const struct binary *map(struct processes *processes, struct binaries *binaries,
                                const char *path)
{
    struct stat status;
    const uint64_t inode = stat(path, &status) == 0 ? status.st_ino : 1;
    const struct process_event event = {.kind = PROCESS_EVENT_MAP,
                                        .process_id = (uint32_t)getpid(),
                                        .start = 0x10000,
                                        .bytes = 0x4000,
                                        .inode = inode,
                                        .path = span_text(path)};
    processes_apply(processes, &event);
    const struct process *process = processes_get(processes, (uint32_t)getpid());
    const struct process_mapping *mapping = process_find_mapping(process, 0x10000);
    assert_non_null(mapping);
    return mapping->binary == BINARY_NONE ? NULL : binaries_get(binaries, mapping->binary);
}

static void a_replaced_file_is_another_binary(void **state)
{
    (void)state;
    struct binaries *binaries = binaries_create();
    const struct processes_options options = {.has_targets = false};
    struct processes *processes = processes_create(binaries, &options);
    char folder[] = "/tmp/perfolio-processes-XXXXXX", first[64], second[64];
    assert_non_null(mkdtemp(folder));
    snprintf(first, sizeof(first), "%s/first", folder);
    snprintf(second, sizeof(second), "%s/second", folder);
    copy_file("/bin/true", first);
    copy_file("/bin/false", second);
    assert_string_equal(map(processes, binaries, first)->path, first);
    assert_string_equal(map(processes, binaries, second)->path, second);
    const uint64_t serial = map(processes, binaries, second)->serial;
    assert_int_equal(map(processes, binaries, second)->serial, serial);
    /* Another file with the same name. */
    copy_file("/bin/ls", second);
    const uint64_t replaced = map(processes, binaries, second)->serial;
    assert_int_not_equal(replaced, serial);
    /* The data of a deleted file is kept. */
    assert_int_equal(unlink(second), 0);
    assert_int_equal(map(processes, binaries, second)->serial, replaced);
    assert_null(map(processes, binaries, "//anon"));
    assert_int_equal(unlink(first), 0);
    assert_int_equal(rmdir(folder), 0);
    processes_destroy(processes);
    binaries_destroy(binaries);
}

static const struct process_mapping *find_real(struct processes *processes, const void *start)
{
    const struct process *process = processes_get(processes, (uint32_t)getpid());
    return process_find_mapping(process, (uint64_t)(uintptr_t)start);
}

/* A process may add TAKEN mappings by events in a second. Further ones are only counted, and the
 * next sweep reads them from /proc. */
static void too_many_mapping_events_cause_one_scan_of_proc(void **state)
{
    (void)state;
    enum { EVENTS = 1000, TAKEN = 256, PAGE = 4096 };
    struct binaries *binaries = binaries_create();
    const struct processes_options options = {.has_targets = false};
    struct processes *processes = processes_create(binaries, &options);
    uint8_t *start = mmap(NULL, 2UL * EVENTS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(start, MAP_FAILED);
    for (size_t i = 0; i < EVENTS; i++) {
        uint8_t *page = start + 2 * i * PAGE;
        assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_EXEC), 0);
        const struct process_event event = {.kind = PROCESS_EVENT_MAP,
                                            .process_id = (uint32_t)getpid(),
                                            .start = (uint64_t)(uintptr_t)page,
                                            .bytes = PAGE,
                                            .path = span_text("//anon")};
        processes_apply(processes, &event);
    }
    assert_int_equal(processes_get(processes, (uint32_t)getpid())->mapping_count, TAKEN);
    assert_null(find_real(processes, start + 2UL * TAKEN * PAGE));
    processes_sweep(processes, clock_monotonic_ns());
    for (size_t i = 0; i < EVENTS; i++)
        assert_non_null(find_real(processes, start + 2 * i * PAGE));
    assert_int_equal(munmap(start, 2UL * EVENTS * PAGE), 0);
    processes_destroy(processes);
    binaries_destroy(binaries);
}

/* A mapping without space is reported by an event and found again by a scan, and counted once. */
static void a_mapping_without_space_is_counted_once(void **state)
{
    (void)state;
    /* MOST: the limit of mappings. A_SECOND: few enough per second to be added by events. */
    enum { MOST = 65535, MORE = 500, A_SECOND = 200 };
    struct binaries *binaries = binaries_create();
    const struct processes_options options = {.has_targets = false};
    struct processes *processes = processes_create(binaries, &options);
    struct processes_counts counts;
    for (uint64_t i = 0; i < MOST + MORE; i++) {
        const struct process_event event = {.kind = PROCESS_EVENT_MAP,
                                            .time_ns =
                                                (int64_t)(10 + i / A_SECOND) * CLOCK_NS_PER_S,
                                            .process_id = (uint32_t)getpid(),
                                            .start = UINT64_C(0x100000000) + i * 0x2000,
                                            .bytes = 0x1000,
                                            .path = span_text("//anon")};
        processes_apply(processes, &event);
    }
    processes_count(processes, &counts);
    assert_int_equal(counts.mappings, MOST);
    assert_int_equal(counts.refused_mappings, MORE);
    for (int i = 1; i <= 3; i++)
        processes_sweep(processes, clock_monotonic_ns() + i * 1000 * CLOCK_NS_PER_S);
    assert_true(processes_get(processes, (uint32_t)getpid())->has_refused);
    processes_count(processes, &counts);
    assert_int_equal(counts.refused_mappings, MORE);
    processes_destroy(processes);
    binaries_destroy(binaries);
}

/* ---- very many mappings ---- */

enum { MANY = 25000, MANY_PAGE = 4096 };

/* Many executable mappings, which cannot be joined and which children inherit. */
static uint8_t *map_many(void)
{
    uint8_t *start =
        mmap(NULL, 2UL * MANY * MANY_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(start, MAP_FAILED);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(mprotect(start + 2 * i * MANY_PAGE, MANY_PAGE, PROT_READ | PROT_EXEC), 0);
    return start;
}

static void unmap_many(uint8_t *start)
{
    assert_int_equal(munmap(start, 2UL * MANY * MANY_PAGE), 0);
}

/* The number of these processes whose mappings are all known. */
static int count_scanned(struct processes *processes, const pid_t *children, int count)
{
    int scanned = 0;
    for (int i = 0; i < count; i++)
        scanned += processes_get(processes, (uint32_t)children[i])->mapping_count >= MANY;
    return scanned;
}

static void end_children(const pid_t *children, int count)
{
    for (int i = 0; i < count; i++) {
        kill(children[i], SIGKILL);
        assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
    }
}

static pid_t start_pausing(void)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return child;
}

/* Scans of one process may take a tenth of the time, and so may those of all processes together. */
static void processes_of_very_many_mappings_wait_for_each_other(void **state)
{
    (void)state;
    enum { COUNT = 6, EVENTS = 300 };
    struct binaries *binaries = binaries_create();
    const struct processes_options options = {.has_targets = false};
    struct processes *processes = processes_create(binaries, &options);
    uint8_t *start = map_many();
    pid_t children[COUNT];
    for (int i = 0; i < COUNT; i++) {
        children[i] = start_pausing();
        for (size_t j = 0; j < EVENTS; j++) {
            const struct process_event event = {
                .kind = PROCESS_EVENT_MAP,
                .process_id = (uint32_t)children[i],
                .start = (uint64_t)(uintptr_t)(start + 2 * j * MANY_PAGE),
                .bytes = MANY_PAGE,
                .path = span_text("//anon")};
            processes_apply(processes, &event);
        }
    }
    unmap_many(start);
    processes_sweep(processes, clock_monotonic_ns());
    int scanned = count_scanned(processes, children, COUNT);
    assert_in_range(scanned, 1, COUNT - 1);
    processes_sweep(processes, clock_monotonic_ns());
    assert_int_equal(count_scanned(processes, children, COUNT), scanned);
    /* The processes are scanned one after another. */
    for (int i = 1; scanned < COUNT; i++) {
        processes_sweep(processes, clock_monotonic_ns() + i * 1000 * CLOCK_NS_PER_S);
        const int before = scanned;
        scanned = count_scanned(processes, children, COUNT);
        assert_true(scanned > before);
    }
    end_children(children, COUNT);
    processes_destroy(processes);
    binaries_destroy(binaries);
}

static void *wait_for_the_end(void *unused)
{
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

/* Starts a child with two threads; the first one ends when the test writes to the pipe. */
static pid_t start_survivor(int *ret_signal_fd)
{
    int signal_pipe[2], ready[2];
    char byte = 0;
    assert_int_equal(pipe(signal_pipe) | pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pthread_t thread;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&thread, NULL, wait_for_the_end, NULL) || write(ready[1], &byte, 1) != 1)
            _exit(1);
        (void)!read(signal_pipe[0], &byte, 1);
        (void)syscall(SYS_exit, 0); /* ends this thread only */
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(signal_pipe[0]);
    close(ready[0]);
    close(ready[1]);
    *ret_signal_fd = signal_pipe[1];
    return child;
}

static void end_first_thread(pid_t child, int signal_fd)
{
    assert_int_equal(write(signal_fd, "", 1), 1);
    close(signal_fd);
    for (int i = 0; i < 1000 && !process_file_has_ended((uint32_t)child); i++)
        usleep(10000);
    assert_true(process_file_has_ended((uint32_t)child));
}

static const struct binary *program_of(struct processes *processes, struct binaries *binaries,
                                       pid_t child)
{
    const struct process *process = processes_get(processes, (uint32_t)child);
    const struct process_mapping *mapping =
        process_find_mapping(process, (uint64_t)(uintptr_t)start_survivor);
    assert_non_null(mapping);
    return binaries_get(binaries, mapping->binary);
}

/* The mapping of this program, which its children share. */
static struct process_event own_mapping(pid_t child, char path[256])
{
    struct process_event event = {.kind = PROCESS_EVENT_MAP, .process_id = (uint32_t)child};
    const uint64_t address = (uint64_t)(uintptr_t)start_survivor;
    char line[512];
    FILE *file = fopen("/proc/self/maps", "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        struct proc_mapping found;
        if (!proc_text_mapping(span_trim(span_text(line)), &found) || address < found.start ||
            address >= found.limit)
            continue;
        snprintf(path, 256, "%.*s", SPAN_PRINT(found.path));
        event.start = found.start;
        event.bytes = found.limit - found.start;
        event.file_offset = found.file_offset;
        event.inode = found.inode;
        event.device_major = found.device_major;
        event.device_minor = found.device_minor;
    }
    fclose(file);
    assert_int_not_equal(event.bytes, 0);
    event.path = span_text(path);
    return event;
}

static void other_threads_replace_an_ended_first_thread(void **state)
{
    (void)state;
    struct binaries *binaries = binaries_create();
    const struct processes_options options = {.has_targets = false};
    struct processes *processes = processes_create(binaries, &options);
    int signal_fd;
    char path[256];
    const pid_t child = start_survivor(&signal_fd);
    const uint32_t number = (uint32_t)child;
    const struct process_event exec = {.kind = PROCESS_EVENT_NAME,
                                       .process_id = number,
                                       .thread_id = number,
                                       .is_exec = true},
                               thread = {.kind = PROCESS_EVENT_FORK,
                                         .process_id = number,
                                         .thread_id = number + 1,
                                         .parent_id = number},
                               ended = {.kind = PROCESS_EVENT_EXIT,
                                        .process_id = number,
                                        .thread_id = number,
                                        .time_ns = clock_monotonic_ns()},
                               mapping = own_mapping(child, path);
    processes_apply(processes, &exec);
    processes_apply(processes, &thread);
    end_first_thread(child, signal_fd);
    /* The program is looked up when a late event shows that the process is alive. */
    processes_apply(processes, &mapping);
    assert_int_equal(program_of(processes, binaries, child)->file.segment_count, 0);
    processes_apply(processes, &ended);
    const struct process *process = processes_get(processes, number);
    assert_int_not_equal(process->shown_id, number);
    assert_false(process_has_ended(process));
    assert_int_not_equal(program_of(processes, binaries, child)->file.segment_count, 0);
    /* The process is still known later. */
    processes_sweep(processes, ended.time_ns + 5 * CLOCK_NS_PER_S);
    assert_non_null(processes_get(processes, number));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    processes_sweep(processes, ended.time_ns + 10 * CLOCK_NS_PER_S);
    assert_null(processes_get(processes, number));
    processes_destroy(processes);
    binaries_destroy(binaries);
}

static void ends_of_first_threads_wait_for_each_other(void **state)
{
    (void)state;
    enum { COUNT = 2 };
    struct binaries *binaries = binaries_create();
    const struct processes_options options = {.has_targets = false};
    struct processes *processes = processes_create(binaries, &options);
    uint8_t *start = map_many();
    pid_t children[COUNT];
    int signal_fd[COUNT];
    for (int i = 0; i < COUNT; i++)
        children[i] = start_survivor(&signal_fd[i]);
    unmap_many(start);
    for (int i = 0; i < COUNT; i++) {
        const uint32_t number = (uint32_t)children[i];
        const struct process_event exec = {.kind = PROCESS_EVENT_NAME,
                                           .process_id = number,
                                           .thread_id = number,
                                           .is_exec = true},
                                   thread = {.kind = PROCESS_EVENT_FORK,
                                             .process_id = number,
                                             .thread_id = number + 1,
                                             .parent_id = number};
        processes_apply(processes, &exec);
        processes_apply(processes, &thread);
        end_first_thread(children[i], signal_fd[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        const struct process_event ended = {.kind = PROCESS_EVENT_EXIT,
                                            .process_id = (uint32_t)children[i],
                                            .thread_id = (uint32_t)children[i],
                                            .time_ns = clock_monotonic_ns()};
        processes_apply(processes, &ended);
    }
    assert_int_equal(count_scanned(processes, children, COUNT), 1);
    assert_true(processes_get(processes, (uint32_t)children[1])->is_scan_due);
    processes_sweep(processes, clock_monotonic_ns());
    assert_int_equal(count_scanned(processes, children, COUNT), COUNT);
    end_children(children, COUNT);
    processes_destroy(processes);
    binaries_destroy(binaries);
}

static void a_scan_finds_the_remaining_thread(void **state)
{
    (void)state;
    struct binaries *binaries = binaries_create();
    const struct processes_options options = {.has_targets = true};
    struct processes *processes = processes_create(binaries, &options);
    int signal_fd;
    const pid_t child = start_survivor(&signal_fd);
    end_first_thread(child, signal_fd);
    processes_make_target(processes, (uint32_t)child);
    assert_int_not_equal(processes_get(processes, (uint32_t)child)->shown_id, child);
    assert_int_not_equal(program_of(processes, binaries, child)->file.segment_count, 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    processes_destroy(processes);
    binaries_destroy(binaries);
}

static pid_t start_user(uid_t user)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (setresuid(user, user, user))
            _exit(1);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    for (int i = 0; i < 1000 && process_file_owner((uint32_t)child) != user; i++)
        usleep(10000);
    return child;
}

/* The owner is read once, and stays known after the process has ended. */
static void the_owner_of_an_ended_process_stays_known(void **state)
{
    (void)state;
    enum { USER = 65534 };
    if (getuid() != 0)
        skip();
    struct binaries *binaries = binaries_create();
    const struct processes_options options = {.has_targets = false};
    struct processes *processes = processes_create(binaries, &options);
    const pid_t child = start_user(USER);
    const uint32_t number = (uint32_t)child, next = number + 1000000;
    struct process *process = processes_find(processes, number, 0);
    assert_int_equal(process_owner(process), USER);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(process_owner(process), USER);
    /* A child that ended before the agent saw it. */
    const struct process_event fork_event = {
        .kind = PROCESS_EVENT_FORK, .process_id = next, .thread_id = next, .parent_id = number};
    processes_apply(processes, &fork_event);
    assert_int_equal(process_owner(processes_find(processes, next, 0)), USER);
    /* Another program may have another owner. */
    const struct process_event exec = {
        .kind = PROCESS_EVENT_NAME, .process_id = next, .thread_id = next, .is_exec = true};
    processes_apply(processes, &exec);
    assert_int_equal(process_owner(processes_find(processes, next, 0)), process_file_owner(next));
    processes_destroy(processes);
    binaries_destroy(binaries);
}

struct program_calls {
    uint32_t ends;
    uint32_t ended_id; /* of the last ended process */
    uint32_t forks;
    uint32_t child_id;
    uint32_t parent_id;
};

static void count_end(void *context, struct process *process)
{
    struct program_calls *calls = context;
    calls->ends++;
    calls->ended_id = process->process_id;
}

static void count_fork(void *context, struct process *child, const struct process *parent)
{
    struct program_calls *calls = context;
    calls->forks++;
    calls->child_id = child->process_id;
    calls->parent_id = parent->process_id;
}

static void the_start_and_end_of_each_program_is_reported(void **state)
{
    (void)state;
    struct binaries *binaries = binaries_create();
    struct program_calls calls = {0};
    const struct processes_options options = {
        .on_program_end = count_end, .on_fork = count_fork, .context = &calls};
    struct processes *processes = processes_create(binaries, &options);
    const uint32_t parent_id = (uint32_t)getpid(), child_id = UINT32_MAX - 1;
    assert_non_null(processes_find(processes, parent_id, 0));
    const struct process_event fork_event = {.kind = PROCESS_EVENT_FORK,
                                             .process_id = child_id,
                                             .thread_id = child_id,
                                             .parent_id = parent_id};
    processes_apply(processes, &fork_event);
    assert_int_equal(calls.forks, 1);
    assert_int_equal(calls.child_id, child_id);
    assert_int_equal(calls.parent_id, parent_id);
    const uint32_t ends_before = calls.ends;
    const struct process_event exec = {
        .kind = PROCESS_EVENT_NAME, .process_id = child_id, .thread_id = child_id, .is_exec = true};
    processes_apply(processes, &exec);
    assert_int_equal(calls.ends, ends_before + 1);
    assert_int_equal(calls.ended_id, child_id);
    processes_destroy(processes);
    assert_int_equal(calls.ends, ends_before + 3); /* the programs of both processes */
    binaries_destroy(binaries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replaced_file_is_another_binary),
        cmocka_unit_test(too_many_mapping_events_cause_one_scan_of_proc),
        cmocka_unit_test(a_mapping_without_space_is_counted_once),
        cmocka_unit_test(processes_of_very_many_mappings_wait_for_each_other),
        cmocka_unit_test(ends_of_first_threads_wait_for_each_other),
        cmocka_unit_test(a_loss_during_a_scan_waits_for_the_next_second),
        cmocka_unit_test(a_scan_finds_the_remaining_thread),
        cmocka_unit_test(other_threads_replace_an_ended_first_thread),
        cmocka_unit_test(the_owner_of_an_ended_process_stays_known),
        cmocka_unit_test(the_start_and_end_of_each_program_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
