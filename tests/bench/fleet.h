/*
 * fleet: synthetic continuous profiles, for benchmarks: 200 targets (20 services of 10 pods), a
 * profile every 10 s of about 300 distinct stacks out of 50,000, drawn by Zipf's law (1.05) whose
 * order differs from pod to pod and drifts; most values are 1. The same seed gives the same
 * profiles.
 */
#ifndef TESTS_BENCH_FLEET_H
#define TESTS_BENCH_FLEET_H

#include "lib/profile/batch/batch.h"

enum {
    SERVICES = 20,
    PODS = 10,
    TARGETS = SERVICES * PODS,
    STACKS = 50000,
    FUNCTIONS = 20000,
    STACKS_OF_SERVICE = STACKS / SERVICES,
    DRAWS = 760, /* of which about 317 are distinct */
    INTERVAL_S = 10,
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

/* Functions are drawn evenly, or those with small numbers more often (skew > 1: u to its power). */
void fleet_init(struct fleet *fleet, int skew);
void fleet_fini(struct fleet *fleet);
uint64_t fleet_random(struct fleet *fleet);
/* One target's profile; which stack has which rank differs from pod to pod and drifts. Samples are
 * ordered by stack; there is room for STACKS_OF_SERVICE. */
uint32_t fleet_draw(struct fleet *fleet, uint32_t target, uint32_t tick,
                    struct batch_sample *samples);

#endif
