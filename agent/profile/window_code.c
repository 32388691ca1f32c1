#include "agent/profile/window_code.h"

#include "agent/interpreter/interpreter.h"
#include "agent/process/binaries.h"
#include "agent/process/process.h"
#include "agent/profile/window.h"
#include "agent/profile/window_builder.h"
#include "agent/symbols/jit_symbols.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <stdlib.h>

enum { UNNAMED_MAX = 65536, SHORT_READ_MAX_MS = 200, LONG_READ_MAX_MS = 5000 };

/* An address without a name. Its bytes are the key of a map, so all members have 8 bytes: there is
 * no padding. */
struct unnamed {
    struct jit_symbols *names; /* a reference */
    uint64_t address;
    uint64_t process_id;
    uint64_t is_mapped;
};

struct window_code {
    struct window_builder *builder;
    const struct binaries *binaries;
    struct jit_budget *budget;
    struct arena *arena;              /* has the unnamed addresses; NULL: there are none */
    struct map_bytes unnamed_indexes; /* from a struct unnamed to its index in the arrays */
    struct unnamed **unnamed;
    uint32_t *unnamed_locations;
    uint32_t unnamed_count;
    uint32_t unnamed_capacity;
};

struct window_code *window_code_create(struct window_builder *builder,
                                       const struct binaries *binaries, struct jit_budget *budget)
{
    struct window_code *code = mem_new(struct window_code, 1);
    code->builder = builder;
    code->binaries = binaries;
    code->budget = budget;
    return code;
}

void window_code_destroy(struct window_code *code)
{
    if (!code)
        return;
    window_code_clear(code);
    mem_free(code->unnamed);
    mem_free(code->unnamed_locations);
    mem_free(code);
}

void window_code_clear(struct window_code *code)
{
    for (uint32_t i = 0; i < code->unnamed_count; i++)
        jit_symbols_release(code->unnamed[i]->names);
    code->unnamed_count = 0;
    map_bytes_fini(&code->unnamed_indexes);
    code->unnamed_indexes = (struct map_bytes){0};
    arena_destroy(code->arena);
    code->arena = NULL;
}

static struct profile_line line_of(struct window_code *code, const struct jitdump_location *symbol)
{
    return window_builder_line(code->builder,
                               &(struct interpreter_name){.function = symbol->function,
                                                          .file = symbol->file,
                                                          .line = symbol->line});
}

/* distinguisher: 0, or a number that keeps the location apart from others of the same line. */
static uint32_t location_of(struct window_code *code, const struct jitdump_location *symbol,
                            uint64_t distinguisher)
{
    const struct profile_line line = line_of(code, symbol);
    const struct profile_location location = {.mapping = PROFILE_NONE, .address = distinguisher};
    return window_builder_location(code->builder, &location, &line);
}

static uint32_t keep_unnamed(struct window_code *code, const struct unnamed *unnamed,
                             const struct jitdump_location *symbol)
{
    if (code->unnamed_count == code->unnamed_capacity) {
        const size_t capacity = vec_grow_capacity(code->unnamed_capacity, code->unnamed_count + 1,
                                                  sizeof(struct unnamed *), UINT32_MAX);
        code->unnamed = mem_resize(code->unnamed, capacity, sizeof(struct unnamed *));
        code->unnamed_locations = mem_resize(code->unnamed_locations, capacity, sizeof(uint32_t));
        code->unnamed_capacity = (uint32_t)capacity;
    }
    if (!code->arena)
        code->arena = arena_create();
    struct unnamed *kept = arena_new(code->arena, struct unnamed, 1);
    const uint32_t number = code->unnamed_count++;
    *kept = *unnamed;
    (void)jit_symbols_keep(kept->names);
    map_bytes_add(&code->unnamed_indexes, span_of(kept, sizeof(*kept)), number);
    code->unnamed[number] = kept;
    return code->unnamed_locations[number] = location_of(code, symbol, number + UINT64_C(1));
}

static uint32_t unnamed_location(struct window_code *code, const struct process *process,
                                 uint64_t address, bool is_mapped)
{
    const struct unnamed unnamed = {.names = process->jit_symbols,
                                    .address = address,
                                    .process_id = process->process_id,
                                    .is_mapped = is_mapped};
    const struct jitdump_location symbol = {
        .function = is_mapped ? SPAN_LITERAL(WINDOW_CODE_WITHOUT_NAME) : SPAN_LITERAL("[unknown]")};
    const uint32_t known =
        map_bytes_find(&code->unnamed_indexes, span_of(&unnamed, sizeof(unnamed)));
    if (known != MAP_ABSENT)
        return code->unnamed_locations[known];
    return code->unnamed_count < UNNAMED_MAX && code->builder->owner_has_space
               ? keep_unnamed(code, &unnamed, &symbol)
               : location_of(code, &symbol, 0);
}

