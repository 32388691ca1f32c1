/*
 * The store's columns without network and database: bytes per sample, and how fast rows are
 * written, merged and read, of synthetic data like that of a fleet: 200 targets (20 services of 10
 * pods), a profile every 10 s of about 300 distinct stacks out of 50,000, drawn by Zipf's law
 * (1.05) whose order drifts; most values are 1. One hour of it, one CSV line per figure:
 *   "what",figure,unit,goal,met
 *
 *   build/release/tests/bench/bench_store [MINUTES]
 */
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "store/block_merge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SERVICES = 20,
    PODS = 10,
    TARGETS = SERVICES * PODS,
    STACKS = 50000,
    FUNCTIONS = 20000,
    STACKS_OF_SERVICE = STACKS / SERVICES,
    DRAWS = 440, /* of which about 317 are distinct */
    INTERVAL_S = 10,
    PROFILES_OF_BATCH = 20,
    SEED = 1
};

struct fleet {
    struct arena *arena;
    struct profile *tables;
    uint64_t *stack_start;
    uint32_t *stack;
    double *cumulated; /* Zipf's weights of ranks, summed */
    struct batch_series series[TARGETS];
    struct batch_label labels[2 * TARGETS];
    uint64_t random;
};

static uint64_t next_random(struct fleet *fleet)
{
    fleet->random ^= fleet->random << 13;
    fleet->random ^= fleet->random >> 7;
    return fleet->random ^= fleet->random << 17;
}

static void make_tables(struct fleet *fleet)
{
    struct arena *arena = fleet->arena;
    struct profile *tables = arena_new(arena, struct profile, 1);
    const uint32_t strings = 16 + FUNCTIONS + TARGETS + SERVICES;
    struct span *texts = arena_new(arena, struct span, strings);
    static const char *const fixed[] = {"",    "process_cpu", "samples",      "count",
                                        "cpu", "nanoseconds", "service_name", "pod"};
    for (uint32_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        texts[i] = span_text(fixed[i]);
    for (uint32_t i = 8; i < 16; i++)
        texts[i] = span_text(arena_printf(arena, "unused%u", i));
    struct profile_function *functions = arena_new(arena, struct profile_function, FUNCTIONS);
    struct profile_line *lines = arena_new(arena, struct profile_line, FUNCTIONS);
    struct profile_location *locations = arena_new(arena, struct profile_location, FUNCTIONS);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        texts[16 + i] = span_text(arena_printf(
            arena, "github.com/example/service/package%u.(*Type%u).Method%u", i % 97, i % 31, i));
        functions[i] = (struct profile_function){.name = 16 + i, .system_name = 16 + i};
        lines[i] = (struct profile_line){.function = i, .line = i % 700};
        locations[i] = (struct profile_location){.address = 0x400000 + i * 64,
                                                 .mapping = PROFILE_NONE,
                                                 .first_line = i,
                                                 .line_count = 1};
    }
    for (uint32_t i = 0; i < TARGETS; i++)
        texts[16 + FUNCTIONS + i] = span_text(arena_printf(arena, "pod-%u", i));
    for (uint32_t i = 0; i < SERVICES; i++)
        texts[16 + FUNCTIONS + TARGETS + i] = span_text(arena_printf(arena, "service-%u", i));
    *tables = (struct profile){
        .arena = arena,
        .strings = texts,
        .string_count = strings,
        .functions = functions,
        .function_count = FUNCTIONS,
        .lines = lines,
        .line_count = FUNCTIONS,
        .locations = locations,
        .location_count = FUNCTIONS,
    };
    fleet->tables = tables;
}

