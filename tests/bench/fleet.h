/*
 * fleet: synthetic continuous profiles for benchmarks: 200 targets (20 services of 10 pods), each
 * with a profile every 10 s of about 300 distinct stacks out of 50,000. Stacks are drawn by Zipf's
 * law (1.05), with ranks that differ from pod to pod and drift; most values are 1. The same seed
 * gives the same profiles.
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
    double *cumulated; /* Cumulative weights of ranks by Zipf's law. */
    struct batch_series series[TARGETS];
    struct batch_label labels[2 * TARGETS];
    uint64_t random;
};

/* Functions are drawn evenly, or (skew > 1: u to its power) those with small numbers more often. */
void fleet_init(struct fleet *fleet, int skew);
void fleet_fini(struct fleet *fleet);
uint64_t fleet_random(struct fleet *fleet);
/* One target's profile; ranks of stacks differ from pod to pod and drift. Samples are ordered by
 * stack; the buffer must hold STACKS_OF_SERVICE samples. */
uint32_t fleet_draw(struct fleet *fleet, uint32_t target, uint32_t tick,
                    struct batch_sample *samples);

#endif
