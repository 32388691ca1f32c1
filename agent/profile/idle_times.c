#include "agent/profile/idle_times.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/batch/batch_labels.h"

enum { TIMES_MAX = 16384, BYTES_MAX = 16 << 20, REPORTED_WINDOWS = 6 };

/* An idle time is reported after REPORTED_WINDOWS windows or this time, whichever is shorter. */
#define REPORTED_NS (60 * CLOCK_NS_PER_S)

struct entry {
    struct idle_time time;
    struct arena *arena; /* holds the labels */
    size_t bytes;
};

struct idle_times {
    struct entry *entries;
    uint32_t count;
    uint32_t capacity;
    size_t bytes;
    struct map_bytes numbers; /* from a key to the index of its entry */
};

struct idle_times *idle_times_create(void)
{
    return mem_new(struct idle_times, 1);
}

void idle_times_destroy(struct idle_times *times)
{
    if (!times)
        return;
    for (uint32_t i = 0; i < times->count; i++)
        arena_destroy(times->entries[i].arena);
    map_bytes_fini(&times->numbers);
    mem_free(times->entries);
    mem_free(times);
}

static struct span copy_text(struct arena *arena, struct span text)
{
    return span_of(arena_strndup(arena, text.data, text.size), text.size);
}

static bool add_entry(struct idle_times *times, const struct idle_time *window)
{
    /* The key consists of all names and values: each text is kept twice. */
    const size_t bytes =
        2 * window->key.size + window->label_count * sizeof(*window->labels) + sizeof(struct entry);
    if (times->count == TIMES_MAX || times->bytes + bytes > BYTES_MAX)
        return false;
    vec_reserve(times->entries, times->capacity, times->count + 1);
    struct arena *arena = arena_create();
    struct batch_text_label *labels =
        arena_new(arena, struct batch_text_label, window->label_count);
    for (size_t i = 0; i < window->label_count; i++)
        labels[i] = (struct batch_text_label){.name = copy_text(arena, window->labels[i].name),
                                              .value = copy_text(arena, window->labels[i].value)};
    struct entry *entry = &times->entries[times->count];
    *entry = (struct entry){.time = *window, .arena = arena, .bytes = bytes};
    entry->time.key = copy_text(arena, window->key);
    entry->time.labels = labels;
    map_bytes_add(&times->numbers, entry->time.key, times->count++);
    times->bytes += bytes;
    return true;
}

bool idle_times_add(struct idle_times *times, const struct idle_time *window)
{
    const uint32_t number = map_bytes_find(&times->numbers, window->key);
    if (number == MAP_ABSENT)
        return add_entry(times, window);
    struct idle_time *time = &times->entries[number].time;
    if (time->end_ns == window->end_ns && time->begin_ns <= window->begin_ns)
        return true; /* another process */
    if (time->end_ns != window->begin_ns)
        return false; /* the clock was set: the time so far is reported first */
    time->end_ns = window->end_ns;
    return true;
}

/* Whether the idle time continues and is still too short to be reported. */
static bool may_wait(const struct idle_time *time, int64_t window_begin_ns, int64_t window_end_ns)
{
    const int64_t length_ns = time->end_ns - time->begin_ns;
    return time->end_ns == window_end_ns && length_ns < REPORTED_NS &&
           length_ns < REPORTED_WINDOWS * (window_end_ns - window_begin_ns);
}

/* Maps have no removal, so the map is built again; few entries remain after a report. */
static void rebuild_numbers(struct idle_times *times)
{
    map_bytes_fini(&times->numbers);
    times->numbers = (struct map_bytes){0};
    for (uint32_t i = 0; i < times->count; i++)
        map_bytes_add(&times->numbers, times->entries[i].time.key, i);
}

void idle_times_report(struct idle_times *times, int64_t window_begin_ns, int64_t window_end_ns,
                       bool is_last, void (*report)(void *context, const struct idle_time *time),
                       void *context)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < times->count; i++) {
        struct entry *entry = &times->entries[i];
        if (!is_last && may_wait(&entry->time, window_begin_ns, window_end_ns)) {
            times->entries[kept++] = *entry;
            continue;
        }
        report(context, &entry->time);
        times->bytes -= entry->bytes;
        arena_destroy(entry->arena);
    }
    if (kept == times->count)
        return;
    times->count = kept;
    rebuild_numbers(times);
}
