/*
 * bench_otlp [FILE …]: OTLP requests on one core, in samples ("rows") per CPU second: only
 * decoding, and decoding plus writing the batch as a block of level 0. Prints rows of
 * tests/bench/run.py: name,figure,unit,goal,met.
 *
 * Without a file the request is generated, as an eBPF agent would send it for ten seconds of a busy
 * host: 3,000 samples of 20 processes, four fifths of which have their own stack; stacks of 21
 * frames on average that share their callers; a third of the locations with function and file, the
 * others with an address only; thread, processor and timestamps with every sample. In the first
 * request (SHARING), many stacks share their leaves: it has 5,900 locations, in proportion to
 * recorded profiles (1,900 with 650 samples, 8,200 with 12,000). In the second, hardly a leaf
 * occurs twice.
 */
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/otlp/otlp.h"
#include "store/block/block_write.h"
#include "tests/bench/otlp_maker.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 200, SAMPLES = 3000, STACKS = 2400, PROCESSES = 20, SHARING = 24 };
static const int64_t START_NS = INT64_C(1700000000000000000);

static void add_process(struct maker *maker, struct buf *request, uint32_t process)
{
    char service[64];
    buf_auto samples;
    buf_init(&samples, MAKER_MAX_BYTES);
    for (uint32_t i = process; i < SAMPLES; i += PROCESSES)
        (void)add_sample(maker, &samples,
                         1 + (i < STACKS ? i : random_below(&maker->random, STACKS)), START_NS);
    snprintf(service, sizeof(service), "service-of-process-%u", process);
    add_resource(maker, request, service, "host-of-all", buf_span(&samples), START_NS);
}

static void make_request(struct buf *request, uint32_t sharing)
{
    struct maker maker;
    maker_init(&maker, sharing, 42);
    begin_dictionary(&maker);
    for (uint32_t i = 0; i < STACKS; i++)
        add_stack(&maker, &maker.random, random_below(&maker.random, PROCESSES));
    for (uint32_t i = 0; i < PROCESSES; i++)
        add_process(&maker, request, i);
    put_message(request, 2, &maker.dictionary);
    maker_fini(&maker);
}

/* ---- measuring ---- */

static int compare_ns(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct times {
    int64_t decode[RUNS];
    int64_t both[RUNS];
    uint32_t row_count;
    uint64_t block_bytes;
};

static enum err_code run_once(struct span raw, struct times *times, int run, struct err *err)
{
    struct batch *batch;
    struct otlp_result result;
    struct block_summary summary;
    buf_auto block;
    buf_init(&block, MAKER_MAX_BYTES);
    const int64_t start = clock_thread_cpu_ns();
    enum err_code code = otlp_decode(raw, OTLP_PROTOBUF, NULL, &batch, &result, err);
    if (code)
        return code;
    times->decode[run] = clock_thread_cpu_ns() - start;
    code = block_write_batch(batch, 1, 0, &block, &summary, err);
    times->row_count = batch->sample_count;
    times->block_bytes = block.size;
    if (run == 0)
        fprintf(stderr,
                "%zu bytes: %u profiles (%u rejected: %s), %u samples, %u stacks of %.1f frames, "
                "%u locations, %u functions, %u strings, %u series, %u label sets\n",
                raw.size, result.profile_count, result.rejected_profiles, result.message,
                batch->sample_count, batch->stack_count,
                (double)batch->stack_start[batch->stack_count] / batch->stack_count,
                batch->tables->location_count, batch->tables->function_count,
                batch->tables->string_count, batch->series_count, batch->label_set_count);
    batch_destroy(batch);
    times->both[run] = clock_thread_cpu_ns() - start;
    return code;
}

static bool bench(const char *name, struct span raw)
{
    static struct times times;
    struct err err;
    for (int run = 0; run < RUNS; run++) {
        if (run_once(raw, &times, run, &err)) {
            fprintf(stderr, "%s: %s\n", name, err.message);
            return false;
        }
    }
    qsort(times.decode, RUNS, sizeof(times.decode[0]), compare_ns);
    qsort(times.both, RUNS, sizeof(times.both[0]), compare_ns);
    const double rows = times.row_count / 1e6 * 1e9;
    const double both = rows / (double)times.both[RUNS / 2];
    printf("\"OTLP decode %s, median\",%.2f,M rows/s/core,,\n", name,
           rows / (double)times.decode[RUNS / 2]);
    printf("\"OTLP decode %s and block of level 0, median\",%.2f,M rows/s/core,at least 1.5,%s\n",
           name, both, both >= 1.5 ? "yes" : "no");
    printf("\"OTLP block of %s\",%.1f,bytes/row,,\n", name,
           (double)times.block_bytes / times.row_count);
    return true;
}

static bool bench_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t block[1 << 16];
    buf_auto raw;
    buf_init(&raw, MAKER_MAX_BYTES);
    if (!file)
        return false;
    for (size_t size; (size = fread(block, 1, sizeof(block), file)) > 0;)
        buf_append(&raw, block, size);
    fclose(file);
    return bench(strrchr(path, '/') ? strrchr(path, '/') + 1 : path, buf_span(&raw));
}

int main(int count, char **paths)
{
    bool is_good = true;
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    for (int i = 1; i < count; i++)
        is_good &= bench_file(paths[i]);
    for (uint32_t i = 0; count == 1 && i < 2; i++) {
        buf_auto request;
        buf_init(&request, MAKER_MAX_BYTES);
        make_request(&request, i == 0 ? SHARING : 1);
        is_good &= bench(i == 0 ? "3,000 samples" : "3,000 samples without common leaves",
                         buf_span(&request));
    }
    return is_good ? 0 : 1;
}
