#include "store/query/scan.h"

#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/parallel.h"
#include "lib/profile/report/label_filter.h"
#include "store/block/aggregation.h"
#include "store/block/oversized.h"
#include "store/block/selector.h"
#include "store/catalogue/catalogue.h"
#include "store/catalogue/deletion_set.h"
#include "store/catalogue/reachability.h"
#include "store/catalogue/retention.h"
#include "store/query/block_cache.h"
#include "store/query/cadence.h"
#include "store/query/neighbours.h"
#include "store/query/series_hash.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* TASKS_AHEAD: enough reads in flight for a disk that several queries share. */
enum { MEMORY_DEFAULT = 1 << 30, SERIES_TEXT_MAX = 1 << 30, CLOCK_EVERY = 64, TASKS_AHEAD = 256 };

struct scan_state {
    const struct scan_source *source;
    enum scan_kind kind;
    struct selector_set set;       /* none: every series matches */
    bool matches_known_labels;     /* match series without labels that samples may have */
    bool has_open_labels;          /* a series lacks a label that is compared */
    bool block_has_sample_labels;  /* samples of the current block may have a required label */
    bool needs_sample_labels;      /* a series lacks a required label that samples may have */
    bool needs_rerun;              /* the scan has to run again, with matches_known_labels */
    uint64_t bytes_read;           /* by the run that had to be repeated */
    struct flight_entry **entries; /* open blocks in use, by block index */
    struct flight_entry **stacks;  /* the same with their stacks; NULL: not opened */
    bool *stacks_failed;           /* they could not be opened with stacks */
    bool *are_dropped; /* oversized blocks left out (store/block/oversized.h); entries has NULL */
    size_t oversized_bytes;                /* memory of the oversized blocks that are in use */
    size_t largest_dropped;                /* strings of the largest block that was left out */
    const struct catalogue_place **places; /* places of these, and of the current block */
    struct deletion_set *deleted;
    struct map_bytes type_numbers; /* by whole name */
    struct map_bytes series_numbers;
    uint32_t type_capacity;
    uint32_t series_capacity;
    uint32_t task_capacity;
    size_t text_bytes;    /* of types and series, in the arena */
    size_t block_bytes;   /* of the blocks in use */
    struct buf text;      /* of the current series */
    size_t granted_bytes; /* share of the memory of all queries */
    size_t needed_bytes;  /* bytes that were not granted; 0: all were */
    uint32_t match_count; /* series compared with selectors */
    uint32_t ahead;       /* tasks whose reads were announced */
    bool is_last_try;     /* an object that is missing now was not swapped */
    bool is_reachable;    /* the object store is reachable: a failing object is damaged */
};

/* One readable object proves that the store is reachable, for the rest of the query. From then on a
 * failing object counts as damaged without another probe. */
static bool is_damaged_alone(struct scan *scan, const char *object_key)
{
    struct scan_state *state = scan->state;
    const struct reachability reachability = {.database = state->source->database,
                                              .tenant_id = scan->query->tenant_id,
                                              .objects = block_cache_objects(state->source->blocks),
                                              .wait_limit = &scan->query->wait_limit};
    if (scan->err->is_unreadable && !state->is_reachable)
        state->is_reachable = reachability_is_alone(&reachability, object_key, scan->err);
    return scan->err->is_unreadable && state->is_reachable;
}

/* Is it damage to this object, and not an outage? */
static bool is_broken(struct scan *scan, const char *object_key, enum err_code code)
{
    return code == ERR_CORRUPT || (code == ERR_IO && is_damaged_alone(scan, object_key));
}

static void report_damage(const struct scan *scan, const char *object_key)
{
    const struct scan_source *source = scan->state->source;
    const struct store_damage damage = {.tenant_id = scan->query->tenant_id,
                                        .object_key = object_key,
                                        .code = scan->err->code,
                                        .message = scan->err->message};
    if (source->damaged)
        source->damaged(source->damaged_context, &damage);
}

/* Leaves out what is damaged and counts it; any other failure is the query's. */
static enum err_code skip_broken(struct scan *scan, const char *object_key, enum err_code code)
{
    if (!is_broken(scan, object_key, code))
        return code;
    report_damage(scan, object_key);
    if (scan->statistics.broken_count++ == 0)
        scan->statistics.broken_message = arena_strdup(scan->arena, scan->err->message);
    return ERR_NONE;
}

static void *grow_array(void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity ? *capacity * 2 : 64;
    return mem_resize(array, *capacity, size);
}

static size_t max_memory(const struct store_query *query)
{
    return query->max_memory ? query->max_memory : MEMORY_DEFAULT;
}

/* ---- which series ---- */

static struct span keep_text(struct scan *scan, struct span text)
{
    scan->state->text_bytes += text.size + 1;
    return span_of(arena_strndup(scan->arena, text.data, text.size), text.size);
}

static struct span string_of(const struct dictionary *dictionary, uint32_t string)
{
    return dictionary->tables->strings[string];
}

static uint32_t number_type(struct scan *scan, const struct dictionary *dictionary, uint32_t index,
                            struct span name)
{
    struct scan_state *state = scan->state;
    const struct batch_type *type = &dictionary->series[index].type;
    const uint32_t known = map_bytes_find(&state->type_numbers, name);
    if (known != MAP_ABSENT)
        return known;
    name = keep_text(scan, name);
    scan->types =
        grow_array(scan->types, scan->type_count, &state->type_capacity, sizeof(*scan->types));
    const uint32_t strings[STORE_TYPE_PARTS] = {type->name, type->sample_type.type,
                                                type->sample_type.unit, type->period_type.type,
                                                type->period_type.unit};
    struct store_type *made = &scan->types[scan->type_count];
    *made = (struct store_type){.name = (const char *)name.data,
                                .is_delta = type->is_delta,
                                .aggregation = aggregation_of_type(dictionary, index)};
    for (size_t i = 0; i < STORE_TYPE_PARTS; i++)
        made->parts[i] = keep_text(scan, string_of(dictionary, strings[i]));
    return map_bytes_add(&state->type_numbers, name, scan->type_count++);
}

static struct span take_sized(const uint8_t **at)
{
    uint32_t size;
    memcpy(&size, *at, sizeof(size));
    const struct span text = span_of(*at + sizeof(size), size);
    *at += sizeof(size) + size;
    return text;
}

