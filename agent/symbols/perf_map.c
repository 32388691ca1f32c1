#include "agent/symbols/perf_map.h"

#include "agent/process/procfs_file.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <stdlib.h>

enum {
    FILE_MAX_BYTES = 32 << 20,
    ENTRIES_MAX = 500000,
    LOOK_BACK = 16, /* entries before an address that are checked, because entries may overlap */
};
#define NEVER_READ UINT64_MAX

struct entry {
    uint64_t start;
    uint64_t bytes;
    uint32_t name; /* offset in text */
    uint32_t name_bytes;
    uint32_t order; /* position in the file */
};

struct perf_map {
    uint64_t file_bytes; /* size of the file when it was read; NEVER_READ */
    struct buf text;
    struct entry *entries; /* by start, then order */
    uint32_t count;
    uint32_t capacity;
};

struct perf_map *perf_map_create(void)
{
    struct perf_map *map = mem_new(struct perf_map, 1);
    map->file_bytes = NEVER_READ;
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

/* The size of a name, cut between two characters if it is too long. */
static uint32_t cut_name(struct span name)
{
    size_t bytes = name.size;
    if (bytes <= PERF_MAP_NAME_MAX_BYTES)
        return (uint32_t)bytes;
    bytes = PERF_MAP_NAME_MAX_BYTES;
    for (int i = 0; i < 3 && (name.data[bytes] & 0xC0) == 0x80; i++)
        bytes--;
    return (uint32_t)bytes;
}

static bool parse_line(struct span line, const uint8_t *text, struct entry *entry)
{
    struct span start, bytes, name;
    if (!span_split(line, ' ', &start, &line) || !span_split(line, ' ', &bytes, &name) ||
        name.size == 0 || !span_parse_hex(start, &entry->start) ||
        !span_parse_hex(bytes, &entry->bytes))
        return false;
    entry->name = (uint32_t)(name.data - text);
    entry->name_bytes = cut_name(name);
    return entry->start + entry->bytes >= entry->start;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static uint32_t count_lines(struct span text, uint32_t most)
{
    uint32_t count = 1;
    for (size_t i = 0; i < text.size && count <= most; i++)
        count += text.data[i] == '\n';
    return count;
}

/* Indexes at most `most` lines; false: there are more. */
static bool index_text(struct perf_map *map, uint32_t most)
{
    struct span rest = buf_span(&map->text), line;
    const uint32_t lines = count_lines(rest, most);
    map->capacity = lines < most ? lines : most;
    map->entries = mem_resize(map->entries, map->capacity, sizeof(*map->entries));
    map->count = 0;
    while (map->count < map->capacity && span_take_line(&rest, &line)) {
        struct entry *entry = &map->entries[map->count];
        entry->order = map->count;
        map->count += parse_line(line, map->text.data, entry);
    }
    if (map->count)
        qsort(map->entries, map->count, sizeof(*map->entries), compare_entries);
    return rest.size == 0;
}

void perf_map_take(struct perf_map *map, struct span text)
{
    buf_clear(&map->text);
    buf_append_span(&map->text, text);
    (void)index_text(map, ENTRIES_MAX);
}

bool perf_map_read(struct perf_map *map, int fd, uint64_t file_bytes, uint64_t max_bytes)
{
    struct err ignored;
    const uint64_t half = max_bytes / 2, most = half / sizeof(*map->entries);
    if (file_bytes == map->file_bytes)
        return true;
    map->file_bytes = file_bytes;
    /* Half of the limit is for the text, half for the index. */
    buf_fini(&map->text);
    buf_init(&map->text, half < FILE_MAX_BYTES ? (size_t)half : FILE_MAX_BYTES);
    const bool is_whole = !procfs_file_read_fd(fd, "a perf map", &map->text, &ignored);
    return index_text(map, most < ENTRIES_MAX ? (uint32_t)most : ENTRIES_MAX) && is_whole;
}

uint64_t perf_map_bytes(const struct perf_map *map)
{
    return map->text.capacity + (uint64_t)map->capacity * sizeof(*map->entries);
}

/* ---- looking up ---- */

struct span perf_map_find(const struct perf_map *map, uint64_t address)
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
