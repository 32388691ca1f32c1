#include "store/block/aggregation.h"

#include "lib/profile/batch/batch_type.h"
#include "store/block/dictionary.h"

enum store_aggregation aggregation_of_type(const struct dictionary *dictionary, uint32_t series)
{
    const struct batch_type *type = &dictionary->series[series].type;
    const struct span *strings = dictionary->tables->strings;
    if (type->kind == BATCH_KIND_DELTA)
        return STORE_SUM;
    const bool is_gauge =
        type->kind == BATCH_KIND_GAUGE ||
        (type->kind == BATCH_KIND_BY_RULE &&
         batch_type_is_gauge(strings[type->name], strings[type->sample_type.type]));
    return is_gauge ? STORE_MEAN : STORE_COUNTER_DELTA;
}

const char *aggregation_name(enum store_aggregation aggregation)
{
    static const char *const names[STORE_AGGREGATION_COUNT] = {"sum", "mean", "difference"};
    return names[aggregation];
}
