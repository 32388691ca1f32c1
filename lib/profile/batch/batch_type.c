#include "lib/profile/batch/batch_type.h"

#include "lib/base/arena.h"
#include "lib/base/span_utf8.h"

/* How a rule compares its text with the name of a type: the whole, a part, or the start. */
enum match { MATCH_WHOLE, MATCH_PART, MATCH_START };

/* A row of one of the tables below; the first row that matches a type applies. */
struct rule {
    const char *text;
    enum match match;
    const char *name;     /* in name_rules: the name of a profile with such a type */
    enum batch_kind kind; /* in kind_rules: the kind of such a type */
};

static const struct rule name_rules[] = {
    {.text = "cpu", .match = MATCH_PART, .name = "process_cpu"},
    {.text = "samples", .match = MATCH_WHOLE, .name = "process_cpu"},
    {.text = "itimer", .match = MATCH_WHOLE, .name = "process_cpu"},
    {.text = "alloc_", .match = MATCH_PART, .name = "memory"},
    {.text = "inuse_", .match = MATCH_PART, .name = "memory"},
    {.text = "space", .match = MATCH_WHOLE, .name = "memory"},
    {.text = "objects", .match = MATCH_WHOLE, .name = "memory"},
    {.text = "live", .match = MATCH_WHOLE, .name = "memory"},
    {.text = "heap_live", .match = MATCH_START, .name = "memory"},
    {.text = "_space", .match = MATCH_PART, .name = "memory"},
    {.text = "mutex_", .match = MATCH_PART, .name = "mutex"},
    {.text = "contentions", .match = MATCH_WHOLE, .name = "mutex"},
    {.text = "delay", .match = MATCH_WHOLE, .name = "mutex"},
    {.text = "block_", .match = MATCH_PART, .name = "block"},
    {.text = "lock_", .match = MATCH_PART, .name = "block"},
    {.text = "goroutine", .match = MATCH_PART, .name = "goroutines"},
};

static const struct rule kind_rules[] = {
    {.text = "inuse_", .match = MATCH_START, .kind = BATCH_KIND_GAUGE},
    {.text = "live", .match = MATCH_START, .kind = BATCH_KIND_GAUGE},
    {.text = "heap_live", .match = MATCH_START, .kind = BATCH_KIND_GAUGE},
    {.text = "heap_space", .match = MATCH_WHOLE, .kind = BATCH_KIND_GAUGE},
    {.text = "resident_space", .match = MATCH_WHOLE, .kind = BATCH_KIND_GAUGE},
    {.text = "swapped_space", .match = MATCH_WHOLE, .kind = BATCH_KIND_GAUGE},
    {.text = "stale_space", .match = MATCH_WHOLE, .kind = BATCH_KIND_GAUGE},
    {.text = "locked_space", .match = MATCH_WHOLE, .kind = BATCH_KIND_GAUGE},
    {.text = "goroutine", .match = MATCH_START, .kind = BATCH_KIND_GAUGE},
    {.text = "space", .match = MATCH_WHOLE, .kind = BATCH_KIND_GAUGE},
    {.text = "objects", .match = MATCH_WHOLE, .kind = BATCH_KIND_GAUGE},
    {.text = "thread", .match = MATCH_WHOLE, .kind = BATCH_KIND_GAUGE},
    {.text = "threads", .match = MATCH_WHOLE, .kind = BATCH_KIND_GAUGE},
    {.text = "alloc_", .match = MATCH_START, .kind = BATCH_KIND_CUMULATIVE},
    {.text = "contentions", .match = MATCH_WHOLE, .kind = BATCH_KIND_CUMULATIVE},
    {.text = "delay", .match = MATCH_WHOLE, .kind = BATCH_KIND_CUMULATIVE},
    {.text = "mutex_", .match = MATCH_START, .kind = BATCH_KIND_CUMULATIVE},
    {.text = "block_", .match = MATCH_START, .kind = BATCH_KIND_CUMULATIVE},
    {.text = "lock_", .match = MATCH_START, .kind = BATCH_KIND_CUMULATIVE},
    {.text = "threadcreate", .match = MATCH_WHOLE, .kind = BATCH_KIND_CUMULATIVE},
};

/* Whether type starts with rule; '-' counts as '_'. */
static bool starts_with(struct span type, const char *rule)
{
    size_t size = strlen(rule);
    for (size_t i = 0; i < size; i++) {
        if (i == type.size || (type.data[i] == '-' ? '_' : type.data[i]) != (uint8_t)rule[i])
            return false;
    }
    return true;
}

static bool matches(struct span type, const struct rule *rule)
{
    if (rule->match == MATCH_WHOLE)
        return type.size == strlen(rule->text) && starts_with(type, rule->text);
    if (rule->match == MATCH_START)
        return starts_with(type, rule->text);
    for (size_t i = 0; i < type.size; i++) {
        if (starts_with(span_of(type.data + i, type.size - i), rule->text))
            return true;
    }
    return false;
}