/* Each stack goes on from the upper part of one before it: a tree whose callers are shared. */
static void make_stacks(struct fleet *fleet)
{
    enum { DEEPEST = 60 };
    uint64_t *starts = arena_new(fleet->arena, uint64_t, STACKS + 1);
    uint32_t *stack = arena_new(fleet->arena, uint32_t, (size_t)STACKS * DEEPEST);
    for (uint32_t i = 0; i < STACKS; i++) {
        const uint32_t depth = 10 + (uint32_t)(next_random(fleet) % 23);
        const uint32_t base = i / STACKS_OF_SERVICE * STACKS_OF_SERVICE;
        uint32_t shared = 0;
        uint64_t from_end = 0;
        if (i > base) {
            const uint32_t other = base + (uint32_t)(next_random(fleet) % (i - base));
            const uint64_t size = starts[other + 1] - starts[other];
            from_end = starts[other + 1];
            shared = (uint32_t)(size * (next_random(fleet) % 90) / 100);
            shared = shared < depth ? shared : depth - 1;
        }
        /* Leaf first: the shared callers are the end of both. */
        const uint64_t end = starts[i] + depth;
        for (uint32_t j = 0; j < shared; j++)
            stack[end - 1 - j] = stack[from_end - 1 - j];
        for (uint64_t at = starts[i]; at < end - shared; at++)
            stack[at] = (uint32_t)(next_random(fleet) % FUNCTIONS);
        starts[i + 1] = end;
    }
    fleet->stack_start = starts;
    fleet->stack = stack;
}

static void make_fleet(struct fleet *fleet)
{
    fleet->arena = arena_create();
    fleet->random = UINT64_C(88172645463325252) + SEED;
    make_tables(fleet);
    make_stacks(fleet);
    fleet->cumulated = arena_new(fleet->arena, double, STACKS_OF_SERVICE);
    double sum = 0;
    for (uint32_t i = 0; i < STACKS_OF_SERVICE; i++)
        fleet->cumulated[i] = sum += 1 / pow(i + 1, 1.05);
    for (uint32_t i = 0; i < TARGETS; i++) {
        fleet->labels[2 * i] =
            (struct batch_label){.name = 7, .value = 16 + FUNCTIONS + i}; /* pod */
        fleet->labels[2 * i + 1] = (struct batch_label){
            .name = 6, .value = 16 + FUNCTIONS + TARGETS + i / PODS}; /* service_name */
        fleet->series[i] = (struct batch_series){
            .type = {.name = 1,
                     .sample_type = {.type = 2, .unit = 3},
                     .period_type = {.type = 4, .unit = 5},
                     .is_delta = true},
            .first_label = 2 * i,
            .label_count = 2,
        };
    }
}

static uint32_t draw_rank(struct fleet *fleet)
{
    const double wanted = (double)(next_random(fleet) >> 11) / 9007199254740992.0 *
                          fleet->cumulated[STACKS_OF_SERVICE - 1];
    uint32_t low = 0, high = STACKS_OF_SERVICE - 1;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (fleet->cumulated[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One target's profile; which stack has which rank differs from pod to pod and drifts. */
static uint32_t draw_profile(struct fleet *fleet, uint32_t target, uint32_t tick,
                             struct batch_sample *samples)
{
    uint16_t counts[STACKS_OF_SERVICE] = {0};
    const uint32_t drift = target * 131 + tick / 30 * 7;
    for (int i = 0; i < DRAWS; i++) {
        const uint32_t rank = draw_rank(fleet);
        counts[(rank + (rank > 8 ? drift : target % PODS)) % STACKS_OF_SERVICE]++;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < STACKS_OF_SERVICE; i++) {
        if (counts[i])
            samples[count++] = (struct batch_sample){.stack = target / PODS * STACKS_OF_SERVICE + i,
                                                     .value = counts[i]};
    }
    return count;
}

/* Bytes of a block, opened. */
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
        const int64_t jitter_ns = (int64_t)(next_random(fleet) % 1000) * 1000000;
        profiles[i] = (struct batch_profile){
            .series = first_target + i,
            .first_sample = count,
            .time_ns = INT64_C(1790000000) / 3600 * 3600 * 1000000000 +
                       (int64_t)tick * INTERVAL_S * 1000000000 + jitter_ns,
            .duration_ns = (int64_t)INTERVAL_S * 1000000000,
            .period = 10000000,
        };
        profiles[i].sample_count = draw_profile(fleet, first_target + i, tick, samples + count);
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
        .end_ns = INT64_MAX,
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

/* CPU ns of adding up all granules, by totals or row by row; the best of several. */
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
    make_fleet(fleet);
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
    printf("# %.0f rows, %llu profiles, %u stacks, %u nodes\n", rows,
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
    arena_destroy(fleet->arena);
    mem_free(fleet);
    return 0;
}
