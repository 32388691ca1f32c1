#include "store/query/profile_list.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "store/block/block_read.h"
#include "store/query/row_labels.h"
#include "store/query/scan.h"

#include <stdlib.h>

struct listing {
    const struct store_profile_query *query;
    struct scan *scan;
    const struct store_series *series;   /* of the scan */
    struct row_labels *labels;           /* which samples match, where series lack a label */
    struct store_profile_entry *entries; /* capacity for twice as many as are wanted */
    uint32_t count;
    uint32_t wanted; /* one more than the page, to know whether there is a next */
    bool is_full;    /* the first `wanted` are the newest so far */
    bool overflows;  /* the total of some profiles with equal times overflows */
    struct store_profile_list list;
};

/* Newest first; equal times by the hash of their series, the largest first. */
static int compare_ids(const struct store_profile_id *a, const struct store_profile_id *b)
{
    if (a->time_ns != b->time_ns)
        return a->time_ns > b->time_ns ? -1 : 1;
    return (a->series < b->series) - (a->series > b->series);
}

static int compare_entries(const void *a, const void *b)
{
    const struct store_profile_entry *x = a, *y = b;
    return compare_ids(&x->id, &y->id);
}

/* Profiles of a series with equal times are one entry. */
static void join_equal(struct listing *listing)
{
    struct store_profile_entry *entries = listing->entries;
    uint32_t kept = 0;
    for (uint32_t i = 1; i < listing->count; i++) {
        if (compare_ids(&entries[kept].id, &entries[i].id) != 0) {
            entries[++kept] = entries[i];
            continue;
        }
        listing->overflows |=
            __builtin_add_overflow(entries[kept].total, entries[i].total, &entries[kept].total);
        if (entries[i].duration_ns > entries[kept].duration_ns)
            entries[kept].duration_ns = entries[i].duration_ns;
    }
    listing->count = listing->count ? kept + 1 : 0;
}

/* Keeps the newest `wanted` entries. */
static void drop_oldest(struct listing *listing)
{
    if (listing->count)
        qsort(listing->entries, listing->count, sizeof(*listing->entries), compare_entries);
    join_equal(listing);
    listing->is_full = listing->count >= listing->wanted;
    if (listing->is_full)
        listing->count = listing->wanted;
}

/* True when older than all wanted entries. */
static bool is_too_old(const struct listing *listing, int64_t time_ns)
{
    return listing->is_full && time_ns < listing->entries[listing->wanted - 1].id.time_ns;
}

static void add_entry(struct listing *listing, uint32_t series, const struct block_profile *profile,
                      int64_t total)
{
    const struct store_profile_entry entry = {
        .id = {.time_ns = profile->time_ns, .series = listing->series[series].hash},
        .series = series,
        .duration_ns = profile->duration_ns,
        .total = total,
    };
    const struct store_profile_id *after = listing->query->after;
    if (after && compare_ids(&entry.id, after) <= 0)
        return;
    listing->entries[listing->count++] = entry;
    if (listing->count == 2 * listing->wanted)
        drop_oldest(listing);
}

static enum err_code read_profiles(struct listing *listing, struct scan_task *task)
{
    struct scan *scan = listing->scan;
    const struct block_profile *profiles;
    enum err_code code = scan_read_profiles(scan, task->block, task->granule, &profiles);
    for (uint32_t i = task->end; !code && i > task->first; i--) {
        if (is_too_old(listing, profiles[i - 1].time_ns))
            break;
        add_entry(listing, task->series, &profiles[i - 1], profiles[i - 1].total);
    }
    return scan_note_read(scan, task, 0, task->granule->extent_bytes[BLOCK_PROFILES], code);
}

static bool is_match(const struct listing *listing, uint32_t label_set)
{
    return row_labels_stays(row_labels_group(listing->labels, label_set));
}

/* Adds the profiles with a sample whose labels match, with the sum of such samples: the parts of a
 * profile that came in several uploads then add up to the same total as one upload. */
