#include "agent/perf_map.h"

#include "agent/process_file.h"
#include "agent/small_file.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { FILE_MAX_BYTES = 32 << 20, ENTRIES_MAX = 500000, LOOK_BACK = 16, STATUS_MAX_BYTES = 8192 };
#define READ_PAUSE_NS CLOCK_NS_PER_S

struct entry {
    uint64_t start;
    uint64_t bytes;
    uint32_t name; /* offset in text */
    uint32_t name_bytes;
    uint32_t order; /* in the file */
};

struct perf_map {
    uint32_t process_id;
    int64_t read_ns;
    int64_t file_bytes; /* when it was read; -1: never */
    struct buf text;
    struct entry *entries; /* by start, then order */
    uint32_t count;
};

struct perf_map *perf_map_create(uint32_t process_id)
{
    struct perf_map *map = mem_new(struct perf_map, 1);
    map->process_id = process_id;
    map->file_bytes = -1;
    map->read_ns = INT64_MIN / 2;
    buf_init(&map->text, FILE_MAX_BYTES);
    return map;
}

void perf_map_destroy(struct perf_map *map)
{
    if (!map)
        return;
    buf_fini(&map->text);
    mem_free(map->entries);
    mem_free(map);
}

/* ---- reading ---- */

static bool parse_line(struct span line, const uint8_t *text, struct entry *entry)
{
    struct span start, bytes, name;
    if (!span_split(line, ' ', &start, &line) || !span_split(line, ' ', &bytes, &name) ||
        name.size == 0 || !span_parse_hex(start, &entry->start) ||
        !span_parse_hex(bytes, &entry->bytes))
        return false;
    entry->name = (uint32_t)(name.data - text);
    entry->name_bytes = (uint32_t)name.size;
    return entry->start + entry->bytes >= entry->start;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static uint32_t count_lines(struct span text)
{
    uint32_t count = 1;
    for (size_t i = 0; i < text.size && count < ENTRIES_MAX; i++)
        count += text.data[i] == '\n';
    return count;
}

static void index_text(struct perf_map *map)
{
    struct span rest = buf_span(&map->text), line;
    const uint32_t capacity = count_lines(rest);
    map->entries = mem_resize(map->entries, capacity, sizeof(*map->entries));
    map->count = 0;
    while (map->count < capacity && span_take_line(&rest, &line)) {
        struct entry *entry = &map->entries[map->count];
        entry->order = map->count;
        map->count += parse_line(line, map->text.data, entry);
    }
    qsort(map->entries, map->count, sizeof(*map->entries), compare_entries);
}

void perf_map_read(struct perf_map *map, struct span text)
{
    buf_clear(&map->text);
    buf_append_span(&map->text, text);
    index_text(map);
}

/* The process's number as it knows it itself, which is the one in the file's name. */
static uint64_t own_number(uint32_t process_id)
{
    char path[64];
    struct err ignored;
    buf_auto text;
    buf_init(&text, STATUS_MAX_BYTES);
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", process_id);
    uint64_t number = process_id;
    if (small_file_read(path, &text, &ignored))
        return number;
    struct span rest = buf_span(&text), line;
    while (span_take_line(&rest, &line)) {
        if (!span_starts_with(line, "NSpid:"))
            continue;
        size_t start = line.size;
        while (start && line.data[start - 1] >= '0' && line.data[start - 1] <= '9')
            start--;
        (void)span_parse_u64(span_of(line.data + start, line.size - start), &number);
    }
    return number;
}

static void refresh(struct perf_map *map)
{
    char path[64];
    struct stat status;
    struct err ignored;
    snprintf(path, sizeof(path), "/tmp/perf-%" PRIu64 ".map", own_number(map->process_id));
    fd_auto fd = process_file_open(map->process_id, span_text(path));
    if (fd < 0 || fstat(fd, &status) || status.st_size == map->file_bytes ||
        !process_file_is_trusted(map->process_id, fd))
        return;
    map->file_bytes = status.st_size;
    buf_clear(&map->text);
    /* Of a file that is too long, or cannot be read to its end, the start is better than nothing.
     */
    if (small_file_read_fd(fd, path, &map->text, &ignored))
        map->file_bytes = -1; /* to be tried again */
    index_text(map);
}

/* ---- looking up ---- */

static struct span look_up(const struct perf_map *map, uint64_t address)
{
    uint32_t low = 0, high = map->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (map->entries[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct entry *best = NULL;
    for (uint32_t i = 0; i < LOOK_BACK && i < low; i++) {
        const struct entry *entry = &map->entries[low - 1 - i];
        if (address - entry->start < entry->bytes && (!best || entry->order > best->order))
            best = entry;
    }
    return best ? span_of(map->text.data + best->name, best->name_bytes) : (struct span){0};
}

struct span perf_map_find(struct perf_map *map, uint64_t address, int64_t now_ns)
{
    struct span name = look_up(map, address);
    if (name.size || now_ns - map->read_ns < READ_PAUSE_NS)
        return name;
    map->read_ns = now_ns;
    refresh(map);
    return look_up(map, address);
}
