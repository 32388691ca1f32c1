#include "tests/bench/fleet.h"

#include "lib/base/arena.h"

#include <math.h>

uint64_t fleet_random(struct fleet *fleet)
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

static uint32_t draw_function(struct fleet *fleet, int skew)
{
    if (skew == 1)
        return (uint32_t)(fleet_random(fleet) % FUNCTIONS);
    return (uint32_t)(pow((double)(fleet_random(fleet) >> 11) / 0x1p53, skew) * FUNCTIONS);
}

/* Each stack continues from the upper part of an earlier one: a tree with shared callers. */
static void make_stacks(struct fleet *fleet, int skew)
{
    enum { DEEPEST = 60 };
    uint64_t *starts = arena_new(fleet->arena, uint64_t, STACKS + 1);
    uint32_t *stack = arena_new(fleet->arena, uint32_t, (size_t)STACKS * DEEPEST);
    for (uint32_t i = 0; i < STACKS; i++) {
        const uint32_t depth = 10 + (uint32_t)(fleet_random(fleet) % 23);
        const uint32_t base = i / STACKS_OF_SERVICE * STACKS_OF_SERVICE;
        uint32_t shared = 0;
        uint64_t from_end = 0;
        if (i > base) {
            const uint32_t other = base + (uint32_t)(fleet_random(fleet) % (i - base));
            const uint64_t size = starts[other + 1] - starts[other];
            from_end = starts[other + 1];
            shared = (uint32_t)(size * (fleet_random(fleet) % 90) / 100);
            shared = shared < depth ? shared : depth - 1;
        }
        /* Leaf first: the shared callers are at the end. */
        const uint64_t end = starts[i] + depth;
        for (uint32_t j = 0; j < shared; j++)
            stack[end - 1 - j] = stack[from_end - 1 - j];
        for (uint64_t at = starts[i]; at < end - shared; at++)
            stack[at] = draw_function(fleet, skew);
        starts[i + 1] = end;
    }
    fleet->stack_start = starts;
    fleet->stack = stack;
}

void fleet_init(struct fleet *fleet, int skew)
{
    fleet->arena = arena_create();
    fleet->random = UINT64_C(88172645463325252) + SEED;
    make_tables(fleet);
    make_stacks(fleet, skew);
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
                     .kind = BATCH_KIND_DELTA},
            .first_label = 2 * i,
            .label_count = 2,
        };
    }
}

static uint32_t draw_rank(struct fleet *fleet)
{
    const double wanted = (double)(fleet_random(fleet) >> 11) / 9007199254740992.0 *
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

uint32_t fleet_draw(struct fleet *fleet, uint32_t target, uint32_t tick,
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

void fleet_fini(struct fleet *fleet)
{
    arena_destroy(fleet->arena);
}
