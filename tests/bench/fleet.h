/*
 * fleet: synthetic continuous profiles for benchmarks: 200 targets (20 services of 10 pods), each
 * with a profile every 10 s of about 300 distinct stacks out of 50,000. Stacks are drawn by Zipf's
 * law (exponent 1.05), with ranks that differ from pod to pod and drift; most values are 1. All
 * runs generate the same profiles. A fleet belongs to one thread.
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
    DRAWS = 760,     /* stacks drawn per profile, of which about 317 are distinct */
    INTERVAL_S = 10, /* between two profiles of a target */
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

/* The function of a frame is FUNCTIONS * u^skew for a uniform u in [0, 1): skew 1 draws all
 * functions evenly, a larger skew those with small numbers more often. */
void fleet_init(struct fleet *fleet, int skew);
void fleet_fini(struct fleet *fleet);
/* The next number of the generator that fleet_init seeded, for the caller's own use. */
uint64_t fleet_random(struct fleet *fleet);
/* Draws one target's profile of a tick (a number of intervals) into samples, which must have space
 * for STACKS_OF_SERVICE; returns how many it wrote, ordered by stack. The 9 most frequent stacks of
 * a target stay the same; the ranks of all others drift every 30 ticks, which is 5 minutes. */
uint32_t fleet_draw(struct fleet *fleet, uint32_t target, uint32_t tick,
                    struct batch_sample *samples);

#endif
