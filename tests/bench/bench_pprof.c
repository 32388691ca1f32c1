/*
 * bench_pprof FILE…: decoding of pprof files (compressed ones are expanded first), raw bytes per
 * CPU second of one thread. Prints rows of tests/bench/run.py: name,figure,unit,goal,met.
 *
 * "warm" is the state of a busy server, which reuses memory that earlier requests freed. "fresh"
 * gets every page from the kernel, like the first request. tests/bench/go-pprof measures
 * google/pprof's reader with the same file, including garbage collection; its heap is warm after
 * the first run.
 */
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/pprof/pprof.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS_MIN = 15, RUNS_MAX = 400 };
static const int64_t BUDGET_NS = 2 * CLOCK_NS_PER_S;

static bool read_file(const char *path, struct buf *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    uint8_t block[1 << 16];
    for (size_t size; (size = fread(block, 1, sizeof(block), file)) > 0;)
        buf_append(bytes, block, size);
    bool is_whole = !ferror(file) && !buf_failed(bytes);
    fclose(file);
    return is_whole;
}

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double mb_per_s(size_t bytes, int64_t ns)
{
    return (double)bytes / 1e6 / ((double)ns / 1e9);
}

/* Times of runs, ascending; 0 runs if the file cannot be decoded. */
static size_t measure(struct span raw, int64_t times[RUNS_MAX], struct err *err)
{
    size_t runs = 0;
    int64_t total = 0;
    while (runs < RUNS_MAX && (runs < RUNS_MIN || total < BUDGET_NS)) {
        struct profile *profile;
        int64_t start = clock_thread_cpu_ns();
        if (pprof_decode(raw, NULL, &profile, err))
            return 0;
        profile_destroy(profile);
        times[runs] = clock_thread_cpu_ns() - start;
        total += times[runs++];
    }
    qsort(times, runs, sizeof(times[0]), compare_ns);
    return runs;
}

static void set_memory(bool is_warm)
{
    mallopt(M_MMAP_THRESHOLD, is_warm ? 1 << 30 : 128 << 10);
    mallopt(M_TRIM_THRESHOLD, is_warm ? 1 << 30 : 128 << 10);
}

static bool bench_file(const char *path)
{
    buf_auto file, raw;
    buf_init(&file, (size_t)1 << 30);
    buf_init(&raw, (size_t)1 << 30);
    struct err err = {.message = "cannot be read"};
    bool is_read = read_file(path, &file);
    struct span bytes = buf_span(&file);
    if (!is_read || compress_expand(compress_sniff(bytes), bytes, &raw, &err)) {
        fprintf(stderr, "%s: %s\n", path, err.message);
        return false;
    }
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    for (int is_warm = 0; is_warm < 2; is_warm++) {
        int64_t times[RUNS_MAX];
        set_memory(is_warm);
        size_t runs = measure(buf_span(&raw), times, &err);
        if (runs == 0) {
            fprintf(stderr, "%s: %s\n", path, err.message);
            return false;
        }
        const char *memory = is_warm ? "warm" : "fresh";
        double median = mb_per_s(raw.size, times[runs / 2]);
        printf("\"decode %s, %s memory, best\",%.1f,MB/s,,\n", name, memory,
               mb_per_s(raw.size, times[0]));
        printf("\"decode %s, %s memory, median\",%.1f,MB/s,%s,%s\n", name, memory, median,
               is_warm ? "at least 400" : "",
               !is_warm        ? ""
               : median >= 400 ? "yes"
                               : "no");
    }
    return true;
}

int main(int count, char **paths)
{
    bool is_good = count > 1;
    for (int i = 1; i < count; i++)
        is_good &= bench_file(paths[i]);
    return is_good ? 0 : 1;
}
