/*
 * Finds the tasks of a scan in one block: which series match, and which profiles of their granules
 * the query needs. Granules are in order of series, so a series is matched once per block.
 */
#include "store/query/scan_internal.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "store/block/aggregation.h"
#include "store/catalogue/catalogue.h"
#include "store/query/series_hash.h"
#include "store/values/cadence.h"

#include <assert.h>
#include <string.h>

enum { CLOCK_EVERY = 64 };

/* ---- series ---- */

static struct span keep_text(struct scan *scan, struct span text)
{
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
    vec_reserve(scan->types, state->type_capacity, scan->type_count + 1);
    const uint32_t strings[STORE_TYPE_PARTS] = {type->name, type->sample_type.type,
                                                type->sample_type.unit, type->period_type.type,
                                                type->period_type.unit};
    struct store_type *made = &scan->types[scan->type_count];
    *made = (struct store_type){.name = (const char *)name.data,
                                .kind = type->kind,
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
    vec_reserve(scan->series, state->series_capacity, scan->series_count + 1);
    scan->series[scan->series_count] = (struct store_series){
        .labels = labels,
        .label_count = label_count,
        .type = number_type(scan, dictionary, index, span_of(text.data, type_size)),
        .hash = series_hash_of(text),
    };
    scan->statistics.series_count++;
    return map_bytes_add(&state->series_numbers, text, scan->series_count++);
}

/* For a series that no selector matches: sets needs_sample_labels if a selector would match it
 * without the labels that only its samples may have. */
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

/* For a series with totals only that no selector matches: whether a selector may have matched
 * samples that had labels of their own. Those labels are not kept with totals. */
static enum err_code find_lost_match(struct scan *scan, const struct dictionary *dictionary,
                                     uint32_t series, bool *ret_may_have_matched)
{
    const struct selector_set *set = &scan->state->set;
    enum err_code code = ERR_NONE;
    for (size_t i = 0; !*ret_may_have_matched && !code && i < set->count; i++)
        code = selector_matches_known(set->selectors[i], dictionary, series, ret_may_have_matched,
                                      scan->err);
    return code;
}

static enum err_code find_match(struct scan *scan, const struct dictionary *dictionary,
                                uint32_t series, bool *ret_matches)
{
    struct scan_state *state = scan->state;
    const struct selector_set *set = &state->set;
    /* An expression may be slow, and a block may contain many series. */
    enum err_code code = state->match_count++ % CLOCK_EVERY ? ERR_NONE : scan_check_cpu(scan);
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
                       SCAN_TEXT_MAX_BYTES);
    if (!scan->query->profile)
        return ERR_NONE;
    *ret_matches = series_hash_of(buf_span(&state->text)) == scan->query->profile->series;
    return ERR_NONE;
}

/* ---- granules ---- */

static void set_times(struct scan_task *task, int64_t first_ns, int64_t last_ns)
{
    task->first_ns = first_ns;
    task->last_ns = last_ns;
}

/* The first ordinal whose profile begins at time_ns or later. */
static uint32_t find_ordinal(const struct block_profile *profiles, uint32_t count, int64_t time_ns)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (profiles[middle].time_ns < time_ns)
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
    bool may_have_matched; /* only labels that its samples may have had are absent */
    bool has_number;
    enum store_aggregation aggregation;
    /* profiles that begin earlier are out of reach: start_ns less the query's reach */
    int64_t from_ns;
    int64_t until_ns; /* and those that begin then or later: end_ns plus the query's ahead_ns */
    struct deletion_set_windows deleted;
};

static int64_t end_of(const struct block_profile *profile)
{
    int64_t end_ns;
    return __builtin_add_overflow(profile->time_ns, profile->duration_ns, &end_ns) ? INT64_MAX
                                                                                   : end_ns;
}

/* A delta with a duration is no neighbour: neighbours matter only for profiles whose end depends on
 * the next profile. Deleted profiles do not count. */
