/*
 * seeds: runs the seeds of all fuzzers, or of those that the arguments name.
 *
 *     build/release/tests/fuzz/seeds [FUZZER...]      FUZZER: fuzz_pprof, …; in the root of the
 * tree
 *
 * One program contains all fuzzers, so that the code under test is linked once, and it does not
 * need libFuzzer: gcc and any kind of build can make it. Prints a line for each fuzzer, "ok" or
 * "not ok" with the seed that failed. A seed fails if a check of the fuzzer, an assertion or a
 * sanitizer ends the process, or if it takes 10 s of CPU time; a fuzzer also fails if it has no
 * seeds or takes more than 1 GiB of memory. The exit status is 1 if a fuzzer failed.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEED_CPU_SECONDS 10
#define MAX_MEMORY_KIB (1L << 20)

/* A child process writes it, its parent reads it after the end of the child. */
struct progress {
    int count;
    char path[PATH_MAX]; /* of the seed that runs or ran last */
};

static struct fuzzer *fuzzers;

void fuzzer_register(struct fuzzer *fuzzer)
{
    fuzzer->next = fuzzers;
    fuzzers = fuzzer;
}

/* The seed is in memory of its own size, so that AddressSanitizer finds reads beyond it. */
static void run_seed(const struct fuzzer *fuzzer, const char *path)
{
    FILE *file = fopen(path, "rb");
    fuzz_check(file && fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    fuzz_check(size >= 0 && fseek(file, 0, SEEK_SET) == 0);
    uint8_t *data = malloc((size_t)size);
    fuzz_check(size == 0 || (data && fread(data, (size_t)size, 1, file) == 1));
    fclose(file);
    struct itimerval limit = {.it_value.tv_sec = SEED_CPU_SECONDS};
    fuzz_check(setitimer(ITIMER_PROF, &limit, NULL) == 0); /* SIGPROF ends the process */
    fuzzer->test(data, (size_t)size);
    free(data);
}

static void run_seeds(const struct fuzzer *fuzzer, struct progress *progress)
{
    char folder[PATH_MAX / 2];
    snprintf(folder, sizeof(folder), "tests/fuzz/corpus/%s", fuzzer->name);
    DIR *seeds = opendir(folder);
    fuzz_check(seeds);
    for (struct dirent *entry; (entry = readdir(seeds));) {
        if (entry->d_name[0] == '.')
            continue;
        progress->count++;
        snprintf(progress->path, sizeof(progress->path), "%s/%s", folder, entry->d_name);
        run_seed(fuzzer, progress->path);
    }
    closedir(seeds);
}

/* In a process of its own, since a failure ends the process. */
static bool run_fuzzer(const struct fuzzer *fuzzer, struct progress *progress)
{
    *progress = (struct progress){0};
    fflush(stdout);
    pid_t pid = fork();
    fuzz_check(pid >= 0);
    if (pid == 0) {
        run_seeds(fuzzer, progress);
        exit(EXIT_SUCCESS);
    }
    int status;
    struct rusage usage;
    fuzz_check(wait4(pid, &status, 0, &usage) == pid);
    bool is_ok = WIFEXITED(status) && WEXITSTATUS(status) == 0 && progress->count > 0 &&
                 usage.ru_maxrss <= MAX_MEMORY_KIB;
    if (is_ok)
        printf("ok %s: %d inputs\n", fuzzer->name, progress->count);
    else
        printf("not ok %s: status %#x, %ld KiB, seed %d: %s\n", fuzzer->name, (unsigned)status,
               usage.ru_maxrss, progress->count, progress->path);
    return is_ok;
}

static bool is_selected(const struct fuzzer *fuzzer, int count, char **names)
{
    for (int i = 1; i < count; i++)
        if (strcmp(names[i], fuzzer->name) == 0)
            return true;
    return count == 1;
}

int main(int count, char **arguments)
{
    struct progress *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fuzz_check(progress != MAP_FAILED);
    bool is_ok = true;
    for (const struct fuzzer *fuzzer = fuzzers; fuzzer; fuzzer = fuzzer->next)
        if (is_selected(fuzzer, count, arguments))
            is_ok = run_fuzzer(fuzzer, progress) && is_ok;
    return is_ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
