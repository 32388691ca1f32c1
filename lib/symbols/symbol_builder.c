#include "lib/symbols/symbol_builder.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/base/span.h"
#include "lib/base/wait_limit.h"
#include "lib/symbols/symbol_table_facts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    /* first descriptor of the builder: input, output, report, then optional files */
    FIRST_FD = 3,
    REPORT_NUMBER = 2, /* index of the report among them */
    FIXED_FDS = 3,
    MAX_FDS = FIXED_FDS + 1 + SYMBOL_BUILDER_SPLIT_MAX,
    DUPLICATE_FD = FIRST_FD + MAX_FDS, /* above all descriptors of the builder */
    REPORT_MAX_BYTES = 4096,
    DEFAULT_CPU_S = 60,
    POLL_MAX_MS = 250, /* interval between checks of wait_limit */
    CPU_SLACK_US = 100000,
};
#define DEFAULT_MEMORY_BYTES (UINT64_C(4) << 30)
#define DEFAULT_OUTPUT_BYTES (UINT64_C(1) << 30)

struct build {
    const struct symbol_builder_options *options;
    uint64_t memory_bytes;
    uint64_t output_bytes;
    uint32_t cpu_s;
    int64_t wall_ms;
    int fds[MAX_FDS]; /* our duplicates of the descriptors, above DUPLICATE_FD */
    int fd_count;
    int report_fd; /* read end of the pipe */
    pid_t pid;
    char report[REPORT_MAX_BYTES + 1];
    size_t report_size;
};

/* Duplicates a descriptor to a high number, so that setting up descriptors 3, 4, … in the child
 * cannot overwrite it. */
static enum err_code duplicate_fd(struct build *build, int fd, struct err *err)
{
    int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, DUPLICATE_FD);
    if (duplicate < 0)
        return err_set_errno(err, ERR_IO, "cannot hand a file to the builder of symbol tables");
    build->fds[build->fd_count++] = duplicate;
    return ERR_NONE;
}

static enum err_code duplicate_all_fds(struct build *build, int report_fd, struct err *err)
{
    const struct symbol_builder_options *options = build->options;
    const int fds[] = {options->input_fd, options->output_fd, report_fd, options->alternate_fd};
    const size_t count = options->alternate_fd >= 0 ? 4 : 3;
    enum err_code code = ERR_NONE;
    for (size_t i = 0; !code && i < count; i++)
        code = duplicate_fd(build, fds[i], err);
    for (uint32_t i = 0; !code && i < options->split_fd_count; i++)
        code = duplicate_fd(build, options->split_fds[i], err);
    return code;
}

/* By default, the program is in the directory of this executable. */
static void find_program(const char *wanted, char *path, size_t path_bytes)
{
    static const char name[] = "perfolio-symbolize";
    if (wanted) {
        snprintf(path, path_bytes, "%s", wanted);
        return;
    }
    ssize_t length = readlink("/proc/self/exe", path, path_bytes - sizeof(name));
    while (length > 0 && path[length - 1] != '/')
        length--;
    snprintf(path + (length > 0 ? length : 0), sizeof(name), "%s", name);
}

static int set_files(const struct build *build, posix_spawn_file_actions_t *actions)
{
    int result = posix_spawn_file_actions_init(actions);
    for (int fd = STDIN_FILENO; result == 0 && fd <= STDERR_FILENO; fd++)
        result = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
    for (int i = 0; result == 0 && i < build->fd_count; i++)
        result = posix_spawn_file_actions_adddup2(actions, build->fds[i], FIRST_FD + i);
    /* Messages before an abort (out of memory, failed assertion) go to the report. */
    if (result == 0)
        result = posix_spawn_file_actions_adddup2(actions, FIRST_FD + REPORT_NUMBER, STDERR_FILENO);
    if (result == 0)
        result = posix_spawn_file_actions_addclosefrom_np(actions, FIRST_FD + build->fd_count);
    return result;
}

/* SIGHUP, SIGINT, SIGQUIT and SIGTERM are blocked in the worker: a terminal and timeout(1) send
 * them to the whole process group, and a child with a group of its own would still be in ours
 * for a moment. This process ends the worker with SIGKILL, and the worker ends when this process
 * does. */
