#include "store/catalogue/deletion_set.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "store/block/block_format.h"
#include "store/block/selector.h"
#include "store/catalogue/catalogue.h"
#include "store/catalogue/match_budget.h"
#include "store/catalogue/retention.h"

#include <stdlib.h>

struct deletion {
    int64_t id;
    struct selector *selector;
    struct deletion_set_window window;
};

struct deletion_set {
    struct deletion *deletions; /* by id */
    uint32_t count;
    const struct retention *retention; /* or NULL */
    struct deletion_set_window *windows;
    struct match_budget *budget; /* NULL: none */
};

void deletion_set_set_budget(struct deletion_set *deleted, struct match_budget *budget)
{
    deleted->budget = budget;
}

enum err_code deletion_set_create(struct arena *arena, const struct catalogue_deletion *deletions,
                                  uint32_t count, const struct retention *retention,
                                  struct deletion_set **ret_deleted, struct err *err)
{
    struct deletion_set *deleted = arena_new(arena, struct deletion_set, 1);
    deleted->deletions = arena_new(arena, struct deletion, count);
    deleted->windows = arena_new(arena, struct deletion_set_window, (size_t)count + 1);
    deleted->count = count;
    deleted->retention = retention;
    for (uint32_t i = 0; i < count; i++) {
        struct deletion *one = &deleted->deletions[i];
        one->id = deletions[i].id;
        one->window = (struct deletion_set_window){deletions[i].begin_ns, deletions[i].end_ns};
        enum err_code code =
            selector_parse_stored(arena, span_text(deletions[i].selector), &one->selector, err);
        if (code)
            return err_add(err, "deletion %lld", (long long)one->id);
    }
    *ret_deleted = deleted;
    return ERR_NONE;
}

static int compare_ids(const void *id, const void *one)
{
    const int64_t x = *(const int64_t *)id, y = ((const struct deletion *)one)->id;
    return (x > y) - (x < y);
}

static int compare_windows(const void *a, const void *b)
{
    const struct deletion_set_window *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Sorts windows and joins those that overlap or touch. */
static uint32_t unite(struct deletion_set_window *windows, uint32_t count)
{
    uint32_t kept = 0;
    if (count)
        qsort(windows, count, sizeof(*windows), compare_windows);
    for (uint32_t i = 0; i < count; i++) {
        if (!kept || windows[kept - 1].end_ns < windows[i].start_ns)
            windows[kept++] = windows[i];
        else if (windows[kept - 1].end_ns < windows[i].end_ns)
            windows[kept - 1].end_ns = windows[i].end_ns;
    }
    return kept;
}

bool deletion_set_can_have(const struct deletion_set *deleted, const struct deletion_set_ids *ids,
                           int64_t begin_ns)
{
    return ids->count ||
           (deleted->retention && begin_ns < retention_latest_cutoff(deleted->retention));
}

/* Adds a window for expired profiles. */
static enum err_code find_expired(const struct deletion_set *deleted,
                                  const struct dictionary *dictionary, uint32_t series,
                                  uint32_t *count, int64_t *totals_before_ns, struct err *err)
{
    struct retention_times times;
    if (!deleted->retention)
        return ERR_NONE;
    enum err_code code = retention_find(deleted->retention, dictionary, series, &times, err);
    if (code)
        return code;
    *totals_before_ns = times.totals_before_ns;
    if (times.gone_before_ns > INT64_MIN)
        deleted->windows[(*count)++] =
            (struct deletion_set_window){INT64_MIN, times.gone_before_ns};
    return ERR_NONE;
}

/* Adds the windows of the deletions that match the series. */
static enum err_code find_windows(struct deletion_set *deleted, const struct deletion_set_ids *ids,
                                  const struct dictionary *dictionary, uint32_t series,
                                  uint32_t *ret_count, struct err *err)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ids->count; i++) {
        const struct deletion *one = deleted->count
                                         ? bsearch(&ids->ids[i], deleted->deletions, deleted->count,
                                                   sizeof(struct deletion), compare_ids)
                                         : NULL;
        bool matches = false;
        if (!one)
            return err_set(err, ERR_INTERNAL, "deletion %lld is not known", (long long)ids->ids[i]);
        enum err_code code = match_budget_check(deleted->budget, err);
        if (!code)
            code = selector_matches(one->selector, dictionary, series, &matches, err);
        if (code)
            return code;
        if (matches && count < deleted->count)
            deleted->windows[count++] = one->window;
    }
    *ret_count = count;
    return ERR_NONE;
}

enum err_code deletion_set_find(struct deletion_set *deleted, const struct deletion_set_ids *ids,
                                const struct dictionary *dictionary, uint32_t series,
                                struct deletion_set_windows *ret_windows, struct err *err)
{
    uint32_t count = 0;
    int64_t totals_before_ns = INT64_MIN;
    match_budget_begin(deleted->budget);
    enum err_code code = find_windows(deleted, ids, dictionary, series, &count, err);
    match_budget_end(deleted->budget);
    if (!code)
        code = find_expired(deleted, dictionary, series, &count, &totals_before_ns, err);
    if (code)
        return code;
    *ret_windows = (struct deletion_set_windows){.windows = deleted->windows,
                                                 .count = unite(deleted->windows, count),
                                                 .has_totals = totals_before_ns > INT64_MIN,
                                                 .totals_before_ns = totals_before_ns};
    return ERR_NONE;
}

bool deletion_set_has_only_totals(const struct deletion_set_windows *windows,
                                  const struct block_granule *granule)
{
    return granule->flags & BLOCK_ARE_TOTALS ||
           (windows->has_totals &&
            granule->hour < windows->totals_before_ns / CLOCK_NS_PER_S / 3600);
}

bool deletion_set_has_any(const struct deletion_set_windows *windows, int64_t first_ns,
                          int64_t last_ns)
{
    for (uint32_t i = 0; i < windows->count; i++) {
        if (windows->windows[i].start_ns <= last_ns && windows->windows[i].end_ns > first_ns)
            return true;
    }
    return false;
}

bool deletion_set_has_all(const struct deletion_set_windows *windows, int64_t first_ns,
                          int64_t last_ns)
{
    for (uint32_t i = 0; i < windows->count; i++) {
        if (windows->windows[i].start_ns <= first_ns && windows->windows[i].end_ns > last_ns)
            return true;
    }
    return false;
}
