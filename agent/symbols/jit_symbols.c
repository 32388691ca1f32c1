#include "agent/symbols/jit_symbols.h"

#include "agent/symbols/jit_file_trust.h"
#include "agent/symbols/perf_map.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    /* After a read that took t, no file is read for 9 t, and none of the same owner for 19 t. So
     * all reads together take a tenth of the time and those of one owner a twentieth, which leaves
     * time for files of other owners. */
    PAUSE_TIMES = 9,
    OWNER_PAUSE_TIMES = 19,
};
#define READ_PAUSE_NS CLOCK_NS_PER_S
#define NEVER_NS (INT64_MIN / 2)

struct jit_owner {
    struct jit_owner *next; /* in the list of the budget */
    uint64_t number;
    uint32_t references;
    uint64_t used_bytes;
    int64_t read_ns; /* when a file of the owner was last read */
    int64_t next_ns; /* earliest time of the next read */
};

struct jit_symbols {
    uint32_t references;
    struct jit_budget *budget;
    struct jit_owner *owner;
    struct jit_file_owner process; /* the process that wrote the files */
    bool is_refused;
    int64_t read_ns;
    uint64_t used_bytes; /* memory, counted in the budget */
    char *jitdump_path;  /* NULL: no jitdump is mapped */
    struct jitdump *jitdump;
    struct perf_map *perf_map;
};

/* ---- life ---- */

static struct jit_owner *take_owner(struct jit_budget *budget, uint64_t number)
{
    struct jit_owner *owner = budget->owners;
    while (owner && owner->number != number)
        owner = owner->next;
    if (!owner) {
        owner = mem_new(struct jit_owner, 1);
        *owner = (struct jit_owner){.next = budget->owners, .number = number, .read_ns = NEVER_NS};
        budget->owners = owner;
    }
    owner->references++;
    return owner;
}

static void release_owner(struct jit_budget *budget, struct jit_owner *owner)
{
    if (--owner->references)
        return;
    struct jit_owner **link = &budget->owners;
    while (*link != owner)
        link = &(*link)->next;
    *link = owner->next;
    mem_free(owner);
}

/* Sets how much memory of the budget the process has. */
static void set_used(struct jit_symbols *names, uint64_t bytes)
{
    names->owner->used_bytes += bytes - names->used_bytes;
    names->budget->used_bytes += bytes - names->used_bytes;
    names->used_bytes = bytes;
}

struct jit_symbols *jit_symbols_create(struct jit_budget *budget, uint32_t process_id,
                                       uint64_t owner)
{
    struct jit_symbols *names = mem_new(struct jit_symbols, 1);
    *names = (struct jit_symbols){.references = 1,
                                  .budget = budget,
                                  .owner = take_owner(budget, owner),
                                  .read_ns = NEVER_NS,
                                  .jitdump = jitdump_create(),
                                  .perf_map = perf_map_create()};
    jit_file_owner_init(&names->process, process_id); /* now: it may end before anything is read */
    return names;
}

struct jit_symbols *jit_symbols_keep(struct jit_symbols *names)
{
    names->references++;
    return names;
}

void jit_symbols_release(struct jit_symbols *names)
{
    if (!names || --names->references)
        return;
    set_used(names, 0);
    release_owner(names->budget, names->owner);
    jitdump_destroy(names->jitdump);
    perf_map_destroy(names->perf_map);
    mem_free(names->jitdump_path);
    mem_free(names);
}

/* ---- reading ---- */

static uint64_t remaining(uint64_t bytes, uint64_t taken)
{
    return bytes > taken ? bytes - taken : 0;
}

/* How much memory one of the two files of this process may take if the other has bytes_of_other. */
static uint64_t space_beside(const struct jit_symbols *names, uint64_t bytes_of_other)
{
    const uint64_t max_bytes = names->budget->max_bytes;
    const uint64_t held = names->owner->used_bytes - names->used_bytes; /* by its other processes */
    const uint64_t others = names->budget->used_bytes - names->used_bytes;
    const uint64_t of_process = remaining(max_bytes, others) / 2;
    const uint64_t of_owner = remaining(remaining(max_bytes, others - held) / 4 * 3, held);
    return remaining(of_process < of_owner ? of_process : of_owner, bytes_of_other);
}

