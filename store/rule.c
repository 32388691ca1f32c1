#include "store/rule.h"

#include "store/dictionary.h"

static bool is_level(struct span type)
{
    static const char *const names[] = {"goroutine",    "goroutines", "thread", "threads",
                                        "threadcreate", "space",      "objects"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (span_equal_text(type, names[i]))
            return true;
    }
    return span_starts_with(type, "inuse_") || span_starts_with(type, "live");
}

static bool is_counter(struct span type)
{
    return span_starts_with(type, "alloc_") || span_equal_text(type, "contentions") ||
           span_equal_text(type, "delay");
}

enum store_rule rule_of_type(const struct dictionary *dictionary, uint32_t series)
{
    const struct batch_type *type = &dictionary->series[series].type;
    const struct span name = dictionary->tables->strings[type->sample_type.type];
    if (is_level(name))
        return STORE_MEAN;
    return !type->is_delta && is_counter(name) ? STORE_DIFFERENCE : STORE_SUM;
}

const char *store_rule_name(enum store_rule rule)
{
    static const char *const names[STORE_RULE_COUNT] = {"sum", "mean", "difference"};
    return names[rule];
}