/* find_match has checked that the type and labels fit into the buffer. */
static uint32_t number_series(struct scan *scan, const struct dictionary *dictionary,
                              uint32_t index)
{
    struct scan_state *state = scan->state;
    buf_clear(&state->text);
    const size_t type_size = series_hash_append_text(dictionary, index, &state->text);
    assert(!buf_failed(&state->text));
    const uint32_t known = map_bytes_find(&state->series_numbers, buf_span(&state->text));
    if (known != MAP_ABSENT)
        return known;
    const struct span text = keep_text(scan, buf_span(&state->text));
    const uint32_t label_count = dictionary->series[index].label_count;
    struct store_label *labels = arena_new(scan->arena, struct store_label, label_count);
    const uint8_t *at = text.data + type_size + 1;
    for (uint32_t i = 0; i < label_count; i++) {
        labels[i].name = take_sized(&at);
        labels[i].value = take_sized(&at);
    }
    state->text_bytes += label_count * sizeof(*labels);
    scan->series = grow_array(scan->series, scan->series_count, &state->series_capacity,
                              sizeof(*scan->series));
    scan->series[scan->series_count] = (struct store_series){
        .labels = labels,
        .label_count = label_count,
        .type = number_type(scan, dictionary, index, span_of(text.data, type_size)),
        .hash = series_hash_of(text),
    };
    scan->statistics.series_count++;
    return map_bytes_add(&state->series_numbers, text, scan->series_count++);
}

static enum err_code fail_limit(const struct scan *scan, const char *what, const char *limit)
{
    return err_set(scan->err, ERR_LIMIT, "this query %s: select fewer series or less time%s%s%s",
                   what, limit ? " (" : "", limit ? limit : "", limit ? ")" : "");
}

/* Names the series of the largest block if that takes a good part of the memory. */
static enum err_code fail_memory(const struct scan *scan, size_t max_bytes)
{
    enum { PART_WORTH_NAMING = 8 };
    const struct scan_state *state = scan->state;
    const struct block *largest = NULL;
    for (uint32_t i = 0; i < scan->block_count; i++) {
        struct flight_entry *entry = state->stacks[i] ? state->stacks[i] : state->entries[i];
        const struct block *block = entry ? block_cache_get(entry) : NULL;
        if (block && (!largest || block_memory(block) > block_memory(largest)))
            largest = block;
    }
    const char *what = "needs more memory than it may";
    if (largest && block_memory(largest) > max_bytes / PART_WORTH_NAMING)
        what = arena_printf(scan->arena, "%s, of which one block takes %s", what,
                            oversized_describe(scan->arena, largest, block_memory(largest)));
    return fail_limit(scan, what, scan->query->texts.memory);
}

static enum err_code check_cpu(const struct scan *scan)
{
    const struct store_query *query = scan->query;
    if (query->cpu_deadline_ns && parallel_cpu_ns() > query->cpu_deadline_ns)
        return fail_limit(scan, "takes more CPU time than it may", query->texts.cpu);
    return ERR_NONE;
}

/* For a series that no selector matches: would labels of its samples be enough? */
static enum err_code note_samples(struct scan *scan, const struct dictionary *dictionary,
                                  uint32_t series)
{
    struct scan_state *state = scan->state;
    enum err_code code = ERR_NONE;
    if (state->matches_known_labels || !state->block_has_sample_labels)
        return code;
    for (size_t i = 0; !state->needs_sample_labels && !code && i < state->set.count; i++)
        code = selector_matches_known(state->set.selectors[i], dictionary, series,
                                      &state->needs_sample_labels, scan->err);
    return code;
}

static enum err_code find_match(struct scan *scan, const struct dictionary *dictionary,
                                uint32_t series, bool *ret_matches)
{
    struct scan_state *state = scan->state;
    const struct selector_set *set = &state->set;
    /* An expression may be slow, and a block may contain many series. */
    enum err_code code = state->match_count++ % CLOCK_EVERY ? ERR_NONE : check_cpu(scan);
    *ret_matches = set->count == 0;
    for (size_t i = 0; !*ret_matches && !code && i < set->count; i++) {
        code = (state->matches_known_labels ? selector_matches_known : selector_matches)(
            set->selectors[i], dictionary, series, ret_matches, scan->err);
        state->has_open_labels |=
            *ret_matches && selector_has_open_labels(set->selectors[i], dictionary, series);
    }
    if (code || !*ret_matches)
        return code ? code : note_samples(scan, dictionary, series);
    buf_clear(&state->text);
    series_hash_append_text(dictionary, series, &state->text);
    if (buf_failed(&state->text))
        return err_set(scan->err, ERR_TOO_LARGE,
                       "the type and labels of a stored series are longer than %d bytes",
                       SERIES_TEXT_MAX);
    if (!scan->query->profile)
        return ERR_NONE;
    *ret_matches = series_hash_of(buf_span(&state->text)) == scan->query->profile->series;
    return ERR_NONE;
}

/* ---- which granules ---- */

static void note_time(struct scan *scan, int64_t first_ns, int64_t last_ns)
{
    scan->first_ns = first_ns < scan->first_ns ? first_ns : scan->first_ns;
    scan->last_ns = last_ns > scan->last_ns ? last_ns : scan->last_ns;
}