static enum err_code read_rows(struct listing *listing, struct scan_task *task)
{
    struct scan *scan = listing->scan;
    const uint32_t *bytes = task->granule->extent_bytes;
    struct block_rows rows;
    enum err_code code = scan_open_stacks(scan, task);
    if (code || task->is_broken)
        return code;
    row_labels_begin(listing->labels, task->block, task->granule); /* the block was opened again */
    code = scan_read_rows(scan, task, true, &rows);
    if (code)
        return scan_note_read(scan, task, 0, 0, code);
    /* A snapshot without rows matches as a row without labels. */
    enum found { NO_ROW, OTHER_ROWS, MATCH };
    const enum found of_none = is_match(listing, 0) ? MATCH : OTHER_ROWS;
    enum found *found = mem_new(enum found, rows.profile_count);
    int64_t *totals = mem_new(int64_t, rows.profile_count);
    for (uint32_t i = 0; i < rows.row_count; i++) {
        const uint32_t ordinal = rows.ordinals[i];
        const bool matches = is_match(listing, rows.label_sets[i]);
        if (found[ordinal] != MATCH)
            found[ordinal] = matches ? MATCH : OTHER_ROWS;
        totals[ordinal] += matches ? rows.values[i] : 0;
    }
    for (uint32_t i = task->end; i > task->first; i--) {
        if ((found[i - 1] ? found[i - 1] : of_none) == MATCH)
            add_entry(listing, task->series, &rows.profiles[i - 1], totals[i - 1]);
    }
    mem_free(found);
    mem_free(totals);
    return scan_note_read(scan, task, 0, bytes[BLOCK_ROWS] + bytes[BLOCK_DETAILS], code);
}

static enum err_code read_task(struct listing *listing, struct scan_task *task)
{
    row_labels_begin(listing->labels, task->block, task->granule);
    if (row_labels_wants_rows(listing->labels, task->granule))
        return read_rows(listing, task);
    return is_match(listing, 0) ? read_profiles(listing, task) : ERR_NONE;
}

static void make_list(struct listing *listing)
{
    const struct scan *scan = listing->scan;
    uint32_t type_count, series_count;
    const struct store_type *scanned_types = scan_types(scan, &type_count);
    const struct store_series *scanned_series = scan_series(scan, &series_count);
    struct store_type *types = arena_new(scan_arena(scan), struct store_type, type_count);
    struct store_series *series = arena_new(scan_arena(scan), struct store_series, series_count);
    for (uint32_t i = 0; i < type_count; i++)
        types[i] = scanned_types[i];
    for (uint32_t i = 0; i < series_count; i++)
        series[i] = scanned_series[i];
    const bool has_more = listing->count == listing->wanted;
    listing->list = (struct store_profile_list){
        .types = types,
        .series = series,
        .profiles = listing->entries,
        .profile_count = listing->count - has_more,
        .has_more = has_more,
        .statistics = *scan_statistics(scan),
    };
}

/* Newest first, until no older task can have a wanted profile. */
static enum err_code read_tasks(struct listing *listing)
{
    struct scan *scan = listing->scan;
    uint32_t count;
    scan_sort_newest_first(scan);
    struct scan_task *tasks = scan_tasks(scan, &count);
    for (uint32_t i = 0; i < count && !is_too_old(listing, tasks[i].granule->end_ns); i++) {
        enum err_code code = read_task(listing, &tasks[i]);
        if (code)
            return code;
        code = scan_check_limits(scan, 2 * listing->wanted * sizeof(*listing->entries) +
                                           row_labels_memory(listing->labels));
        if (code)
            return code;
    }
    return row_labels_check(listing->labels, scan_err(scan));
}

static enum err_code list_profiles(struct scan *scan, void *context)
{
    struct listing *listing = context;
    uint32_t series_count;
    listing->scan = scan;
    listing->series = scan_series(scan, &series_count);
    listing->labels = row_labels_create(scan_arena(scan), NULL, scan_row_selectors(scan), NULL, 0,
                                        ROW_LABELS_EXACT);
    listing->count = 0;
    listing->is_full = false;
    listing->entries =
        arena_new(scan_arena(scan), struct store_profile_entry, 2 * (size_t)listing->wanted);
    const enum err_code code = read_tasks(listing);
    row_labels_destroy(listing->labels);
    if (code)
        return code;
    drop_oldest(listing);
    if (listing->overflows)
        return err_set(scan_err(scan), ERR_TOO_LARGE,
                       "the totals of profiles of one series and time add up to more than 2^63");
    make_list(listing);
    return ERR_NONE;
}

enum err_code profile_list_make(const struct scan_source *source, struct arena *arena,
                                const struct store_profile_query *query,
                                struct store_profile_list *ret_list, struct err *err)
{
    struct listing listing = {.query = query, .wanted = query->max_profiles + 1};
    struct store_query listed_query = query->query;
    listed_query.wants_single_profiles = true;
    if (query->after && query->after->time_ns < listed_query.end_ns)
        listed_query.end_ns = query->after->time_ns + 1;
    enum err_code code =
        scan_run(source, &listed_query, SCAN_TASKS, arena, list_profiles, &listing, err);
    if (!code)
        *ret_list = listing.list;
    return code;
}