/* The path of the jitdump that the process has mapped; empty: none. */
static struct span jitdump_path(const struct window_code *code, const struct process *process)
{
    for (uint32_t i = 0; i < process->mapping_count; i++) {
        const uint32_t binary = process->mappings[i].binary;
        if (binary == BINARY_NONE)
            continue;
        const struct span path = span_text(binaries_get(code->binaries, binary)->path);
        if (jitdump_is_path(path))
            return path;
    }
    return (struct span){0};
}

static void read_names(const struct window_code *code, struct process *process)
{
    const struct jit_source source = {.shown_id = process->shown_id,
                                      .jitdump = jitdump_path(code, process)};
    jit_symbols_read(process->jit_symbols, &source);
}

uint32_t window_code_location(struct window_code *code, struct process *process, uint64_t address,
                              bool is_mapped, int64_t now_ns)
{
    struct jitdump_location symbol;
    if (!process->jit_symbols)
        process->jit_symbols =
            jit_symbols_create(code->budget, process->process_id, process_owner(process));
    if (jit_symbols_look_up(process->jit_symbols, address, &symbol))
        return location_of(code, &symbol, 0);
    if (jit_symbols_is_due(process->jit_symbols, now_ns)) {
        read_names(code, process);
        if (jit_symbols_look_up(process->jit_symbols, address, &symbol))
            return location_of(code, &symbol, 0);
    }
    return unnamed_location(code, process, address, is_mapped);
}

/* If the process has more names than were read, an address without a name most likely has one of
 * those, and is called WINDOW_NAME_LEFT_OUT. */
static bool find_late_name(const struct unnamed *unnamed, struct jitdump_location *ret_location)
{
    if (jit_symbols_look_up(unnamed->names, unnamed->address, ret_location))
        return true;
    *ret_location = (struct jitdump_location){.function = SPAN_LITERAL(WINDOW_NAME_LEFT_OUT)};
    return unnamed->is_mapped && jit_symbols_are_cut(unnamed->names);
}

static int compare_read_order(const void *a, const void *b)
{
    return jit_symbols_compare_read_order(*(struct jit_symbols *const *)a,
                                          *(struct jit_symbols *const *)b);
}

/* Reads the files of all processes with unnamed addresses. The time may not suffice for all of
 * them, so the least recently read owners come first. */
static void read_names_late(const struct window_code *code, bool is_short)
{
    const int64_t began_ns = clock_monotonic_ns();
    const int64_t until_ns =
        began_ns + (is_short ? SHORT_READ_MAX_MS : LONG_READ_MAX_MS) * CLOCK_NS_PER_MS;
    struct jit_symbols **names = mem_new(struct jit_symbols *, code->unnamed_count);
    uint32_t count = 0;
    /* Drops only neighbours that are equal: a second late read of one process does nothing. */
    for (uint32_t i = 0; i < code->unnamed_count; i++) {
        if (!count || names[count - 1] != code->unnamed[i]->names)
            names[count++] = code->unnamed[i]->names;
    }
    qsort(names, count, sizeof(struct jit_symbols *), compare_read_order);
    for (uint32_t i = 0; i < count && (!is_short || clock_monotonic_ns() < until_ns); i++)
        jit_symbols_read_late(names[i], began_ns, until_ns);
    mem_free(names);
}

void window_code_name_late(struct window_code *code, bool is_short)
{
    struct window_builder *builder = code->builder;
    read_names_late(code, is_short);
    for (uint32_t i = 0; i < code->unnamed_count; i++) {
        const struct unnamed *unnamed = code->unnamed[i];
        struct jitdump_location symbol;
        const bool is_known = find_late_name(unnamed, &symbol);
        window_builder_set_owner(builder, jit_symbols_owner(unnamed->names),
                                 (uint32_t)unnamed->process_id);
        const struct profile_line line =
            is_known ? line_of(code, &symbol) : (struct profile_line){0};
        window_builder_charge(builder);
        profile_builder_replace_location(builder->profile, code->unnamed_locations[i], 0,
                                         is_known ? &line : NULL);
    }
}
