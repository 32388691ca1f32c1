/*
 * Increases of counters for many series in one block: two snapshots of a hundred stacks each; no
 * two series have a stack in common. The cost of a row does not depend on the number of series in
 * its block. Prints a CSV line per result: "what",figure,unit,goal,met
 *
 *    build/release/tests/bench/bench_counters [SERIES]
 */
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/batch/batch.h"
#include "store/block/block_read.h"
#include "store/block/block_write.h"
#include "store/values/counter_increase.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { STACKS = 100, SNAPSHOTS = 2, MINUTE_S = 60 };

static const int64_t begin_ns = INT64_C(1790000000) / 3600 * 3600 * 1000000000;

static void die(const struct err *err)
{
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

/* Strings of the type, then one for each series. */
static void make_series(struct batch *batch, struct profile *tables, uint32_t count)
{
    static const char *const fixed[] = {"",      "memory", "alloc_objects", "count",
                                        "space", "bytes",  "service_name"};
    enum { FIXED = sizeof(fixed) / sizeof(fixed[0]) };
    struct span *texts = arena_new(batch->arena, struct span, FIXED + count);
    struct batch_series *series = arena_new(batch->arena, struct batch_series, count);
    struct batch_label *labels = arena_new(batch->arena, struct batch_label, count);
    for (uint32_t i = 0; i < FIXED; i++)
        texts[i] = span_text(fixed[i]);
    for (uint32_t i = 0; i < count; i++) {
        texts[FIXED + i] = span_text(arena_printf(batch->arena, "service-%u", i));
        labels[i] = (struct batch_label){.name = 6, .value = FIXED + i};
        series[i] = (struct batch_series){.type = {.name = 1,
                                                   .sample_type = {.type = 2, .unit = 3},
                                                   .period_type = {.type = 4, .unit = 5}},
                                          .first_label = i,
                                          .label_count = 1};
    }
    tables->strings = texts;
    tables->string_count = FIXED + count;
    batch->series = series;
    batch->series_labels = labels;
    batch->series_count = batch->series_label_count = count;
}

/* Each stack has its own address and a caller that all stacks share; stack 0 is empty. */
static void make_stacks(struct batch *batch, struct profile *tables, uint32_t count)
{
    struct profile_location *locations =
        arena_new(batch->arena, struct profile_location, count + (size_t)1);
    uint64_t *starts = arena_new(batch->arena, uint64_t, count + (size_t)2);
    uint32_t *stack = arena_new(batch->arena, uint32_t, 2 * (size_t)count);
    for (uint32_t i = 0; i <= count; i++)
        locations[i] = (struct profile_location){.address = 4096 + i * 16, .mapping = PROFILE_NONE};
    for (uint32_t i = 0; i < count; i++) {
        stack[2 * (size_t)i] = i + 1;
        starts[i + 2] = 2 * ((uint64_t)i + 1);
    }
    tables->locations = locations;
    tables->location_count = count + 1;
    batch->stack_start = starts;
    batch->stack = stack;
    batch->stack_count = count + 1;
}

static void make_profiles(struct batch *batch)
{
    const uint32_t count = batch->series_count * SNAPSHOTS;
    struct batch_profile *profiles = arena_new(batch->arena, struct batch_profile, count);
    struct batch_sample *samples =
        arena_new(batch->arena, struct batch_sample, (size_t)count * STACKS);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t series = i / SNAPSHOTS, snapshot = i % SNAPSHOTS;
        profiles[i] = (struct batch_profile){
            .series = series,
            .first_sample = i * STACKS,
            .sample_count = STACKS,
            .time_ns = begin_ns + (int64_t)snapshot * MINUTE_S * 1000000000,
        };
        for (uint32_t j = 0; j < STACKS; j++)
            samples[i * STACKS + j] =
                (struct batch_sample){.stack = 1 + series * STACKS + j, .value = 1 + j + snapshot};
    }
    batch->profiles = profiles;
    batch->profile_count = count;
    batch->samples = samples;
    batch->sample_count = count * STACKS;
}

static void write_block(uint32_t series_count, struct buf *bytes)
{
    static const struct batch_label_set none;
    arena_auto arena = arena_create();
    struct profile tables = {.arena = arena};
    struct batch batch = {
        .arena = arena, .tables = &tables, .label_sets = &none, .label_set_count = 1};
    make_series(&batch, &tables, series_count);
    make_stacks(&batch, &tables, series_count * STACKS);
    make_profiles(&batch);
    struct block_summary summary;
    struct err err;
    buf_init(bytes, 1u << 30);
    if (block_write_batch(&batch, 1, 1, bytes, &summary, &err))
        die(&err);
}

static void add_increase(void *context, const struct counter_delta *delta)
{
    int64_t *sum = context;
    *sum += delta->value;
}

/* Series by series, like queries. */
static int64_t find_increases(const struct block *block, struct block_cursor *cursor,
                              const uint32_t *keys)
{
    int64_t total = 0;
    uint32_t count;
    const struct block_granule *granules = block_granules(block, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct counter_increase increase = {0};
        struct block_rows rows;
        struct err err;
        if (block_read_rows(block, &granules[i], cursor, false, &rows, &err))
            die(&err);
        counter_increase_add(&increase, block, &rows, 0, granules[i].profile_count, keys);
        counter_increase_compute(&increase, NULL, add_increase, &total);
        counter_increase_fini(&increase);
    }
    return total;
}

/* CPU ns per row, the best of several runs. */
static double time_rows(uint32_t series_count)
{
    enum { TRIES = 3 };
    static const uint32_t keys[STACKS * SNAPSHOTS];
    buf_auto bytes;
    write_block(series_count, &bytes);
    const struct span span = buf_span(&bytes);
    struct block *block;
    struct err err;
    if (block_open(block_source_memory(&span, "bench"), 1, 1, &block, &err))
        die(&err);
    block_hashes(block); /* computed once and then shared */
    struct block_cursor *cursor = block_cursor_create();
    int64_t best_ns = INT64_MAX;
    for (int try = 0; try < TRIES; try++) {
        const int64_t from_ns = clock_thread_cpu_ns();
        const int64_t total = find_increases(block, cursor, keys);
        const int64_t took_ns = clock_thread_cpu_ns() - from_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
        if (total != (int64_t)series_count * STACKS) {
            fprintf(stderr, "the counters increased by %lld\n", (long long)total);
            exit(1);
        }
    }
    block_cursor_destroy(cursor);
    block_close(block);
    return (double)best_ns / ((double)series_count * STACKS * SNAPSHOTS);
}

int main(int argument_count, char **arguments)
{
    const int wanted = argument_count > 1 ? atoi(arguments[1]) : 3000;
    if (wanted < 10 || wanted > 10000) {
        fprintf(stderr, "SERIES is from 10 to 10000\n");
        return 2;
    }
    /* As in api/server/http_server.c: large blocks are returned to the system when freed, and are
     * zeroed when allocated again. */
    mallopt(M_MMAP_THRESHOLD, 512 << 10);
    const uint32_t most = (uint32_t)wanted, few = most / 10;
    const double of_few = time_rows(few), of_most = time_rows(most);
    printf("\"a counter's row, %u series in its block\",%.3g,ns,,\n", few, of_few);
    printf("\"a counter's row, %u series in its block\",%.3g,ns,,\n", most, of_most);
    printf("\"the second to the first\",%.3g,times,at most 2,%s\n", of_most / of_few,
           of_most <= 2 * of_few ? "yes" : "no");
    return 0;
}