/* The first ordinal whose profile begins at `moment` or later. */
static uint32_t find_ordinal(const struct block_profile *profiles, uint32_t count, int64_t moment)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (profiles[middle].time_ns < moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* State of the current series. Granules are in order of series, so a series is matched and numbered
 * once. */
struct series_state {
    uint32_t index; /* in the block */
    uint32_t number;
    bool matches;
    bool has_number;
    enum store_aggregation aggregation;
    /* profiles that begin earlier are out of reach: start_ns less the query's reach */
    int64_t from_ns;
    int64_t until_ns; /* so are those that begin then or later: end_ns plus the query's ahead_ns */
    struct deletion_set_windows deleted;
};

static int64_t end_of(const struct block_profile *profile)
{
    int64_t end_ns;
    return __builtin_add_overflow(profile->time_ns, profile->duration_ns, &end_ns) ? INT64_MAX
                                                                                   : end_ns;
}

/* A delta with a duration needs no neighbours: only where the end of a profile depends on the next
 * one do these matter. */
static bool counts_as_neighbour(const struct block_profile *profile,
                                enum store_aggregation aggregation)
{
    return aggregation != STORE_SUM || profile->duration_ns <= 0;
}

uint32_t scan_find_before(const struct block_profile *profiles, uint32_t end,
                          enum store_aggregation aggregation)
{
    uint32_t first = end;
    int found = 0;
    for (uint32_t i = end; i; i--) {
        const bool is_new = first == end || profiles[i - 1].time_ns != profiles[first].time_ns;
        if (!counts_as_neighbour(&profiles[i - 1], aggregation))
            continue;
        if (is_new && found++ == CADENCE_NEIGHBOURS)
            break;
        first = i - 1;
    }
    return first;
}

uint32_t scan_find_after(const struct block_profile *profiles, uint32_t first, uint32_t count,
                         enum store_aggregation aggregation)
{
    uint32_t end = first;
    int found = 0;
    for (uint32_t i = first; i < count; i++) {
        const bool is_new = end == first || profiles[i].time_ns != profiles[end - 1].time_ns;
        if (!counts_as_neighbour(&profiles[i], aggregation))
            continue;
        if (is_new && found++ == CADENCE_NEIGHBOURS)
            break;
        end = i + 1;
    }
    return end;
}

static int64_t reach_back(const struct store_query *query)
{
    int64_t from_ns;
    return __builtin_sub_overflow(query->start_ns, query->reach_ns, &from_ns) ? INT64_MIN : from_ns;
}

/* The earliest begin of deltas that reach into the window and whose granules state so. What lies in
 * between is not read. */
static int64_t far_back(const struct store_query *query)
{
    int64_t from_ns;
    if (!query->reach_ns || query->reach_ns > NEIGHBOURS_REACH_MAX_NS)
        return reach_back(query);
    return __builtin_sub_overflow(query->start_ns, NEIGHBOURS_REACH_MAX_NS, &from_ns) ? INT64_MIN
                                                                                      : from_ns;
}

/* Does the granule state that one of its profiles ends in the window or later? */
static bool is_reaching(const struct store_query *query, const struct block_granule *granule)
{
    return query->reach_ns && granule->flags & BLOCK_HAS_REACH &&
           granule->reach_ns > query->start_ns && granule->end_ns >= far_back(query);
}

/* The profiles of a granule that a query needs. */
struct found_profiles {
    uint32_t first;
    uint32_t end;
    uint32_t own_first; /* those that begin in the window or extend into it */
    uint32_t own_end;
};

/* Extends the range by neighbours, at most those within the reach. */
static void add_neighbours(const struct series_state *series, const struct block_profile *profiles,
                           uint32_t count, uint32_t start, struct found_profiles *found)
{
    const uint32_t earliest = find_ordinal(profiles, count, series->from_ns);
    const uint32_t latest = find_ordinal(profiles, count, series->until_ns);
    const uint32_t first = scan_find_before(profiles, start, series->aggregation);
    const uint32_t end = scan_find_after(profiles, found->own_end, count, series->aggregation);
    found->first = first > earliest ? first : earliest;
    found->first = found->own_first < found->first ? found->own_first : found->first;
    found->end = end < latest ? end : latest;
}

static struct found_profiles find_range(const struct scan *scan, const struct series_state *series,
                                        const struct block_granule *granule,
                                        const struct block_profile *profiles)
{
    const struct store_query *query = scan->query;
    const uint32_t count = granule->profile_count;
    const uint32_t start = find_ordinal(profiles, count, query->start_ns);
    const int64_t from_ns = is_reaching(query, granule) ? far_back(query) : series->from_ns;
    uint32_t first =
        series->aggregation == STORE_SUM ? find_ordinal(profiles, count, from_ns) : start;
    while (first < start && end_of(&profiles[first]) <= query->start_ns)
        first++;
    struct found_profiles found = {.own_first = first,
                                   .own_end = find_ordinal(profiles, count, query->end_ns)};
    found.first = found.own_first;
    found.end = found.own_end;
    if (query->ahead_ns)
        add_neighbours(series, profiles, count, start, &found);
    return found;
}

/* Values over time read the profiles of granules that the window cuts: so they are not read twice.
 */
static void keep_profiles(struct scan *scan, struct scan_task *task,
                          const struct block_profile *profiles)
{
    const uint32_t count = task->end - task->first;
    if (!scan->query->reach_ns || scan->state->kind != SCAN_TASKS)
        return;
    struct block_profile *kept = arena_new_raw(scan->arena, struct block_profile, count);
    memcpy(kept, profiles + task->first, count * sizeof(*kept));
    scan->state->text_bytes += count * sizeof(*kept);
    task->profiles = kept;
}

/* Sets the task to the found profiles with first <= ordinal < end. */
static void set_task_range(struct scan *scan, const struct found_profiles *found, uint32_t first,
                           uint32_t end, struct scan_task *task,
                           const struct block_profile *profiles)
{
    const uint32_t own_first = first > found->own_first ? first : found->own_first;
    const uint32_t own_end = end < found->own_end ? end : found->own_end;
    const uint32_t own_count = own_first < own_end ? own_end - own_first : 0;
    task->first = first;
    task->end = end;
    task->outside_count = end - first - own_count;
    if (own_count)
        note_time(scan, profiles[own_first].time_ns, profiles[own_end - 1].time_ns);
    if (first < end)
        keep_profiles(scan, task, profiles);
}

/* True when nothing of the granule is in the window. A granule of deltas that begins before the
 * window may extend into it, and is read. */
static bool is_neighbour(const struct scan *scan, const struct series_state *series,
                         const struct block_granule *granule)
{
    const struct store_query *query = scan->query;
    if (!query->ahead_ns)
        return false;
    if (granule->begin_ns >= query->end_ns)
        return true;
    return granule->end_ns < query->start_ns &&
           (series->aggregation != STORE_SUM ||
            (granule->flags & BLOCK_HAS_REACH && granule->reach_ns <= query->start_ns));
}

/* Finds the task's profiles; none: first == end. The list of profiles is read only if the window
 * cuts the granule. */
static enum err_code find_profiles(struct scan *scan, const struct series_state *series,
                                   struct scan_task *task)
{
    const struct store_query *query = scan->query;
    const struct block_granule *granule = task->granule;
    const char *object_key = scan->state->places[task->block_index]->object_key;
    task->first = task->end = task->outside_count = 0;
    task->profiles = NULL;
    task->is_neighbour = is_neighbour(scan, series, granule);
    if (task->is_neighbour) {
        task->end = granule->profile_count;
        return ERR_NONE;
    }
    if (granule->begin_ns >= query->start_ns && granule->end_ns < query->end_ns) {
        note_time(scan, granule->begin_ns, granule->end_ns);
        task->end = granule->profile_count;
        return ERR_NONE;
    }
    const struct block_profile *profiles;
    enum err_code code =
        block_read_profiles(task->block, granule, scan->cursor, &profiles, scan->err);
    if (code)
        return skip_broken(scan, object_key, code);
    const struct found_profiles found = find_range(scan, series, granule, profiles);
    set_task_range(scan, &found, found.first, found.end, task, profiles);
    return ERR_NONE;
}

static void add_task(struct scan *scan, struct series_state *series, struct scan_task *task)
{
    if (!series->has_number)
        series->number = number_series(scan, block_dictionary(task->block), series->index);
    series->has_number = true;
    task->series = series->number;
    scan->statistics.profile_count += scan_profile_count(task);
    if (scan->state->kind == SCAN_SERIES)
        return;
    scan->statistics.totals_count += task->are_totals;
    scan->tasks = grow_array(scan->tasks, scan->task_count, &scan->state->task_capacity,
                             sizeof(*scan->tasks));
    scan->tasks[scan->task_count++] = *task;
}

static bool has_label(const struct store_series *series, struct span name)
{
    for (uint32_t i = 0; i < series->label_count; i++) {
        if (span_equal(series->labels[i].name, name))
            return true;
    }
    return false;
}

static bool has_labels(const struct store_series *series, const struct span *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!has_label(series, names[i]))
            return false;
    }
    return true;
}

/* Series that match by labels of samples lack one that the only selector requires. */
static bool has_required(const struct scan *scan, const struct store_series *series)
{
    struct span names[SELECTOR_MAX_MATCHERS];
    const struct scan_state *state = scan->state;
    if (!state->matches_known_labels || state->set.count != 1)
        return true;
    return has_labels(series, names, selector_required_labels(state->set.selectors[0], names));
}