static bool counts_as_neighbour(const struct block_profile *profile,
                                enum store_aggregation aggregation,
                                const struct deletion_set_windows *deleted)
{
    return (aggregation != STORE_SUM || profile->duration_ns <= 0) &&
           !(deleted && deletion_set_has_any(deleted, profile->time_ns, profile->time_ns));
}

uint32_t scan_find_before(const struct block_profile *profiles, uint32_t end,
                          enum store_aggregation aggregation,
                          const struct deletion_set_windows *deleted)
{
    uint32_t first = end;
    int found = 0;
    for (uint32_t i = end; i; i--) {
        const bool is_new = first == end || profiles[i - 1].time_ns != profiles[first].time_ns;
        if (!counts_as_neighbour(&profiles[i - 1], aggregation, deleted))
            continue;
        if (is_new && found++ == CADENCE_NEIGHBOURS)
            break;
        first = i - 1;
    }
    return first;
}

uint32_t scan_find_after(const struct block_profile *profiles, uint32_t first, uint32_t count,
                         enum store_aggregation aggregation,
                         const struct deletion_set_windows *deleted)
{
    uint32_t end = first;
    int found = 0;
    for (uint32_t i = first; i < count; i++) {
        const bool is_new = end == first || profiles[i].time_ns != profiles[end - 1].time_ns;
        if (!counts_as_neighbour(&profiles[i], aggregation, deleted))
            continue;
        if (is_new && found++ == CADENCE_NEIGHBOURS)
            break;
        end = i + 1;
    }
    return end;
}

/* True when the granule states that one of its profiles ends in the window or later. */
static bool is_reaching(const struct store_query *query, const struct block_granule *granule)
{
    return query->reach_ns && granule->reach_ns > query->start_ns &&
           granule->end_ns >= scan_far_back(query);
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
    const uint32_t first = scan_find_before(profiles, start, series->aggregation, &series->deleted);
    const uint32_t end =
        scan_find_after(profiles, found->own_end, count, series->aggregation, &series->deleted);
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
    const int64_t from_ns = is_reaching(query, granule) ? scan_far_back(query) : series->from_ns;
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

/* Values over time need the profiles of granules that the window cuts. They are kept in the task,
 * so that the query does not read them a second time. */
static void keep_profiles(struct scan *scan, struct scan_task *task,
                          const struct block_profile *profiles)
{
    const uint32_t count = task->end - task->first;
    if (!scan->query->reach_ns || scan->state->kind != SCAN_TASKS)
        return;
    struct block_profile *kept = arena_new_raw(scan->arena, struct block_profile, count);
    memcpy(kept, profiles + task->first, count * sizeof(*kept));
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
        set_times(task, profiles[own_first].time_ns, profiles[own_end - 1].time_ns);
    else
        set_times(task, INT64_MAX, INT64_MIN);
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
           (series->aggregation != STORE_SUM || granule->reach_ns <= query->start_ns);
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
        set_times(task, INT64_MAX, INT64_MIN);
        task->end = granule->profile_count;
        return ERR_NONE;
    }
    if (granule->begin_ns >= query->start_ns && granule->end_ns < query->end_ns) {
        set_times(task, granule->begin_ns, granule->end_ns);
        task->end = granule->profile_count;
        return ERR_NONE;
    }
    const struct block_profile *profiles;
    enum err_code code = scan_read_profiles(scan, task->block, granule, &profiles);
    if (code)
        return scan_skip_broken(scan, object_key, code);
    const struct found_profiles found = find_range(scan, series, granule, profiles);
    set_task_range(scan, &found, found.first, found.end, task, profiles);
    return ERR_NONE;
}

void scan_count_task(struct scan *scan, const struct scan_task *task)
{
    scan->statistics.profile_count += scan_profile_count(task);
    if (scan->state->kind == SCAN_SERIES)
        return;
    scan->statistics.totals_count += task->has_totals_only;
    scan->first_ns = task->first_ns < scan->first_ns ? task->first_ns : scan->first_ns;
    scan->last_ns = task->last_ns > scan->last_ns ? task->last_ns : scan->last_ns;
}

