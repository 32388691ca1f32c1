/*
 * bench_pprof FILE…: decoding of pprof files (raw or compressed), raw bytes per CPU second of one
 * thread, best and median of the runs. One CSV line per file:
 *   bench,file,raw_bytes,samples,runs,best_mb_s,median_mb_s
 * tests/bench/go-pprof measures google/pprof's reader on the same files in the same format.
 */
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/mem.h"
#include "lib/profile/pprof.h"

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

static bool bench_file(const char *path)
{
    buf_auto file, raw;
    buf_init(&file, (size_t)1 << 30);
    buf_init(&raw, (size_t)1 << 30);
    struct err err = {0};
    if (!read_file(path, &file)) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return false;
    }
    struct span bytes = buf_span(&file);
    if (compress_expand(compress_sniff(bytes), bytes, &raw, &err)) {
        fprintf(stderr, "%s: %s\n", path, err.message);
        return false;
    }
    int64_t times[RUNS_MAX], total = 0;
    size_t runs = 0;
    uint32_t samples = 0;
    while (runs < RUNS_MAX && (runs < RUNS_MIN || total < BUDGET_NS)) {
        struct profile *profile;
        int64_t start = clock_thread_cpu_ns();
        if (pprof_decode(buf_span(&raw), NULL, &profile, &err)) {
            fprintf(stderr, "%s: %s\n", path, err.message);
            return false;
        }
        samples = profile->sample_count;
        profile_destroy(profile);
        times[runs] = clock_thread_cpu_ns() - start;
        total += times[runs++];
    }
    qsort(times, runs, sizeof(times[0]), compare_ns);
    printf("pprof_decode,%s,%zu,%u,%zu,%.1f,%.1f\n", path, raw.size, samples, runs,
           mb_per_s(raw.size, times[0]), mb_per_s(raw.size, times[runs / 2]));
    return true;
}

int main(int count, char **paths)
{
    bool is_good = count > 1;
    for (int i = 1; i < count; i++)
        is_good &= bench_file(paths[i]);
    return is_good ? 0 : 1;
}