void scan_count_unlabelled(struct scan *scan, const struct span *names, size_t name_count)
{
    const struct store_query *query = scan->query;
    struct span keys[LABEL_RULES_MAX];
    const size_t key_count = query->label_filter ? label_filter_keys(query->label_filter, keys) : 0;
    scan->statistics.unlabelled_count = 0;
    for (uint32_t i = 0; i < scan->task_count && scan->statistics.totals_count; i++) {
        const struct scan_task *task = &scan->tasks[i];
        const struct store_series *series = &scan->series[task->series];
        const bool is_complete = !query->wants_all_labels && has_labels(series, keys, key_count) &&
                                 has_labels(series, names, name_count) &&
                                 has_required(scan, series);
        scan->statistics.unlabelled_count += task->are_totals && !is_complete;
    }
}

/* Adds a task for each run of profiles in the window between deleted ranges. */
static void add_runs(struct scan *scan, struct series_state *series, struct scan_task *task,
                     const struct block_profile *profiles)
{
    const uint32_t count = task->granule->profile_count;
    const struct found_profiles found = find_range(scan, series, task->granule, profiles);
    uint32_t at = found.first;
    task->is_neighbour = false;
    for (uint32_t i = 0; at < found.end; i++) {
        const bool is_last = i == series->deleted.count;
        const struct deletion_set_window *window = &series->deleted.windows[i];
        uint32_t stop = is_last ? found.end : find_ordinal(profiles, count, window->start_ns);
        stop = stop < found.end ? stop : found.end;
        if (at < stop) {
            set_task_range(scan, &found, at, stop, task, profiles);
            add_task(scan, series, task);
        }
        const uint32_t next = is_last ? found.end : find_ordinal(profiles, count, window->end_ns);
        at = next > at ? next : at;
    }
}

/* For a granule of which some profiles may be deleted. */
static enum err_code add_undeleted(struct scan *scan, struct series_state *series,
                                   struct scan_task *task)
{
    const struct block_granule *granule = task->granule;
    const struct block_profile *profiles;
    if (deletion_set_has_all(&series->deleted, granule->begin_ns, granule->end_ns))
        return ERR_NONE;
    enum err_code code =
        block_read_profiles(task->block, granule, scan->cursor, &profiles, scan->err);
    if (code)
        return skip_broken(scan, scan->state->places[task->block_index]->object_key, code);
    add_runs(scan, series, task, profiles);
    return ERR_NONE;
}

/* An hour with totals only is in a result as a whole or not at all, however many blocks have a part
 * of it. The hour is whole if the window contains its full 60 minutes; whether it has any data in
 * the window is decided by the granule's first and last profile. */
static enum err_code add_totals_task(struct scan *scan, struct series_state *series,
                                     struct scan_task *task)
{
    const struct store_query *query = scan->query;
    const struct block_granule *granule = task->granule;
    int64_t first_ns, last_ns;
    scan_find_hour(granule, &first_ns, &last_ns);
    if (granule->end_ns < query->start_ns || granule->begin_ns >= query->end_ns)
        return ERR_NONE; /* the part in the window is unknown */
    const bool is_whole = first_ns >= query->start_ns && last_ns < query->end_ns;
    const bool is_cut = deletion_set_has_any(&series->deleted, granule->begin_ns, granule->end_ns);
    if (is_cut && (granule->flags & BLOCK_ARE_TOTALS ||
                   deletion_set_has_all(&series->deleted, granule->begin_ns, granule->end_ns)))
        return ERR_NONE;
    if (scan->state->kind == SCAN_TASKS &&
        (!is_whole || query->wants_single_profiles || query->profile)) {
        scan->statistics.cut_count++;
        return ERR_NONE;
    }
    if (is_cut)
        return add_undeleted(scan, series, task);
    note_time(scan, granule->begin_ns, granule->end_ns);
    task->first = task->outside_count = 0;
    task->end = granule->profile_count;
    task->is_neighbour = false;
    task->profiles = NULL;
    add_task(scan, series, task);
    return ERR_NONE;
}

static int64_t reach_ahead(const struct store_query *query)
{
    int64_t until_ns;
    return __builtin_add_overflow(query->end_ns, query->ahead_ns, &until_ns) ? INT64_MAX : until_ns;
}

/* True when the granule is beyond the reach, or ends before the window by its reach_ns. A neighbour
 * may be a delta without a duration; a gapless granule has none. */
static bool is_outside(const struct scan *scan, const struct series_state *series,
                       const struct block_granule *granule)
{
    const struct store_query *query = scan->query;
    const bool is_far = series->aggregation == STORE_SUM && is_reaching(query, granule);
    if ((granule->end_ns < series->from_ns && !is_far) || granule->begin_ns >= series->until_ns)
        return true;
    if (series->aggregation != STORE_SUM ||
        (query->ahead_ns && !(granule->flags & BLOCK_IS_GAPLESS)))
        return false;
    return granule->begin_ns >= query->end_ns ||
           (granule->end_ns < query->start_ns && granule->flags & BLOCK_HAS_REACH &&
            granule->reach_ns <= query->start_ns);
}

static bool has_open_ends_before(const struct scan *scan, const struct series_state *series,
                                 const struct block_granule *granule)
{
    const struct store_query *query = scan->query;
    return series->aggregation == STORE_SUM && !query->ahead_ns &&
           granule->flags & BLOCK_HAS_OPEN_ENDS && granule->begin_ns < query->start_ns &&
           granule->end_ns >= series->from_ns;
}

static enum err_code begin_series(struct scan *scan, const struct deletion_set_ids *deletions,
                                  const struct scan_task *task, struct series_state *series)
{
    const struct dictionary *dictionary = block_dictionary(task->block);
    const struct store_query *query = scan->query;
    *series =
        (struct series_state){.index = task->granule->series,
                              .aggregation = aggregation_of_type(dictionary, task->granule->series),
                              .from_ns = query->start_ns,
                              .until_ns = reach_ahead(query)};
    enum err_code code = find_match(scan, dictionary, series->index, &series->matches);
    if (series->aggregation == STORE_SUM || query->ahead_ns)
        series->from_ns = reach_back(query);
    if (code || !series->matches ||
        !deletion_set_can_have(scan->state->deleted, deletions, task->granule->begin_ns))
        return code;
    return deletion_set_find(scan->state->deleted, deletions, dictionary, series->index,
                             &series->deleted, scan->err);
}

static enum err_code scan_granule(struct scan *scan, const struct deletion_set_ids *deletions,
                                  struct series_state *series, struct scan_task *task)
{
    const struct block_granule *granule = task->granule;
    enum err_code code = ERR_NONE;
    if (granule->series != series->index)
        code = begin_series(scan, deletions, task, series);
    if (code || !series->matches || (scan->state->kind == SCAN_SERIES && series->has_number))
        return code;
    scan->has_open_ends_before |= has_open_ends_before(scan, series, granule);
    if (is_outside(scan, series, granule))
        return code;
    task->are_totals = deletion_set_has_only_totals(&series->deleted, granule);
    if (task->are_totals)
        return add_totals_task(scan, series, task);
    if (deletion_set_has_any(&series->deleted, granule->begin_ns, granule->end_ns))
        return add_undeleted(scan, series, task);
    code = find_profiles(scan, series, task);
    if (!code && task->first < task->end)
        add_task(scan, series, task);
    return code;
}

