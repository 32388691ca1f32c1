#include "store/block/aggregation.h"

#include "lib/profile/batch/batch_type.h"
#include "store/block/dictionary.h"

/* Numbers of threads are gauges, too, although they are stored as deltas. */
static bool is_gauge(struct span name, struct span type)
{
    return batch_type_is_gauge(name, type) || span_equal_text(type, "thread") ||
           span_equal_text(type, "threads");
}

/* A type that is neither delta nor gauge is a counter. lib/profile/batch/batch_type.h decides at
 * ingest whether a type is a delta. */
enum store_aggregation aggregation_of_type(const struct dictionary *dictionary, uint32_t series)
{
    const struct batch_type *type = &dictionary->series[series].type;
    const struct span *strings = dictionary->tables->strings;
    if (is_gauge(strings[type->name], strings[type->sample_type.type]))
        return STORE_MEAN;
    return type->is_delta ? STORE_SUM : STORE_DIFFERENCE;
}

const char *store_aggregation_name(enum store_aggregation aggregation)
{
    static const char *const names[STORE_AGGREGATION_COUNT] = {"sum", "mean", "difference"};
    return names[aggregation];
}
