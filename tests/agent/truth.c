/*
 * Programs with a known stack: truth MODE [NUMBER]. Each program runs until it is killed and spends
 * its time in spin(), below functions that must all be on the stack. Built without frame pointers.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define FRAME __attribute__((noinline))
#else
#define FRAME __attribute__((noinline, noclone))
#endif
/* Written after a call, so that the compiler does not make it a tail call. */
#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")

static volatile uint64_t sink;

FRAME void spin(void);
FRAME void spin(void)
{
    for (uint64_t i = 0; i < 80000; i++)
        sink = sink * 3 + i;
    NO_TAIL_CALL;
}

FRAME void descend(int left);
FRAME void descend(int left)
{
    if (left > 1)
        descend(left - 1);
    else
        spin();
    NO_TAIL_CALL;
}

FRAME void on_alloca(size_t bytes);
FRAME void on_alloca(size_t bytes)
{
    char *memory = alloca(bytes);
    memset(memory, 1, bytes);
    spin();
    sink += (uint64_t)memory[bytes / 2];
}

FRAME void on_aligned(void);
FRAME void on_aligned(void)
{
    char memory[256] __attribute__((aligned(128)));
    memset(memory, 1, sizeof memory);
    __asm__ volatile("" ::"r"(memory) : "memory");
    on_alloca(1 + sink % 500);
    NO_TAIL_CALL;
}

FRAME void on_large_frame(void);
FRAME void on_large_frame(void)
{
    char memory[12000];
    memset(memory, 1, sizeof memory);
    __asm__ volatile("" ::"r"(memory) : "memory");
    spin();
    NO_TAIL_CALL;
}

static void on_signal(int number)
{
    (void)number;
    spin();
    NO_TAIL_CALL;
}

FRAME void interrupted(void);
FRAME void interrupted(void)
{
    raise(SIGUSR1);
    NO_TAIL_CALL;
}

FRAME void on_vfork(void);
FRAME void on_vfork(void)
{
    pid_t child = vfork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    for (int i = 0; i < 500; i++)
        spin();
}

FRAME void on_kernel(void);
FRAME void on_kernel(void)
{
    static unsigned char bytes[1 << 20];
    int zeros = open("/dev/zero", O_RDONLY);
    for (int i = 0; i < 500; i++)
        sink += (uint64_t)read(zeros, bytes, sizeof bytes);
    close(zeros);
}

/* Waits instead of computing. */
FRAME void on_waiting(void);
FRAME void on_waiting(void)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    nanosleep(&moment, NULL);
    NO_TAIL_CALL;
}

FRAME void touch(volatile char *memory, size_t bytes);
FRAME void touch(volatile char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4096)
        memory[i] = 1;
}

FRAME void on_faulting(void);
FRAME void on_faulting(void)
{
    const size_t bytes = 1 << 20;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return;
    touch(memory, bytes);
    munmap(memory, bytes);
}

FRAME void on_library(void);
FRAME void on_library(void)
{
    void *library = dlopen("libz.so.1", RTLD_NOW);
    static unsigned char bytes[1 << 20];
    if (library) {
        unsigned long (*crc)(unsigned long, const unsigned char *, unsigned) =
            (unsigned long (*)(unsigned long, const unsigned char *, unsigned))dlsym(library,
                                                                                     "crc32");
        for (int i = 0; i < 100; i++)
            sink += crc(sink, bytes, sizeof bytes);
        dlclose(library);
    }
    NO_TAIL_CALL;
}

/* Libraries of equal size are mapped at one address, one after another. */
FRAME void on_plugin(const char *path);
FRAME void on_plugin(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    void (*work)(void) = library ? (void (*)(void))dlsym(library, "work") : NULL;
    for (int i = 0; work && i < 500; i++)
        work();
    if (library)
        dlclose(library);
    NO_TAIL_CALL;
}

static int compare(const void *left, const void *right)
{
    spin();
    return (*(const int *)left > *(const int *)right) - (*(const int *)left < *(const int *)right);
}

FRAME void on_callback(void);
FRAME void on_callback(void)
{
    int numbers[] = {5, 3, 8, 1, 9, 2};
    qsort(numbers, 6, sizeof numbers[0], compare);
    NO_TAIL_CALL;
}

static void *on_thread(void *argument)
{
    for (;;)
        descend(10);
    return argument;
}

/* Starts long after the first thread has ended. */
static void *on_survivor(void *argument)
{
    sleep(6);
    return on_thread(argument);
}

static void on_first_thread(void)
{
    sleep(2);
    pthread_exit(NULL);
}

/* A child with the mappings of its parent and more. */
static void on_fork(void)
{
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 20; i++) {
            descend(10);
            on_library();
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

/* Many short programs: exec PER_SECOND [milliseconds of CPU time]. */
static void on_exec(const char *program, int per_second, const char *milliseconds)
{
    const useconds_t pause_us = (useconds_t)(1000000 / per_second);
    const pid_t child = vfork();
    if (child == 0) {
        execl(program, program, "once", milliseconds, (char *)NULL);
        _exit(127);
    }
    usleep(pause_us);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static void once(int milliseconds)
{
    struct timespec start, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    do {
        descend(10);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 <
             milliseconds);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 5;
    pthread_t thread;
    signal(SIGUSR1, on_signal);
    if (strcmp(mode, "thread") == 0)
        pthread_create(&thread, NULL, on_thread, NULL);
    if (strcmp(mode, "survivor") == 0) {
        pthread_create(&thread, NULL, on_survivor, NULL);
        on_first_thread();
    }
    if (strcmp(mode, "once") == 0) {
        once(number);
        return 0;
    }
    for (;;) {
        if (strcmp(mode, "deep") == 0)
            descend(number);
        else if (strcmp(mode, "aligned") == 0)
            on_aligned();
        else if (strcmp(mode, "large") == 0)
            on_large_frame();
        else if (strcmp(mode, "signal") == 0)
            interrupted();
        else if (strcmp(mode, "vfork") == 0)
            on_vfork();
        else if (strcmp(mode, "kernel") == 0)
            on_kernel();
        else if (strcmp(mode, "waiting") == 0)
            on_waiting();
        else if (strcmp(mode, "faulting") == 0)
            on_faulting();
        else if (strcmp(mode, "library") == 0)
            on_library();
        else if (strcmp(mode, "plugins") == 0)
            on_plugin("./first.so"), on_plugin("./second.so");
        else if (strcmp(mode, "callback") == 0)
            on_callback();
        else if (strcmp(mode, "thread") == 0)
            pause();
        else if (strcmp(mode, "fork") == 0)
            on_fork();
        else if (strcmp(mode, "exec") == 0)
            on_exec(argv[0], number, argc > 3 ? argv[3] : "5");
        else
            return 2;
    }
}