static void note_sample_labels(struct scan *scan, const struct dictionary *dictionary)
{
    struct scan_state *state = scan->state;
    state->block_has_sample_labels = false;
    for (size_t i = 0; !state->block_has_sample_labels && i < state->set.count; i++)
        state->block_has_sample_labels =
            selector_may_match_samples(state->set.selectors[i], dictionary, true);
    scan->may_be_of_samples |= state->block_has_sample_labels && state->kind == SCAN_SERIES;
}

static enum err_code scan_block(struct scan *scan, const struct block *block,
                                const struct deletion_set_ids *deletions)
{
    const struct store_query *query = scan->query;
    struct series_state series = {.index = UINT32_MAX};
    struct scan_task task = {.block = block, .block_index = scan->block_count};
    uint32_t count;
    enum err_code code = ERR_NONE;
    const struct block_granule *granules = block_granules(block, &count);
    const int64_t from_ns = reach_back(query), until_ns = reach_ahead(query);
    note_sample_labels(scan, block_dictionary(block));
    for (uint32_t i = 0; i < count && !code; i++) {
        task.granule = &granules[i];
        const bool is_near = granules[i].end_ns >= from_ns || is_reaching(query, &granules[i]);
        if (is_near && granules[i].begin_ns < until_ns)
            code = scan_granule(scan, deletions, &series, &task);
    }
    return code ? code : scan_check_limits(scan, 0);
}

static void record_oversized(struct scan *scan, uint32_t index)
{
    struct scan_state *state = scan->state;
    struct store_statistics *statistics = &scan->statistics;
    const struct block *block = block_cache_get(state->entries[index]);
    const size_t string_bytes = block_dictionary(block)->string_bytes;
    if (string_bytes > state->largest_dropped) {
        state->largest_dropped = string_bytes;
        statistics->oversized_message = oversized_describe(scan->arena, block, string_bytes);
    }
    statistics->oversized_count++;
    statistics->block_count--;
}

/* Charges memory for an oversized block; false when such blocks have used up their share. */
static bool charge_oversized(struct scan *scan, size_t bytes)
{
    const size_t most = max_memory(scan->query) / OVERSIZED_QUERY_PART;
    size_t *taken = &scan->state->oversized_bytes;
    if (*taken + bytes > most)
        return false;
    *taken += bytes;
    return true;
}

/* An oversized block that does not fit is not opened with its stacks. */
static bool skips_stacks(struct scan *scan, uint32_t index)
{
    const struct block *block = block_cache_get(scan->state->entries[index]);
    if (!oversized_in_query(block) || charge_oversized(scan, block_dictionary(block)->string_bytes))
        return false;
    scan->state->stacks_failed[index] = true;
    record_oversized(scan, index);
    return true;
}

/* Stores an outcome. A block that cannot be opened is reported once. */
static enum err_code accept_stacks(struct scan *scan, uint32_t index,
                                   const struct block_cache_outcome *outcome)
{
    struct scan_state *state = scan->state;
    const enum err_code code = outcome->code;
    if (code)
        *scan->err = outcome->err;
    if (code == ERR_CANCELLED)
        return scan_explain_wait(scan, code);
    if (code) {
        state->stacks_failed[index] = true;
        scan->statistics.block_count--;
        return skip_broken(scan, state->places[index]->object_key,
                           code == ERR_NOT_FOUND && state->is_last_try ? ERR_CORRUPT : code);
    }
    state->stacks[index] = outcome->entry;
    state->block_bytes += block_memory(block_cache_get(outcome->entry));
    scan->statistics.bytes_read += block_opening_bytes(block_cache_get(outcome->entry));
    return scan_check_limits(scan, 0);
}

/* Opens the stacks of the blocks with these indexes, PARALLEL_MAX_THREADS at most. */
static enum err_code open_stacks(struct scan *scan, const uint32_t *indexes, size_t count,
                                 enum block_cache_part part)
{
    struct scan_state *state = scan->state;
    const struct catalogue_place *places[PARALLEL_MAX_THREADS] = {0};
    struct block_cache_outcome outcomes[PARALLEL_MAX_THREADS];
    for (size_t i = 0; i < count; i++)
        places[i] = state->places[indexes[i]];
    block_cache_ref_several(state->source->blocks, scan->query->tenant_id, places, count, part,
                            &scan->query->wait_limit, outcomes);
    enum err_code code = ERR_NONE;
    for (size_t i = 0; i < count; i++) {
        if (!code)
            code = accept_stacks(scan, indexes[i], &outcomes[i]);
        else if (!outcomes[i].code)
            flight_cache_unref(outcomes[i].entry);
    }
    return code;
}

/* Finds the next blocks, from task `at` on, that are not open with their stacks. */
static size_t find_unopened(struct scan *scan, uint32_t at, uint32_t *indexes, size_t most)
{
    const struct scan_state *state = scan->state;
    size_t count = 0;
    for (; at < scan->task_count && count < most; at++) {
        const uint32_t index = scan->tasks[at].block_index;
        if (scan->tasks[at].is_neighbour)
            continue;
        const bool is_known = count && indexes[count - 1] == index; /* tasks are ordered by block */
        if (!is_known && !state->stacks[index] && !state->stacks_failed[index] &&
            !skips_stacks(scan, index))
            indexes[count++] = index;
    }
    return count;
}

enum err_code scan_open_stacks(struct scan *scan, struct scan_task *task)
{
    struct scan_state *state = scan->state;
    const uint32_t index = task->block_index;
    enum err_code code = ERR_NONE;
    if (!state->stacks[index] && !state->stacks_failed[index] && !skips_stacks(scan, index))
        code = open_stacks(scan, &index, 1, BLOCK_CACHE_STACKS);
    if (code)
        return code;
    if (state->stacks[index]) {
        uint32_t count;
        const ptrdiff_t number = task->granule - block_granules(task->block, &count);
        task->block = block_cache_get(state->stacks[index]);
        task->granule = block_granules(task->block, &count) + number;
        return ERR_NONE;
    }
    task->is_broken = true;
    scan->statistics.profile_count -= scan_profile_count(task);
    scan->statistics.totals_count -= task->are_totals;
    return ERR_NONE;
}

/* Opens the task's block and the next ones, as many as there are threads: their memory is known
 * only when they are open, and may be too much. */
static enum err_code open_stacks_from(struct scan *scan, uint32_t at, enum block_cache_part part)
{
    const uint32_t index = scan->tasks[at].block_index;
    uint32_t indexes[PARALLEL_MAX_THREADS];
    if (scan->state->stacks[index] || scan->state->stacks_failed[index])
        return ERR_NONE;
    const size_t count = find_unopened(scan, at, indexes, parallel_size());
    return count ? open_stacks(scan, indexes, count, part) : ERR_NONE;
}

