/*
 * simulated_host: a library for LD_PRELOAD that shows the agent and perfolio record a host whose
 * processor counts cycles, whose CPUs go offline and return, and which is suspended.
 *
 * SIMULATED_HOST names a folder with these files, all but the first written by the test:
 *
 *   events   one line per perf event that was opened: type and config as requested, 1 for a sampler
 *            with a frequency else 0, CPU
 *   online   the CPUs that are online; without it, those of this host
 *   stopped  a CPU that goes offline and returns at once: the events that are open on it never tick
 *            again, as the kernel leaves them. The library removes the file
 *   slept    how many seconds the host was suspended: the time of the clocks that include them
 *
 * A counter of cycles is replaced by the kernel's timer, which every machine has.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_MAX = 1024, TEXT_BYTES = 256, PATH_BYTES = 4096 };

static const char online_path[] = "/sys/devices/system/cpu/online";

/* The events that are open. The agent opens them in one thread. */
static struct {
    int fd, cpu;
} events[EVENTS_MAX];
static int event_count;

static long call(long number, const long *given)
{
    long (*next)(long, ...);
    *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    return next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

static int open_file(const char *path, int flags)
{
    return (int)call(SYS_openat,
                     (const long[6]){AT_FDCWD, (long)path, flags | O_CLOEXEC, 0600, 0, 0});
}

static const char *path_of(const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%s", getenv("SIMULATED_HOST"), name);
    return path;
}

/* The number in a file of the folder; -1: there is no such file. */
static long read_number(const char *name)
{
    char path[PATH_BYTES], text[TEXT_BYTES];
    const int fd = open_file(path_of(name, path), O_RDONLY);
    const ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = '\0';
    return size > 0 ? strtol(text, NULL, 10) : -1;
}

static void log_event(const struct perf_event_attr *attributes, long cpu)
{
    char path[PATH_BYTES], line[TEXT_BYTES];
    const int fd = open_file(path_of("events", path), O_WRONLY | O_CREAT | O_APPEND);
    const int size = snprintf(line, sizeof(line), "%u %llu %u %ld\n", attributes->type,
                              (unsigned long long)attributes->config, attributes->freq, cpu);
    if (fd < 0 || write(fd, line, (size_t)size) != size)
        abort();
    close(fd);
}

static long open_event(const long *given)
{
    struct perf_event_attr attributes;
    long arguments[6];
    memcpy(&attributes, (const void *)given[0], sizeof(attributes));
    memcpy(arguments, given, sizeof(arguments));
    arguments[0] = (long)&attributes;
    if (attributes.type == PERF_TYPE_HARDWARE) {
        attributes.type = PERF_TYPE_SOFTWARE;
        attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    }
    const long fd = call(SYS_perf_event_open, arguments);
    if (fd >= 0)
        log_event((const struct perf_event_attr *)given[0], given[2]);
    if (fd >= 0 && event_count < EVENTS_MAX) {
        events[event_count].fd = (int)fd;
        events[event_count++].cpu = (int)given[2];
    }
    return fd;
}

long syscall(long number, ...)
{
    long given[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(arguments, long);
    va_end(arguments);
    return number == SYS_perf_event_open ? open_event(given) : call(number, given);
}

/* A disabled event is in the state of one whose CPU was offline: no tick, and its time stands
 * still. */
static void stop_events(void)
{
    char path[PATH_BYTES];
    const long cpu = read_number("stopped");
    for (int i = 0; cpu >= 0 && i < event_count; i++)
        if (events[i].cpu == cpu)
            (void)ioctl(events[i].fd, PERF_EVENT_IOC_DISABLE, 0);
    if (cpu >= 0)
        unlink(path_of("stopped", path));
}

int openat(int folder, const char *name, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const int mode = va_arg(arguments, int);
    va_end(arguments);
    if (strcmp(name, online_path) == 0) {
        char path[PATH_BYTES];
        stop_events();
        const int fd = open_file(path_of("online", path), O_RDONLY);
        if (fd >= 0)
            return fd;
    }
    return (int)call(SYS_openat, (const long[6]){folder, (long)name, flags, mode, 0, 0});
}

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
    int (*next)(clockid_t, struct timespec *);
    *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    const long slept = id == CLOCK_BOOTTIME || id == CLOCK_REALTIME ? read_number("slept") : 0;
    const int result = next(id, ret_time);
    ret_time->tv_sec += slept > 0 ? slept : 0;
    return result;
}