static bool read_jitdump(struct jit_symbols *names)
{
    uint64_t bytes;
    if (!names->jitdump_path)
        return true;
    fd_auto fd = jit_file_open(&names->process, names->jitdump_path, &bytes);
    return fd < 0 || jitdump_read(names->jitdump, fd, bytes,
                                  space_beside(names, perf_map_bytes(names->perf_map)));
}

static bool read_perf_map(struct jit_symbols *names)
{
    char path[64];
    uint64_t bytes;
    snprintf(path, sizeof(path), "/tmp/perf-%" PRIu64 ".map", names->process.own_number);
    fd_auto fd = jit_file_open(&names->process, path, &bytes);
    return fd < 0 || perf_map_read(names->perf_map, fd, bytes,
                                   space_beside(names, jitdump_bytes(names->jitdump)));
}

static void read_both(struct jit_symbols *names)
{
    bool is_whole = read_jitdump(names);
    is_whole = read_perf_map(names) && is_whole;
    set_used(names, jitdump_bytes(names->jitdump) + perf_map_bytes(names->perf_map));
    names->budget->refused += !is_whole && !names->is_refused;
    names->is_refused |= !is_whole;
}

static void read_files(struct jit_symbols *names)
{
    struct jit_budget *budget = names->budget;
    struct jit_owner *owner = names->owner;
    const int64_t began_ns = clock_monotonic_ns();
    if (jit_file_owner_refresh(&names->process))
        read_both(names);
    names->read_ns = owner->read_ns = clock_monotonic_ns();
    budget->next_ns = names->read_ns + PAUSE_TIMES * (names->read_ns - began_ns);
    owner->next_ns = names->read_ns + OWNER_PAUSE_TIMES * (names->read_ns - began_ns);
}

static char *copy_text(struct span text)
{
    char *copy = mem_new(char, text.size + 1);
    memcpy(copy, text.data, text.size);
    return copy;
}

bool jit_symbols_is_due(const struct jit_symbols *names, int64_t now_ns)
{
    if (names->budget->is_closed || now_ns - names->read_ns < READ_PAUSE_NS)
        return false;
    const int64_t present_ns = clock_monotonic_ns();
    return present_ns >= names->budget->next_ns && present_ns >= names->owner->next_ns;
}

void jit_symbols_read(struct jit_symbols *names, const struct jit_source *source)
{
    names->process.shown_id = source->shown_id;
    if (source->jitdump.size && !names->jitdump_path)
        names->jitdump_path = copy_text(source->jitdump);
    read_files(names);
}

void jit_symbols_read_late(struct jit_symbols *names, int64_t since_ns, int64_t until_ns)
{
    if (names->budget->is_closed || names->read_ns >= since_ns)
        return;
    do
        read_files(names);
    while (jitdump_has_more(names->jitdump) && clock_monotonic_ns() < until_ns);
}

static int compare_times(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? -1 : a_ns > b_ns;
}

int jit_symbols_compare_read_order(const struct jit_symbols *a, const struct jit_symbols *b)
{
    const int by_owner = compare_times(a->owner->read_ns, b->owner->read_ns);
    return by_owner ? by_owner : compare_times(a->read_ns, b->read_ns);
}

uint64_t jit_symbols_owner(const struct jit_symbols *names)
{
    return names->owner->number;
}

/* ---- looking up ---- */

bool jit_symbols_are_cut(const struct jit_symbols *names)
{
    return names->is_refused;
}

bool jit_symbols_look_up(const struct jit_symbols *names, uint64_t address,
                         struct jitdump_location *ret_location)
{
    if (jitdump_find(names->jitdump, address, ret_location))
        return true;
    *ret_location = (struct jitdump_location){.function = perf_map_find(names->perf_map, address)};
    return ret_location->function.size > 0;
}
