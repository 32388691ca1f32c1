#include "store/block/aggregation.h"

#include "lib/profile/batch/batch_type.h"
#include "store/block/dictionary.h"

/* Numbers of threads are gauges, too, although they are stored as deltas. */
static bool is_gauge(const struct batch_type *type, const struct span *strings)
{
    const struct span sample_type = strings[type->sample_type.type];
    if (type->kind == BATCH_KIND_CUMULATIVE || type->kind == BATCH_KIND_GAUGE)
        return type->kind == BATCH_KIND_GAUGE;
    return batch_type_is_gauge(strings[type->name], sample_type) ||
           span_equal_text(sample_type, "thread") || span_equal_text(sample_type, "threads");
}

/* A type that is neither delta nor gauge is a counter. lib/profile/batch/batch_type.h decides at
 * ingest which kind is stored. */
enum store_aggregation aggregation_of_type(const struct dictionary *dictionary, uint32_t series)
{
    const struct batch_type *type = &dictionary->series[series].type;
    if (is_gauge(type, dictionary->tables->strings))
        return STORE_MEAN;
    return type->kind == BATCH_KIND_DELTA ? STORE_SUM : STORE_DIFFERENCE;
}

const char *store_aggregation_name(enum store_aggregation aggregation)
{
    static const char *const names[STORE_AGGREGATION_COUNT] = {"sum", "mean", "difference"};
    return names[aggregation];
}