enum err_code scan_open_all_stacks(struct scan *scan, bool wants_hashes)
{
    uint32_t kept = 0;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < scan->task_count && !code; i++) {
        struct scan_task *task = &scan->tasks[i];
        if (task->is_neighbour) { /* few of them are needed */
            scan->tasks[kept++] = *task;
            continue;
        }
        if (i == 0 || task[-1].is_neighbour || task->block_index != task[-1].block_index)
            code =
                open_stacks_from(scan, i, wants_hashes ? BLOCK_CACHE_HASHES : BLOCK_CACHE_STACKS);
        if (!code)
            code = scan_open_stacks(scan, task);
        if (!task->is_broken)
            scan->tasks[kept++] = *task;
    }
    scan->task_count = kept;
    return code;
}

/* ---- blocks that are left out ---- */

static void drop_block(struct scan *scan, uint32_t index)
{
    struct scan_state *state = scan->state;
    state->block_bytes -= block_memory(block_cache_get(state->entries[index]));
    state->are_dropped[index] = true;
    record_oversized(scan, index);
    flight_cache_unref(state->entries[index]);
    state->entries[index] = NULL;
}

static void remove_dropped_tasks(struct scan *scan)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < scan->task_count && scan->statistics.oversized_count; i++) {
        const struct scan_task *task = &scan->tasks[i];
        if (!scan->state->are_dropped[task->block_index]) {
            scan->tasks[kept++] = *task;
            continue;
        }
        scan->statistics.profile_count -= scan_profile_count(task);
        scan->statistics.totals_count -= task->are_totals;
    }
    if (scan->statistics.oversized_count)
        scan->task_count = kept;
}

static enum err_code scan_place(struct scan *scan, const struct catalogue_place *place,
                                const struct block_cache_outcome *outcome)
{
    struct scan_state *state = scan->state;
    const uint32_t index = scan->block_count;
    struct flight_entry *entry = outcome->entry;
    enum err_code code = outcome->code;
    if (code)
        *scan->err = outcome->err;
    if (code == ERR_CANCELLED)
        return scan_explain_wait(scan, code);
    if (code)
        return skip_broken(scan, place->object_key,
                           code == ERR_NOT_FOUND && state->is_last_try ? ERR_CORRUPT : code);
    state->places[index] = place;
    scan->statistics.bytes_read += block_opening_bytes(block_cache_get(entry));
    const uint64_t profiles_before = scan->statistics.profile_count;
    const uint32_t tasks_before = scan->task_count;
    code = scan_block(scan, block_cache_get(entry), &place->deletions);
    const bool is_used =
        scan->statistics.profile_count > profiles_before || scan->task_count > tasks_before;
    scan->statistics.block_count += is_used;
    if (!is_used || state->kind != SCAN_TASKS) {
        flight_cache_unref(entry);
        return code;
    }
    state->entries[scan->block_count++] = entry;
    state->block_bytes += block_memory(block_cache_get(entry));
    if (oversized_in_query(block_cache_get(entry)) &&
        !charge_oversized(scan, block_memory(block_cache_get(entry))))
        drop_block(scan, index);
    return code ? code : scan_check_limits(scan, 0);
}

/* Scans up to PARALLEL_MAX_THREADS blocks, which are opened in parallel. */
static enum err_code scan_batch(struct scan *scan, const struct catalogue_place *places,
                                size_t count)
{
    struct scan_state *state = scan->state;
    const struct catalogue_place *wanted[PARALLEL_MAX_THREADS] = {0};
    struct block_cache_outcome outcomes[PARALLEL_MAX_THREADS];
    enum err_code code = scan_check_limits(scan, 0);
    if (code)
        return code;
    for (size_t i = 0; i < count; i++)
        wanted[i] = &places[i];
    block_cache_ref_several(state->source->blocks, scan->query->tenant_id, wanted, count,
                            BLOCK_CACHE_SERIES, &scan->query->wait_limit, outcomes);
    for (size_t i = 0; i < count; i++) {
        if (!code)
            code = scan_place(scan, wanted[i], &outcomes[i]);
        else if (!outcomes[i].code)
            flight_cache_unref(outcomes[i].entry);
    }
    return code;
}

static enum err_code scan_places(struct scan *scan)
{
    const struct store_query *query = scan->query;
    struct catalogue_found found;
    struct retention *retention = NULL;
    const struct scan_source *source = scan->state->source;
    const struct catalogue_window window = {.start_ns = reach_back(query),
                                            .end_ns = reach_ahead(query),
                                            .far_ns = far_back(query),
                                            .reach_ns =
                                                query->reach_ns ? query->start_ns : INT64_MAX};
    enum err_code code = catalogue_find(source->database, scan->arena, query->tenant_id,
                                        source->retention_s, &window, &found, scan->err);
    if (!code)
        code = retention_create(scan->arena, &found.rules, &retention, scan->err);
    if (!code)
        code = deletion_set_create(scan->arena, found.deletions, found.deletion_count, retention,
                                   &scan->state->deleted, scan->err);
    if (code)
        return code;
    scan->state->entries = arena_new(scan->arena, struct flight_entry *, found.count);
    scan->state->stacks = arena_new(scan->arena, struct flight_entry *, found.count);
    scan->state->stacks_failed = arena_new(scan->arena, bool, found.count);
    scan->state->are_dropped = arena_new(scan->arena, bool, found.count);
    scan->state->places = arena_new(scan->arena, const struct catalogue_place *, found.count);
    const uint32_t at_once = (uint32_t)parallel_size();
    for (uint32_t i = 0; i < found.count && !code; i += at_once) {
        const uint32_t left = found.count - i;
        code = scan_batch(scan, &found.places[i], left < at_once ? left : at_once);
    }
    remove_dropped_tasks(scan);
    return code;
}

/*
 * Finds the tasks. A series that lacks a required label may have samples with it. Which series
 * match has to be decided for the whole window, or the values of gauges and counters would depend
 * on how blocks were merged: so the scan runs a second time and takes the series that match except
 * for such labels. Series that match by their own labels are unaffected.
 *
 * Example: {service="api", thread="gc"} with series that have no label `thread`, and a block whose
 * samples have one. The first run matches nothing and sets needs_sample_labels. The second run
 * takes all series with service="api", and row_labels compares `thread` of each sample.
 */
static enum err_code find_tasks(struct scan *scan)
{
    struct scan_state *state = scan->state;
    scan->statistics.bytes_read = state->bytes_read;
    enum err_code code = scan_places(scan);
    state->needs_rerun = !code && state->needs_sample_labels && state->kind == SCAN_TASKS;
    state->bytes_read = scan->statistics.bytes_read;
    if (state->has_open_labels)
        scan->row_selectors = &state->set;
    return code;
}