static int set_signals(posix_spawnattr_t *attributes)
{
    static const int requests[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigset_t blocked, all;
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        sigaddset(&blocked, requests[i]);
    sigfillset(&all);
    int result = posix_spawnattr_init(attributes);
    if (result == 0)
        result = posix_spawnattr_setsigmask(attributes, &blocked);
    if (result == 0)
        result = posix_spawnattr_setsigdefault(attributes, &all);
    if (result == 0)
        result =
            posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return result;
}

static enum err_code spawn_builder(struct build *build, struct err *err)
{
    char path[4096], what[16], memory[32], cpu[16], output[32], split[16], parent[16];
    bool has_alternate = build->options->alternate_fd >= 0;
    find_program(build->options->program, path, sizeof(path));
    snprintf(memory, sizeof(memory), "%llu", (unsigned long long)build->memory_bytes);
    snprintf(output, sizeof(output), "%llu", (unsigned long long)build->output_bytes);
    snprintf(cpu, sizeof(cpu), "%u", build->cpu_s);
    snprintf(split, sizeof(split), "%u", build->options->split_fd_count);
    snprintf(parent, sizeof(parent), "%d", (int)getpid());
    snprintf(what, sizeof(what), "%d",
             (build->options->is_first_names ? 1 : 0) + (build->options->is_packed ? 2 : 0));
    char *const arguments[] = {path,   (char[]){"--worker"},
                               memory, output,
                               cpu,    has_alternate ? (char[]){"1"} : (char[]){"0"},
                               split,  parent,
                               what,   NULL};
    char *const environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int result = set_files(build, &actions);
    if (result == 0)
        result = set_signals(&attributes);
    if (result == 0) {
        result = posix_spawn(&build->pid, path, &actions, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (result == 0)
        return ERR_NONE;
    errno = result;
    return err_set_errno(err, ERR_INTERNAL, "cannot run %s", path);
}

/* Returns false at the end of the report, or when the buffer is full. */
static bool read_report_part(struct build *build)
{
    ssize_t size;
    do {
        size = read(build->report_fd, build->report + build->report_size,
                    REPORT_MAX_BYTES - build->report_size);
    } while (size < 0 && errno == EINTR);
    if (size > 0)
        build->report_size += (size_t)size;
    return size > 0 && build->report_size < REPORT_MAX_BYTES;
}

/* The last phase that the builder reported, for error messages, with a leading blank; "" if
 * there is none. */
static const char *last_phase(const struct build *build)
{
    static const struct {
        const char *name;
        const char *text;
    } phases[] = {{"headers", " while reading its headers"},
                  {"go", " while reading Go's table"},
                  {"dwarf", " while reading its DWARF"},
                  {"symbols", " while reading its symbols"},
                  {"table", " while writing the table"}};
    struct span rest = span_of(build->report, build->report_size), line, key, name;
    const char *last = "";
    while (span_take_line(&rest, &line)) {
        span_split(line, ' ', &key, &name);
        for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
            if (span_equal_text(key, "phase") && span_equal_text(name, phases[i].name))
                last = phases[i].text;
        }
    }
    return last;
}

/* Reads the report until the process has ended or its time is up. */
static enum err_code read_report(struct build *build, int process_fd, struct err *err)
{
    int64_t deadline_ms = clock_monotonic_ns() / CLOCK_NS_PER_MS + build->wall_ms;
    struct pollfd fds[] = {{.fd = process_fd, .events = POLLIN},
                           {.fd = build->report_fd, .events = POLLIN}};
    for (;;) {
        int64_t left_ms = deadline_ms - clock_monotonic_ns() / CLOCK_NS_PER_MS;
        int ready =
            left_ms > 0 ? poll(fds, 2, left_ms > POLL_MAX_MS ? POLL_MAX_MS : (int)left_ms) : 0;
        if (ready == 0 && wait_limit_is_over(build->options->wait_limit))
            return err_set(err, ERR_CANCELLED, "building its symbol table was cancelled");
        if (ready == 0 && left_ms > POLL_MAX_MS)
            continue;
        if (ready == 0)
            return err_set(err, ERR_TIMEOUT, "building its symbol table took more than %lld s%s",
                           (long long)(build->wall_ms / 1000), last_phase(build));
        if (ready < 0 && errno != EINTR)
            return err_set_errno(err, ERR_INTERNAL, "poll");
        if (ready < 0)
            continue;
        if (fds[1].revents && !read_report_part(build))
            fds[1].fd = -1; /* the process may still run after closing its report */
        if (build->report_size == REPORT_MAX_BYTES)
            return err_set(err, ERR_INTERNAL,
                           "the report of the builder of symbol tables is too long");
        if (fds[0].revents && !fds[1].revents)
            return ERR_NONE;
    }
}

static enum err_code wait_for_report(struct build *build, struct err *err)
{
    fd_auto process_fd = pidfd_open(build->pid, 0);
    if (process_fd < 0)
        return err_set_errno(err, ERR_INTERNAL, "pidfd_open");
    return read_report(build, process_fd, err);
}

static bool report_contains(const struct build *build, const char *text)
{
    return memmem(build->report, build->report_size, text, strlen(text)) != NULL;
}

/* The builder called abort(); lib/base/mem.c, assert and the C library usually wrote a message
 * before. */
static enum err_code explain_abort(const struct build *build, const char *phase, struct err *err)
{
    if (report_contains(build, "msg=\"out of memory\""))
        return err_set(err, ERR_TOO_LARGE,
                       "building its symbol table needs more than the limit of %llu MiB of "
                       "memory%s",
                       (unsigned long long)(build->memory_bytes >> 20), phase);
    if (report_contains(build, "Assertion `"))
        return err_set(err, ERR_INVALID,
                       "the builder of symbol tables stopped on this file%s: an assertion "
                       "failed, which is a bug of the builder",
                       phase);
    return err_set(err, ERR_INVALID,
                   "the builder of symbol tables stopped on this file%s: it found its own memory "
                   "damaged, or gave up without a reason",
                   phase);
}

static enum err_code explain_death(const struct build *build, int status, uint64_t cpu_us,
                                   struct err *err)
{
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const char *phase = last_phase(build);
    /* A process that ignores SIGXCPU gets SIGKILL a second later, a little before or after it. */
    if (number == SIGXCPU ||
        (number == SIGKILL && cpu_us + CPU_SLACK_US >= build->cpu_s * UINT64_C(1000000)))
        return err_set(err, ERR_TOO_LARGE,
                       "building its symbol table took more than %u s of CPU time%s", build->cpu_s,
                       phase);
    if (number == SIGKILL)
        return err_set(err, ERR_INTERNAL,
                       "the builder of symbol tables was killed by another process%s: the "
                       "machine may be short of memory",
                       phase);
    if (number == SIGSYS)
        return err_set(err, ERR_INVALID,
                       "the builder of symbol tables made a system call that its sandbox "
                       "forbids, on this file%s",
                       phase);
    if (number == SIGABRT)
        return explain_abort(build, phase, err);
    if (number)
        return err_set(err, ERR_INVALID, "the builder of symbol tables crashed on this file%s: %s",
                       phase, strsignal(number));
    return err_set(err, ERR_INTERNAL, "the builder of symbol tables failed with status %d",
                   WEXITSTATUS(status));
}

/* Copies text from the builder, replacing characters that are not printable ASCII: a hostile
 * file may have taken control of the builder. */
static void copy_text(char *target, size_t target_bytes, struct span text)
{
    size_t size = text.size < target_bytes - 1 ? text.size : target_bytes - 1;
    for (size_t i = 0; i < size; i++)
        target[i] = (char)(text.data[i] < ' ' || text.data[i] > '~' ? '?' : text.data[i]);
    target[size] = 0;
}

static enum err_code parse_failure(struct span text, struct err *err)
{
    static const enum err_code codes[] = {ERR_INVALID, ERR_UNSUPPORTED, ERR_TOO_LARGE,
                                          ERR_NOT_FOUND};
    struct span name, message;
    char copy[SYMBOL_BUILDER_TEXT_BYTES];
    span_split(text, ' ', &name, &message);
    copy_text(copy, sizeof(copy), message);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (span_equal_text(name, err_code_name(codes[i])))
            return err_set(err, codes[i], "%s", copy);
    }
    return err_set(err, ERR_INTERNAL, "the builder of symbol tables: %s", copy);
}

static bool parse_id(struct span text, char ret_id[SYMBOL_BUILDER_ID_BYTES])
{
    static_assert(SYMBOL_BUILDER_ID_BYTES == 2 * SYMBOL_ID_MAX_BYTES + 1, "it has space for all");
    char id[SYMBOL_BUILDER_ID_BYTES];
    copy_text(id, sizeof(id), text);
    if (text.size % 2 != 0 || strspn(id, "0123456789abcdef") != text.size)
        return false;
    memcpy(ret_id, id, sizeof(id));
    return true;
}

static bool parse_number(struct span key, struct span text, struct symbol_builder_report *report)
{
    uint64_t number;
    if (!span_parse_u64(text, &number))
        return false;
    uint32_t small = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    if (span_equal_text(key, "quality"))
        report->quality = small;
    else if (span_equal_text(key, "broken_units"))
        report->broken_units = small;
    else if (span_equal_text(key, "functions"))
        report->functions = small;
    else if (span_equal_text(key, "ranges"))
        report->ranges = small;
    else if (span_equal_text(key, "table_bytes"))
        report->table_bytes = number;
    else
        return false;
    return true;
}

/* Parses the report: lines of a key, a blank and a value. The last line is "done", or "failed
 * CODE TEXT". */
static enum err_code parse_report(const struct build *build, struct symbol_builder_report *report,
                                  struct err *err)
{
    struct span rest = span_of(build->report, build->report_size), line, key, text;
    while (span_take_line(&rest, &line)) {
        span_split(line, ' ', &key, &text);
        if (span_equal_text(line, "done"))
            return ERR_NONE;
        if (span_equal_text(key, "failed"))
            return parse_failure(text, err);
        if (span_equal_text(key, "problem"))
            copy_text(report->problem, sizeof(report->problem), text);
        else if (span_equal_text(key, "alternate"))
            copy_text(report->alternate, sizeof(report->alternate), text);
        else if (span_equal_text(key, "alternate_id"))
            copy_text(report->alternate_id, sizeof(report->alternate_id), text);
        else if (span_equal_text(key, "debug_link"))
            copy_text(report->debug_link, sizeof(report->debug_link), text);
        else if (span_equal_text(key, "warning"))
            copy_text(report->warning, sizeof(report->warning), text);
        else if (span_equal_text(key, "id")
                     ? !parse_id(text, report->id)
                     : !span_equal_text(key, "phase") && !parse_number(key, text, report))
            break;
    }
    return err_set(err, ERR_INTERNAL, "the report of the builder of symbol tables is incomplete");
}

static enum err_code finish_build(struct build *build, enum err_code code,
                                  struct symbol_builder_report *report, struct err *err)
{
    struct rusage usage;
    int status;
    if (code)
        kill(build->pid, SIGKILL);
    while (wait4(build->pid, &status, 0, &usage) < 0) {
        if (errno != EINTR)
            return err_set_errno(err, ERR_INTERNAL, "waiting for the builder of symbol tables");
    }
    report->cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                     (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    report->memory_bytes = (uint64_t)usage.ru_maxrss * 1024;
    if (code)
        return code;
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 1))
        return explain_death(build, status, report->cpu_us, err);
    return parse_report(build, report, err);
}

