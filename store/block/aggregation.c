#include "store/block/aggregation.h"

#include "store/block/dictionary.h"

static bool is_gauge(struct span type)
{
    static const char *const names[] = {"goroutine", "goroutines", "thread",
                                        "threads",   "space",      "objects"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (span_equal_text(type, names[i]))
            return true;
    }
    return span_starts_with(type, "inuse_") || span_starts_with(type, "live");
}

/* A type that is neither delta nor gauge is a counter. lib/profile/batch/batch_type.h decides at
 * ingest whether a type is a delta. */
enum store_aggregation aggregation_of_type(const struct dictionary *dictionary, uint32_t series)
{
    const struct batch_type *type = &dictionary->series[series].type;
    if (is_gauge(dictionary->tables->strings[type->sample_type.type]))
        return STORE_MEAN;
    return type->is_delta ? STORE_SUM : STORE_DIFFERENCE;
}

const char *store_aggregation_name(enum store_aggregation aggregation)
{
    static const char *const names[STORE_AGGREGATION_COUNT] = {"sum", "mean", "difference"};
    return names[aggregation];
}