/* ---- for queries ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct store_type *)a)->name, ((const struct store_type *)b)->name);
}

/* Lists the types by name, as many as fit into a message. */
static const char *list_types(const struct scan *scan)
{
    enum { ROOM = ERR_MESSAGE_BYTES / 2 };
    struct store_type *types = arena_new(scan->arena, struct store_type, scan->type_count);
    buf_auto list;
    buf_init(&list, SERIES_TEXT_MAX);
    for (uint32_t i = 0; i < scan->type_count; i++)
        types[i] = scan->types[i];
    if (scan->type_count)
        qsort(types, scan->type_count, sizeof(*types), compare_names);
    uint32_t shown = 0;
    for (; shown < scan->type_count; shown++) {
        if (shown && list.size + strlen(types[shown].name) > ROOM)
            break;
        buf_printf(&list, "%s%s", shown ? ", " : "", types[shown].name);
    }
    if (shown < scan->type_count)
        buf_printf(&list, " and %" PRIu32 " more", scan->type_count - shown);
    return arena_strndup(scan->arena, list.data, list.size);
}

/* Finds the types with a profile before the window's end. The others were found only as neighbours
 * after the window, and have no value in it. */
static bool *find_types_in_window(const struct scan *scan, bool *ret_are_all)
{
    bool *are_in_window = arena_new(scan->arena, bool, scan->type_count);
    for (uint32_t i = 0; i < scan->task_count; i++) {
        const struct scan_task *task = &scan->tasks[i];
        are_in_window[scan->series[task->series].type] |=
            task->granule->begin_ns < scan->query->end_ns;
    }
    *ret_are_all = true;
    for (uint32_t i = 0; i < scan->type_count; i++)
        *ret_are_all &= are_in_window[i];
    return are_in_window;
}

/* Renumbers the series and types that stay; series that are removed get UINT32_MAX. */
static uint32_t *keep_series(struct scan *scan, const bool *are_in_window)
{
    uint32_t *types = arena_new(scan->arena, uint32_t, scan->type_count);
    uint32_t *numbers = arena_new(scan->arena, uint32_t, scan->series_count);
    uint32_t type_count = 0, series_count = 0;
    for (uint32_t i = 0; i < scan->type_count; i++) {
        types[i] = type_count;
        if (are_in_window[i])
            scan->types[type_count++] = scan->types[i];
    }
    for (uint32_t i = 0; i < scan->series_count; i++) {
        struct store_series series = scan->series[i];
        numbers[i] = are_in_window[series.type] ? series_count : UINT32_MAX;
        series.type = types[series.type];
        if (numbers[i] != UINT32_MAX)
            scan->series[series_count++] = series;
    }
    scan->type_count = type_count;
    scan->series_count = scan->statistics.series_count = series_count;
    return numbers;
}

static void remove_later_types(struct scan *scan)
{
    bool are_all;
    const bool *are_in_window = find_types_in_window(scan, &are_all);
    if (are_all)
        return;
    const uint32_t *numbers = keep_series(scan, are_in_window);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < scan->task_count; i++) {
        struct scan_task *task = &scan->tasks[i];
        task->series = numbers[task->series];
        if (task->series != UINT32_MAX)
            scan->tasks[kept++] = *task;
    }
    scan->task_count = kept;
}

enum err_code scan_check_types(struct scan *scan)
{
    if (scan->type_count > 1)
        remove_later_types(scan);
    if (scan->type_count <= 1)
        return ERR_NONE;
    return err_set(scan->err, ERR_INVALID,
                   "query: %" PRIu32 " profile types match: name one of them: %s", scan->type_count,
                   list_types(scan));
}

enum err_code scan_check_magnitude(const struct scan *scan)
{
    uint64_t magnitude = 0;
    for (uint32_t i = 0; i < scan->task_count; i++) {
        magnitude += scan->tasks[i].granule->magnitude;
        if (magnitude >= INT64_MAX)
            return err_set(
                scan->err, ERR_TOO_LARGE,
                "the values add up to more than 2^63: ask for fewer series or less time");
    }
    return ERR_NONE;
}

/* Asks for more of the shared memory, unless it was granted before. */
static enum err_code request_memory(const struct scan *scan, size_t bytes)
{
    const struct store_memory *memory = scan->query->memory;
    struct scan_state *state = scan->state;
    if (!memory || bytes <= state->granted_bytes)
        return ERR_NONE;
    state->granted_bytes = memory->grow(memory->context, bytes);
    if (bytes <= state->granted_bytes)
        return ERR_NONE;
    state->needed_bytes = bytes;
    return err_set(scan->err, ERR_BUSY, "other queries use the memory: try again");
}

enum err_code scan_check_limits(const struct scan *scan, size_t bytes)
{
    const struct store_query *query = scan->query;
    const struct scan_state *state = scan->state;
    bytes += state->block_bytes + state->text_bytes +
             state->series_capacity * sizeof(*scan->series) +
             state->task_capacity * sizeof(*scan->tasks);
    if (wait_limit_is_cancelled(&query->wait_limit))
        return err_set(scan->err, ERR_CANCELLED,
                       "the client no longer waits: send the query again");
    if (bytes > max_memory(query))
        return fail_memory(scan, max_memory(query));
    if (query->max_read_bytes && scan->statistics.bytes_read > query->max_read_bytes)
        return fail_limit(scan, "reads more than it may", query->texts.read);
    enum err_code code = check_cpu(scan);
    if (code)
        return code;
    if (wait_limit_is_late(&query->wait_limit))
        return fail_limit(scan, "takes longer than its time limit", query->texts.time);
    return request_memory(scan, bytes);
}

enum err_code scan_explain_wait(const struct scan *scan, enum err_code code)
{
    const enum err_code why = code == ERR_CANCELLED ? scan_check_limits(scan, 0) : ERR_NONE;
    return why ? why : code;
}

void scan_find_hour(const struct block_granule *granule, int64_t *ret_first_ns,
                    int64_t *ret_last_ns)
{
    const int64_t hour_ns = 3600 * CLOCK_NS_PER_S;
    *ret_first_ns = granule->hour < INT64_MIN / hour_ns ? INT64_MIN : granule->hour * hour_ns;
    *ret_last_ns = granule->hour >= INT64_MAX / hour_ns
                       ? INT64_MAX
                       : (granule->hour + INT64_C(1)) * hour_ns - 1;
}

void scan_note_cut(struct scan *scan, const struct scan_task *task)
{
    scan->statistics.cut_count++;
    scan->statistics.totals_count--;
    scan->statistics.profile_count -= scan_profile_count(task);
}

enum err_code scan_note_read(struct scan *scan, struct scan_task *task, uint64_t row_count,
                             uint64_t bytes, enum err_code code)
{
    const char *object_key = scan->state->places[task->block_index]->object_key;
    struct store_statistics *statistics = &scan->statistics;
    if (!code) {
        statistics->granule_count++;
        statistics->row_count += row_count;
        statistics->bytes_read += bytes;
    } else if (is_broken(scan, object_key, code)) {
        task->is_broken = true;
        statistics->profile_count -= scan_profile_count(task);
    }
    return skip_broken(scan, object_key, code);
}

