/*
 * batch: profiles of any number of series over one set of tables: the unit in which profiles are
 * added to the store. A request contains one batch, or one for each of its profiles.
 *
 * Decoders of the wire formats make a batch (lib/profile/otlp/otlp.h; batch_from_profile for
 * pprof), and the store stores it. It is immutable once built and may then be read by any number of
 * threads. The batch and everything it points to are in its arena.
 *
 * tables has strings, mappings, functions, lines and locations as in lib/profile/profile.h, and no
 * samples. Strings are canonical (string 0 is "", equal strings have equal indexes); stacks are
 * leaf first. Stack 0 is empty; label set 0 has no labels and no link. Two stacks, or two label
 * sets, may be equal.
 *
 * A series is a label set and a profile type. Its labels are sorted by name (as bytes), names are
 * distinct and no value is empty. A profile is what one series measured in a time interval. A
 * sample is a stack and its part of the profile's value, with labels that do not belong to the
 * series (threads, spans, numbers), the trace span in which it ran, and, if the sender supplies
 * them, the times at which it was observed.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_H
#define LIB_PROFILE_BATCH_BATCH_H

#include "lib/profile/profile.h"

/* How values of one series at different times are combined. The numbers are stored in blocks. */
enum batch_kind {
    BATCH_KIND_BY_RULE, /* a gauge or a counter, which batch_type_is_gauge decides by the names */
    BATCH_KIND_DELTA,   /* covers only the profile's duration */
    BATCH_KIND_CUMULATIVE, /* a counter since a start, although its names are those of a gauge */
    BATCH_KIND_GAUGE,      /* a gauge, although its names are not those of one */
    BATCH_KINDS
};

/* name:sample_type:sample_unit:period_type:period_unit[:delta|:cumulative|:gauge], strings of the
 * tables. A sender's declaration that agrees with the rule for the names is stored as
 * BATCH_KIND_BY_RULE, so that a sender that begins to declare the kind continues its series. */
struct batch_type {
    uint32_t name; /* "process_cpu" */
    struct profile_value_type sample_type;
    struct profile_value_type period_type; /* both "" if there is none */
    enum batch_kind kind;
};

struct batch_label {
    uint32_t name;
    uint32_t value;
};

struct batch_series {
    struct batch_type type;
    uint32_t first_label; /* in series_labels */
    uint32_t label_count;
};

/* The trace span of a sample; all zeros: none. */
struct batch_link {
    uint8_t trace_id[16];
    uint8_t span_id[8];
};

struct batch_label_set {
    uint32_t first_label; /* in sample_labels */
    uint32_t label_count;
    struct batch_link link;
};

/* The whole days, 1677-09-22 to 2262-04-10, whose beginning and end fit 64 bits as ns since 1970.
 */
#define BATCH_TIME_END_NS (INT64_MAX / 86400000000000 * 86400000000000)
#define BATCH_TIME_BEGIN_NS (-BATCH_TIME_END_NS)

struct batch_profile {
    uint32_t series;
    uint32_t first_sample;
    uint32_t sample_count;
    int64_t time_ns;     /* beginning, ns since 1970; in [BATCH_TIME_BEGIN_NS, BATCH_TIME_END_NS) */
    int64_t duration_ns; /* 0: unknown */
    int64_t period;      /* in the unit of the series' period type; 0: unknown */
};

struct batch_sample {
    int64_t value; /* never 0 */
    uint32_t stack;
    uint32_t label_set;
};

struct batch {
    struct arena *arena;
    const struct profile *tables; /* in arena: never destroyed separately */

    /* Stack i: stack[stack_start[i] .. stack_start[i + 1]), locations. */
    uint32_t stack_count; /* at least 1 */
    const uint64_t *stack_start;
    const uint32_t *stack;

    const struct batch_label_set *label_sets;
    const struct profile_label *sample_labels;
    uint32_t label_set_count; /* at least 1 */
    uint32_t sample_label_count;

    const struct batch_series *series;
    const struct batch_label *series_labels;
    uint32_t series_count;
    uint32_t series_label_count;

    /* Profiles in any order; the samples of each are contiguous. */
    const struct batch_profile *profiles;
    const struct batch_sample *samples;
    uint32_t profile_count;
    uint32_t sample_count;

    /* Sample i was observed at timestamps[timestamp_start[i] .. timestamp_start[i + 1]), ns
     * since 1970, ascending; NULL when no sample has timestamps. */
    const uint64_t *timestamp_start;
    const int64_t *timestamps;

    const char *notice; /* for the sender: what was left out, in arena; NULL: nothing */
};

/* Frees the batch and everything it points to; NULL is a no-op. */
void batch_destroy(struct batch *batch);

static inline void batch_cleanup(struct batch **batch)
{
    batch_destroy(*batch);
}
#define batch_auto __attribute__((cleanup(batch_cleanup))) struct batch *

#endif