static void add_task(struct scan *scan, struct series_state *series, struct scan_task *task)
{
    if (!series->has_number)
        series->number = number_series(scan, block_dictionary(task->block), series->index);
    series->has_number = true;
    task->series = series->number;
    scan_count_task(scan, task);
    if (scan->state->kind == SCAN_SERIES)
        return;
    vec_reserve(scan->tasks, scan->state->task_capacity, scan->task_count + 1);
    scan->tasks[scan->task_count++] = *task;
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
    enum err_code code = scan_read_profiles(scan, task->block, granule, &profiles);
    if (code)
        return scan_skip_broken(scan, scan->state->places[task->block_index]->object_key, code);
    add_runs(scan, series, task, profiles);
    return ERR_NONE;
}

/* True when the query needs values of single profiles that may not be stored any more. Snapshots of
 * gauges and counters stay, but lists do not show those of hours with totals only. */
static bool lacks_profiles(const struct scan *scan, const struct scan_task *task)
{
    const struct store_query *query = scan->query;
    return task->are_totals ||
           (task->has_totals_only && (query->wants_single_profiles || query->profile));
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
    set_times(task, granule->begin_ns, granule->end_ns);
    task->first = task->outside_count = 0;
    task->end = granule->profile_count;
    task->is_neighbour = false;
    task->profiles = NULL;
    add_task(scan, series, task);
    return ERR_NONE;
}

/* True when the granule is beyond the reach, or ends before the window by its reach_ns. With
 * ahead_ns, deltas without a duration may be neighbours; a gapless granule has no such deltas. */
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
           (granule->end_ns < query->start_ns && granule->reach_ns <= query->start_ns);
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
                              .until_ns = scan_reach_ahead(query)};
    enum err_code code = find_match(scan, dictionary, series->index, &series->matches);
    if (series->aggregation == STORE_SUM || query->ahead_ns)
        series->from_ns = scan_reach_back(query);
    if (!code && !series->matches && task->granule->flags & BLOCK_ARE_TOTALS)
        code = find_lost_match(scan, dictionary, series->index, &series->may_have_matched);
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
    const bool is_in_window =
        granule->end_ns >= scan->query->start_ns && granule->begin_ns < scan->query->end_ns;
    scan->statistics.unmatched_count += !code && !series->matches && series->may_have_matched &&
                                        is_in_window && granule->flags & BLOCK_ARE_TOTALS;
    if (code || !series->matches || (scan->state->kind == SCAN_SERIES && series->has_number))
        return code;
    scan->has_open_ends_before |= has_open_ends_before(scan, series, granule);
    if (is_outside(scan, series, granule))
        return code;
    task->has_totals_only = deletion_set_has_only_totals(&series->deleted, granule);
    task->are_totals = task->has_totals_only && series->aggregation == STORE_SUM;
    if (lacks_profiles(scan, task))
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

enum err_code scan_plan_block(struct scan *scan, const struct block *block,
                              const struct deletion_set_ids *deletions)
{
    const struct store_query *query = scan->query;
    struct series_state series = {.index = UINT32_MAX};
    struct scan_task task = {.block = block, .block_index = scan->block_count};
    uint32_t count;
    enum err_code code = ERR_NONE;
    const struct block_granule *granules = block_granules(block, &count);
    const int64_t from_ns = scan_reach_back(query), until_ns = scan_reach_ahead(query);
    note_sample_labels(scan, block_dictionary(block));
    for (uint32_t i = 0; i < count && !code; i++) {
        task.granule = &granules[i];
        const bool is_near = granules[i].end_ns >= from_ns || is_reaching(query, &granules[i]);
        if (is_near && granules[i].begin_ns < until_ns)
            code = scan_granule(scan, deletions, &series, &task);
    }
    return code ? code : scan_check_limits(scan, 0);
}