/* tasks NULL: the scan's. */
static void read_ahead(struct scan *scan, struct scan_task *const *tasks, uint32_t task_count,
                       uint32_t at)
{
    uint32_t *next = &scan->state->ahead;
    *next = *next > at ? *next : at;
    for (; *next < task_count && *next < at + TASKS_AHEAD; ++*next) {
        const struct scan_task *task = tasks ? tasks[*next] : &scan->tasks[*next];
        const bool is_whole = scan_is_whole(task);
        block_read_ahead(task->block, task->granule, is_whole ? BLOCK_TOTALS : BLOCK_PROFILES,
                         is_whole ? BLOCK_TOTALS : BLOCK_ROWS);
    }
}

void scan_read_ahead(struct scan *scan, uint32_t at)
{
    read_ahead(scan, NULL, scan->task_count, at);
}

void scan_read_ahead_of(struct scan *scan, struct scan_task *const *tasks, uint32_t task_count,
                        uint32_t at)
{
    read_ahead(scan, tasks, task_count, at);
}

static int compare_tasks(const void *a, const void *b)
{
    const struct scan_task *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    if (x->block_index != y->block_index)
        return x->block_index < y->block_index ? -1 : 1;
    if (x->granule != y->granule)
        return x->granule < y->granule ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

void scan_sort_by_series(struct scan *scan)
{
    if (scan->task_count)
        qsort(scan->tasks, scan->task_count, sizeof(*scan->tasks), compare_tasks);
}

/* ---- running a scan ---- */

static enum err_code parse_selectors(struct scan *scan)
{
    const struct store_query *query = scan->query;
    struct scan_state *state = scan->state;
    enum err_code code = ERR_NONE;
    struct selector **selectors = arena_new(scan->arena, struct selector *, query->selector_count);
    state->set = (struct selector_set){.selectors = selectors, .count = query->selector_count};
    for (size_t i = 0; i < query->selector_count && !code; i++) {
        const char *name = query->selectors_name
                               ? arena_printf(scan->arena, "%s %zu", query->selectors_name, i + 1)
                               : "query";
        code =
            selector_parse_named(scan->arena, name, query->selectors[i], &selectors[i], scan->err);
    }
    return code;
}

static void scan_fini(struct scan *scan)
{
    for (uint32_t i = scan->block_count; i > 0; i--) { /* the cache keeps those returned last */
        flight_cache_unref(scan->state->stacks[i - 1]);
        flight_cache_unref(scan->state->entries[i - 1]);
    }
    map_bytes_fini(&scan->state->type_numbers);
    map_bytes_fini(&scan->state->series_numbers);
    buf_fini(&scan->state->text);
    mem_free(scan->types);
    mem_free(scan->series);
    mem_free(scan->tasks);
    block_cursor_destroy(scan->cursor);
}

static enum err_code scan_once(struct scan_state *state, const struct store_query *query,
                               struct arena *arena,
                               enum err_code (*answer)(struct scan *scan, void *context),
                               void *context, struct err *err)
{
    const struct frame_resolver *resolver =
        query->resolver ? query->resolver : state->source->resolver;
    struct scan scan = {.query = query,
                        .arena = arena,
                        .first_ns = INT64_MAX,
                        .last_ns = INT64_MIN,
                        .cursor = block_cursor_create(),
                        .resolver = resolver,
                        .err = err,
                        .state = state};
    if (resolver && resolver->generation)
        scan.statistics.names.generation =
            resolver->generation(resolver->context, query->tenant_id);
    buf_init(&state->text, SERIES_TEXT_MAX);
    enum err_code code = parse_selectors(&scan);
    if (!code)
        code = find_tasks(&scan);
    if (!code && !state->needs_rerun)
        code = answer(&scan, context);
    scan_fini(&scan);
    return code;
}

/*
 * A scan runs again in three cases. An object is missing that the catalogue named (ERR_NOT_FOUND):
 * a compaction swapped it after the catalogue was read; after TRIES runs the object counts as lost.
 * Series were found to need labels of samples (needs_rerun): the bytes of the first run count too.
 * The memory of all queries was used up (ERR_BUSY with needed_bytes): the query has freed
 * everything and waits for its share. The last two do not count as tries.
 */
enum err_code scan_run(const struct scan_source *source, const struct store_query *query,
                       enum scan_kind kind, struct arena *arena,
                       enum err_code (*answer)(struct scan *scan, void *context), void *context,
                       struct err *err)
{
    enum { TRIES = 3 };
    enum err_code code = ERR_NOT_FOUND;
    struct scan_state state = {.needs_rerun = false};
    for (int i = 0; i < TRIES && code == ERR_NOT_FOUND;) {
        state = (struct scan_state){.source = source,
                                    .kind = kind,
                                    .matches_known_labels =
                                        state.matches_known_labels || state.needs_rerun,
                                    .bytes_read = state.needs_rerun ? state.bytes_read : 0,
                                    .is_last_try = i == TRIES - 1};
        code = scan_once(&state, query, arena, answer, context, err);
        if (!code && state.needs_rerun)
            code = ERR_NOT_FOUND; /* run again */
        else if (code == ERR_BUSY && state.needed_bytes) {
            code = query->memory->wait(query->memory->context, state.needed_bytes,
                                       max_memory(query), err);
            code = code ? code : ERR_NOT_FOUND; /* again */
        } else {
            i++;
        }
    }
    return code;
}

/* ---- explaining an empty result ---- */

struct explanation {
    const struct store_query *query;
    const char *types; /* types of the window; NULL: the query names one of them */
};

static enum err_code explain_missing_type(struct scan *scan, void *context)
{
    struct explanation *explanation = context;
    const struct store_query *query = explanation->query;
    explanation->types = NULL;
    for (size_t i = 0; i < query->selector_count; i++) {
        struct selector *selector;
        enum err_code code = selector_parse(scan->arena, query->selectors[i], &selector, scan->err);
        if (code)
            return code;
        for (uint32_t j = 0; j < scan->type_count; j++) {
            bool matches;
            code = selector_matches_type(selector, scan->types[j].parts, scan->types[j].is_delta,
                                         &matches, scan->err);
            if (code || matches)
                return code;
        }
    }
    if (scan->type_count)
        explanation->types = list_types(scan);
    return ERR_NONE;
}

enum err_code scan_explain_nothing(const struct scan_source *source,
                                   const struct store_query *query, struct arena *arena,
                                   struct err *err)
{
    struct explanation explanation = {.query = query};
    struct store_query all = *query;
    all.reach_ns = all.ahead_ns = 0;
    if (!query->selector_count || query->profile)
        return ERR_NONE;
    all.selectors = NULL;
    all.selector_count = 0;
    enum err_code code =
        scan_run(source, &all, SCAN_SERIES, arena, explain_missing_type, &explanation, err);
    if (code || !explanation.types)
        return code;
    return err_set(err, ERR_NOT_FOUND,
                   "query: the window has no profile of that type; there are: %s",
                   explanation.types);
}
