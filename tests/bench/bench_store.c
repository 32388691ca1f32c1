/*
 * The columns of the store without network and database: bytes per sample, and how fast rows are
 * written, merged and read, for one hour of synthetic data like that of a fleet
 * (tests/bench/fleet.h). Prints a CSV line per result: "what",figure,unit,goal,met
 *
 *    build/release/tests/bench/bench_store [MINUTES]
 */
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "store/maintain/block_merge.h"
#include "tests/bench/fleet.h"

#include <stdio.h>
#include <stdlib.h>

enum { PROFILES_OF_BATCH = 20 };

/* Bytes of an opened block. */
struct kept {
    struct buf bytes;
    struct span span;
    struct block *block;
    struct block_summary summary;
};

static void die(const struct err *err)
{
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static void open_kept(struct kept *kept)
{
    struct err err;
    kept->span = buf_span(&kept->bytes);
    if (block_open(block_source_memory(&kept->span, "bench"), 1, 1, &kept->block, &err))
        die(&err);
}

static void close_kept(struct kept *kept)
{
    block_close(kept->block);
    buf_fini(&kept->bytes);
}

static enum err_code append(void *context, struct span bytes, struct err *err)
{
    (void)err;
    buf_append_span(context, bytes);
    return ERR_NONE;
}

static void write_batch(struct fleet *fleet, uint32_t first_target, uint32_t tick,
                        struct kept *kept, int64_t *cpu_ns)
{
    static struct batch_sample samples[PROFILES_OF_BATCH * STACKS_OF_SERVICE];
    struct batch_profile profiles[PROFILES_OF_BATCH];
    static const struct batch_label_set none;
    uint32_t count = 0;
    for (uint32_t i = 0; i < PROFILES_OF_BATCH; i++) {
        const int64_t jitter_ns = (int64_t)(fleet_random(fleet) % 1000) * 1000000;
        profiles[i] = (struct batch_profile){
            .series = first_target + i,
            .first_sample = count,
            .time_ns = INT64_C(1790000000) / 3600 * 3600 * 1000000000 +
                       (int64_t)tick * INTERVAL_S * 1000000000 + jitter_ns,
            .duration_ns = (int64_t)INTERVAL_S * 1000000000,
            .period = 10000000,
        };
        profiles[i].sample_count = fleet_draw(fleet, first_target + i, tick, samples + count);
        count += profiles[i].sample_count;
    }
    const struct batch batch = {
        .tables = fleet->tables,
        .stack_count = STACKS,
        .stack_start = fleet->stack_start,
        .stack = fleet->stack,
        .label_sets = &none,
        .label_set_count = 1,
        .series = fleet->series,
        .series_count = TARGETS,
        .series_labels = fleet->labels,
        .series_label_count = 2 * TARGETS,
        .profiles = profiles,
        .profile_count = PROFILES_OF_BATCH,
        .samples = samples,
        .sample_count = count,
    };
    struct err err;
    buf_init(&kept->bytes, 1u << 30);
    const int64_t begin_ns = clock_thread_cpu_ns();
    if (block_write_batch(&batch, 1, 0, &kept->bytes, &kept->summary, &err))
        die(&err);
    *cpu_ns += clock_thread_cpu_ns() - begin_ns;
}

static void merge_kept(struct kept *inputs, uint32_t count, struct kept *output, int64_t *cpu_ns)
{
    const struct block **blocks = mem_new(const struct block *, count);
    struct err err;
    const int64_t begin_ns = clock_thread_cpu_ns();
    for (uint32_t i = 0; i < count; i++) {
        open_kept(&inputs[i]);
        blocks[i] = inputs[i].block;
    }
    const struct block_merge_options options = {
        .tenant_id = 1,
        .level = 1,
        .begin_ns = INT64_MIN,
        .last_ns = INT64_MAX,
        .sink = {.append = append, .context = &output->bytes},
    };
    buf_init(&output->bytes, 1u << 30);
    if (block_merge(blocks, count, &options, &output->summary, &err))
        die(&err);
    *cpu_ns += clock_thread_cpu_ns() - begin_ns;
    for (uint32_t i = 0; i < count; i++)
        close_kept(&inputs[i]);
    mem_free(blocks);
}

static void print_figure(const char *what, double figure, const char *unit, double goal,
                         bool is_at_least)
{
    const bool is_met = is_at_least ? figure >= goal : figure <= goal;
    printf("\"%s\",%.3g,%s,", what, figure, unit);
    if (goal > 0)
        printf("%s %g,%s\n", is_at_least ? "at least" : "at most", goal, is_met ? "yes" : "no");
    else
        printf(",\n");
}

/* CPU ns for the sum of all granules, by totals or row by row; the best of several runs. */
static int64_t scan(const struct block *block, bool by_rows, int64_t *ret_sum)
{
    enum { TRIES = 7 };
    const uint32_t stacks = block_dictionary(block)->stacks.stack_count;
    struct block_cursor *cursor = block_cursor_create();
    int64_t *sums = mem_new(int64_t, stacks);
    int64_t best = INT64_MAX;
    uint32_t count;
    const struct block_granule *granules = block_granules(block, &count);
    for (int try = 0; try < TRIES; try++) {
        memset(sums, 0, stacks * sizeof(*sums));
        const int64_t begin_ns = clock_thread_cpu_ns();
        for (uint32_t i = 0; i < count; i++) {
            struct err err;
            if (by_rows ? block_add_range(block, &granules[i], cursor, 0, granules[i].profile_count,
                                          sums, &err)
                        : block_add_totals(block, &granules[i], cursor, sums, &err))
                die(&err);
        }
        const int64_t took_ns = clock_thread_cpu_ns() - begin_ns;
        best = took_ns < best ? took_ns : best;
    }
    *ret_sum = 0;
    for (uint32_t i = 0; i < stacks; i++)
        *ret_sum += sums[i];
    block_cursor_destroy(cursor);
    mem_free(sums);
    return best;
}

static void print_sections(const struct kept *hour)
{
    static const char *const names[] = {"strings",    "tables", "stacks",
                                        "label sets", "series", "granules"};
    static const char *const extents[] = {"profiles", "totals", "rows", "details"};
    const double rows = (double)hour->summary.row_count;
    uint64_t bytes[BLOCK_EXTENT_COUNT] = {0};
    uint32_t count;
    const struct block_granule *granules = block_granules(hour->block, &count);
    for (uint32_t i = 0; i < count; i++) {
        for (int j = 0; j < BLOCK_EXTENT_COUNT; j++)
            bytes[j] += block_align(granules[i].extent_bytes[j]);
    }
    char what[64];
    for (int i = 0; i < BLOCK_EXTENT_COUNT; i++) {
        snprintf(what, sizeof(what), "of these: %s", extents[i]);
        print_figure(what, (double)bytes[i] / rows, "bytes/row", 0, false);
    }
    for (int i = 0; i < BLOCK_SECTION_COUNT; i++) {
        snprintf(what, sizeof(what), "of these: %s", names[i]);
        print_figure(what, (double)block_footer(hour->block)->sections[i].stored_bytes / rows,
                     "bytes/row", 0, false);
    }
}

int main(int argument_count, char **arguments)
{
    const uint32_t minutes = argument_count > 1 ? (uint32_t)atoi(arguments[1]) : 60;
    const uint32_t ticks = minutes * 60 / INTERVAL_S, ticks_of_block = 60;
    struct fleet *fleet = mem_new(struct fleet, 1);
    fleet_init(fleet, 1);
    struct kept *parts = mem_new(struct kept, (size_t)TARGETS / PROFILES_OF_BATCH * ticks_of_block);
    struct kept *blocks = mem_new(struct kept, ticks / ticks_of_block + 1);
    struct kept hour = {0};
    int64_t write_ns = 0, merge_ns = 0, hour_ns = 0;
    uint64_t part_bytes = 0;
    uint32_t block_count = 0;
    for (uint32_t tick = 0; tick < ticks;) {
        uint32_t part_count = 0;
        for (uint32_t end = tick + ticks_of_block; tick < end && tick < ticks; tick++) {
            for (uint32_t target = 0; target < TARGETS; target += PROFILES_OF_BATCH) {
                write_batch(fleet, target, tick, &parts[part_count], &write_ns);
                part_bytes += parts[part_count++].bytes.size;
            }
        }
        merge_kept(parts, part_count, &blocks[block_count++], &merge_ns);
    }
    merge_kept(blocks, block_count, &hour, &hour_ns);
    open_kept(&hour);
    const double rows = (double)hour.summary.row_count;
    int64_t sum_of_totals, sum_of_rows;
    const int64_t totals_ns = scan(hour.block, false, &sum_of_totals);
    const int64_t rows_ns = scan(hour.block, true, &sum_of_rows);
    if (sum_of_totals != sum_of_rows) {
        fprintf(stderr, "totals and rows differ\n");
        return 1;
    }
    fprintf(stderr, "# %.0f rows, %llu profiles, %u stacks, %u nodes\n", rows,
            (unsigned long long)hour.summary.profile_count,
            block_dictionary(hour.block)->stacks.stack_count,
            block_dictionary(hour.block)->stacks.node_count);
    print_figure("batch to block of level 0", rows * 1e3 / (double)write_ns, "M rows/s/core", 0,
                 true);
    print_figure("bytes of level 0", (double)part_bytes / rows, "bytes/row", 0, false);
    print_figure("merging ten minutes, opening included", rows * 1e3 / (double)merge_ns,
                 "M rows/s/core", 0, true);
    print_figure("merging an hour, opening included", rows * 1e3 / (double)hour_ns, "M rows/s/core",
                 0, true);
    print_figure("bytes of the hour", (double)hour.summary.bytes / rows, "bytes/row", 1.0, false);
    print_sections(&hour);
    print_figure("adding up rows with a range", rows * 1e3 / (double)rows_ns, "M rows/s/core", 500,
                 true);
    print_figure("adding up totals", rows * 1e3 / (double)totals_ns, "M rows/s/core", 0, true);
    close_kept(&hour);
    mem_free(parts);
    mem_free(blocks);
    fleet_fini(fleet);
    mem_free(fleet);
    return 0;
}
