#include "api/ingest/batch_check.h"

#include "api/identity/tenant_limits.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/batch/batch.h"
#include "lib/profile/batch/batch_labels.h"

#include <inttypes.h>
#include <stdio.h>

enum { LABELS_MAX = 256, TYPE_PART_BYTES_MAX = 512 };

/* ---- labels ---- */

static enum err_code refuse_label(const struct tenant_limits *limits, enum tenant_limit limit,
                                  const char *what, struct span name, size_t size, struct err *err)
{
    enum { SHOWN = 60 };
    char text[TENANT_LIMITS_TEXT_BYTES];
    tenant_limits_describe(limits, limit, text);
    return err_set(err, ERR_INVALID, "the %s of label '%.*s%s' has %zu bytes: %s", what,
                   (int)(name.size < SHOWN ? name.size : SHOWN), (const char *)name.data,
                   name.size > SHOWN ? "…" : "", size, text);
}

enum err_code batch_check_labels(const struct tenant_limits *limits,
                                 const struct batch_text_label *labels, size_t count,
                                 struct err *err)
{
    const int64_t *values = limits->values;
    if (count > (size_t)values[TENANT_LIMIT_SERIES_LABELS]) {
        char limit[TENANT_LIMITS_TEXT_BYTES];
        tenant_limits_describe(limits, TENANT_LIMIT_SERIES_LABELS, limit);
        return err_set(err, ERR_INVALID, "a series has %zu labels: %s", count, limit);
    }
    for (size_t i = 0; i < count; i++) {
        const struct batch_text_label *label = &labels[i];
        if (label->name.size > (size_t)values[TENANT_LIMIT_LABEL_NAME_BYTES])
            return refuse_label(limits, TENANT_LIMIT_LABEL_NAME_BYTES, "name", label->name,
                                label->name.size, err);
        if (label->value.size > (size_t)values[TENANT_LIMIT_LABEL_VALUE_BYTES])
            return refuse_label(limits, TENANT_LIMIT_LABEL_VALUE_BYTES, "value", label->name,
                                label->value.size, err);
    }
    return ERR_NONE;
}

/* The name part of a profile type appears in addresses, header fields and selectors. */
static enum err_code check_type(const struct batch *batch, const struct batch_series *series,
                                struct err *err)
{
    const struct batch_type *type = &series->type;
    const uint32_t parts[] = {type->name, type->sample_type.type, type->sample_type.unit,
                              type->period_type.type, type->period_type.unit};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const struct span part = batch->tables->strings[parts[i]];
        if (part.size > TYPE_PART_BYTES_MAX)
            return err_set(
                err, ERR_INVALID,
                "a part of the profile type's name has %zu bytes; at most %d are allowed",
                part.size, TYPE_PART_BYTES_MAX);
        for (size_t j = 0; j < part.size; j++) {
            if (part.data[j] < ' ' || part.data[j] == 0x7f)
                return err_set(err, ERR_INVALID,
                               "the profile type's name contains a control character");
        }
    }
    return ERR_NONE;
}

enum err_code batch_check_series(const struct tenant_limits *limits, const struct batch *batch,
                                 const struct batch_series *series, struct err *err)
{
    enum err_code code = check_type(batch, series, err);
    if (code)
        return code;
    struct batch_text_label labels[LABELS_MAX];
    const uint32_t count = series->label_count < LABELS_MAX ? series->label_count : LABELS_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct batch_label *label = &batch->series_labels[series->first_label + i];
        labels[i].name = batch->tables->strings[label->name];
        labels[i].value = batch->tables->strings[label->value];
    }
    return batch_check_labels(limits, labels, count, err);
}

/* ---- times ---- */

/* "3 hours", in the largest unit of which there are at least two. */
static void format_skew(int64_t skew_ns, char *text, size_t text_bytes)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = {{"years", 365 * 86400}, {"days", 86400}, {"hours", 3600}, {"minutes", 60}};
    const int64_t skew_s = skew_ns / CLOCK_NS_PER_S;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (skew_s >= 2 * units[i].seconds) {
            snprintf(text, text_bytes, "%" PRId64 " %s", skew_s / units[i].seconds, units[i].name);
            return;
        }
    }
    snprintf(text, text_bytes, "%" PRId64 " s", skew_s);
}

/* A profile of the future is found by queries of no usual window, and outlives every retention
 * rule. Clocks of clients differ, so some time ahead is allowed. */
enum err_code batch_check_time(const struct tenant_limits *limits,
                               const struct batch_profile *profile, int64_t now_ns, struct err *err)
{
    const int64_t most_s = limits->values[TENANT_LIMIT_FUTURE_S];
    const int64_t skew_ns = profile->time_ns > now_ns ? profile->time_ns - now_ns : 0;
    if (skew_ns / CLOCK_NS_PER_S <= most_s)
        return ERR_NONE;
    char skew[32], limit[TENANT_LIMITS_TEXT_BYTES];
    format_skew(skew_ns, skew, sizeof(skew));
    tenant_limits_describe(limits, TENANT_LIMIT_FUTURE_S, limit);
    return err_set(
        err, ERR_INVALID,
        "the profile's time is %s ahead of this server's clock, more than the limit "
        "allows (%s): check the clock of the agent, and whether it sends nanoseconds since 1970",
        skew, limit);
}

enum err_code batch_check_times(const struct tenant_limits *limits, const struct batch *batch,
                                struct err *err)
{
    const int64_t now_ns = clock_wall_ns();
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < batch->profile_count && !code; i++)
        code = batch_check_time(limits, &batch->profiles[i], now_ns, err);
    return code;
}