static enum err_code start_build(struct build *build, struct err *err)
{
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return err_set_errno(err, ERR_IO, "cannot make a pipe");
    build->report_fd = pipe_fds[0];
    enum err_code code = duplicate_all_fds(build, pipe_fds[1], err);
    if (!code)
        code = spawn_builder(build, err);
    close(pipe_fds[1]);
    for (int i = 0; i < build->fd_count; i++)
        close(build->fds[i]);
    if (code)
        close(build->report_fd);
    return code;
}

enum err_code symbol_builder_run(const struct symbol_builder_options *options,
                                 struct symbol_builder_report *ret_report, struct err *err)
{
    struct symbol_builder_report report = {0};
    *ret_report = report;
    struct build build = {
        .options = options,
        .memory_bytes = options->memory_bytes ? options->memory_bytes : DEFAULT_MEMORY_BYTES,
        .output_bytes = options->output_bytes ? options->output_bytes : DEFAULT_OUTPUT_BYTES,
        .cpu_s = options->cpu_s ? options->cpu_s : DEFAULT_CPU_S};
    build.wall_ms = options->wall_ms ? options->wall_ms : (int64_t)build.cpu_s * 4000;
    if (options->split_fd_count > SYMBOL_BUILDER_SPLIT_MAX)
        return err_set(err, ERR_TOO_LARGE, "there are more than %d split files",
                       SYMBOL_BUILDER_SPLIT_MAX);
    enum err_code code = start_build(&build, err);
    if (code)
        return code;
    code = wait_for_report(&build, err);
    code = finish_build(&build, code, &report, err);
    close(build.report_fd);
    if (!code) {
        *ret_report = report;
        return ERR_NONE;
    }
    memcpy(ret_report->id, report.id, sizeof(report.id));
    memcpy(ret_report->debug_link, report.debug_link, sizeof(report.debug_link));
    return code;
}

enum err_code symbol_builder_check(const char *program, struct err *err)
{
    char path[4096];
    find_program(program, path, sizeof(path));
    return access(path, X_OK) == 0 ? ERR_NONE
                                   : err_set_errno(err, ERR_NOT_FOUND, "cannot run %s", path);
}