static const struct rule *find_rule(const struct rule *rules, size_t count, struct span type)
{
    for (size_t i = 0; i < count; i++) {
        if (matches(type, &rules[i]))
            return &rules[i];
    }
    return NULL;
}

static struct span type_of(const struct profile *profile, uint32_t value_type)
{
    return profile_string(profile, profile->value_types[value_type].type);
}

struct span batch_type_derive_name(const struct profile *profile, const struct span *display_names)
{
    const size_t rule_count = sizeof(name_rules) / sizeof(name_rules[0]);
    struct span first = {0};
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        if (span_equal_text(type_of(profile, i), "wall"))
            return SPAN_LITERAL("wall");
    }
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        struct span type = type_of(profile, i);
        first = first.size ? first : type;
        if (display_names && display_names[i].size)
            type = display_names[i];
        const struct rule *rule = find_rule(name_rules, rule_count, type);
        if (!rule)
            continue;
        bool is_wall = span_equal_text(type, "samples") &&
                       span_equal_text(profile_string(profile, profile->period_type.type), "wall");
        return is_wall ? SPAN_LITERAL("wall") : span_text(rule->name);
    }
    return first.size ? first : SPAN_LITERAL("unknown");
}

bool batch_type_take_delta_prefix(struct span *name)
{
    const struct span prefix = SPAN_LITERAL("godeltaprof_");
    if (!span_starts_with(*name, "godeltaprof_") || name->size == prefix.size)
        return false;
    *name = span_of(name->data + prefix.size, name->size - prefix.size);
    return true;
}

/* Size of the first character if it is allowed in a part; 0: it is not. */
static size_t part_character(struct span rest)
{
    return memchr(": {}", rest.data[0], 4) ? 0 : span_utf8_size(rest);
}

struct span batch_type_part(struct arena *arena, struct span part)
{
    char *clean = NULL;
    for (size_t at = 0; at < part.size;) {
        const size_t size = part_character(span_of(part.data + at, part.size - at));
        if (!size && !clean)
            clean = arena_strndup(arena, part.data, part.size);
        if (!size)
            clean[at] = '_';
        at += size ? size : 1;
    }
    return clean ? span_of(clean, part.size) : part;
}

struct span batch_type_name(const struct profile *profile, struct span name, uint32_t value_type)
{
    bool is_cpu = span_equal_text(type_of(profile, value_type), "cpu");
    return is_cpu && span_equal_text(name, "wall") ? SPAN_LITERAL("process_cpu") : name;
}

static const struct rule *find_kind(struct span type)
{
    return find_rule(kind_rules, sizeof(kind_rules) / sizeof(kind_rules[0]), type);
}

static bool is_of_goroutines(struct span name)
{
    return span_equal_text(name, "goroutine") || span_equal_text(name, "goroutines");
}

bool batch_type_is_gauge(struct span name, struct span type)
{
    const struct rule *rule = find_kind(type);
    return is_of_goroutines(name) || (rule && rule->kind == BATCH_KIND_GAUGE);
}

enum batch_kind batch_type_kind(const struct profile *profile, struct span name,
                                uint32_t value_type, enum batch_kind declared, bool is_delta)
{
    const struct span type = type_of(profile, value_type);
    const bool is_gauge = batch_type_is_gauge(name, type);
    if (declared == (is_gauge ? BATCH_KIND_GAUGE : BATCH_KIND_CUMULATIVE))
        return BATCH_KIND_BY_RULE;
    if (declared != BATCH_KIND_BY_RULE)
        return declared;
    const bool is_snapshot =
        is_gauge || (find_kind(type) && !is_delta && profile->duration_ns <= 0);
    return is_snapshot ? BATCH_KIND_BY_RULE : BATCH_KIND_DELTA;
}

bool batch_type_is_go_delta(const struct profile *profile)
{
    /* Go's CPU profiles, which begin at their time, have the period type "cpu". */
    static const char *const periods[] = {"space", "contentions", "goroutine", "threadcreate"};
    static const char *const types[] = {"alloc_objects", "contentions", "goroutine",
                                        "threadcreate"};
    const struct span period = profile_string(profile, profile->period_type.type);
    if (profile->duration_ns <= 0 || profile->value_type_count == 0)
        return false;
    for (size_t i = 0; i < sizeof(periods) / sizeof(*periods); i++) {
        if (span_equal_text(period, periods[i]))
            return span_equal_text(type_of(profile, 0), types[i]);
    }
    return false;
}

const char *batch_type_suffix(enum batch_kind kind)
{
    static const char *const suffixes[BATCH_KINDS] = {"", ":delta", ":cumulative", ":gauge"};
    return suffixes[kind];
}
