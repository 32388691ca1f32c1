#include "agent/profile/window.h"

#include "agent/interpreter/interpreter.h"
#include "agent/interpreter/stack_merge.h"
#include "agent/labels/process_labels.h"
#include "agent/process/process.h"
#include "agent/process/processes.h"
#include "agent/profile/idle_times.h"
#include "agent/profile/window_quota.h"
#include "agent/symbols/jit_symbols.h"
#include "agent/symbols/kernel_symbols.h"
#include "agent/symbols/vdso_symbols.h"
#include "bpf/shared.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/profile_builder.h"

#include <stdlib.h>

enum {
    ENTRIES_MAX = 4 << 20, /* locations of all stacks: some 20 MB */
    MEMORY_MAX_BYTES = 256 << 20,
    NAME_MAX_BYTES = 512, /* of names that processes chose */
    /* Else a spool or a disk is as large as the names that processes make up in that time. */
    FULL_TEXT_PAUSE_S = 10,
    UNNAMED_MAX = 65536,
    LATE_MAX_MS = 200, /* of looking names up once more, where the next window waits for it */
    LATE_FOR_PEOPLE_MAX_MS = 5000, /* where each process is asked once, of what that leaves */
    OWN_FRAMES_MAX = 8,
    /* Of an entry of a batch's tables, beside its texts. */
    STRING_BYTES = 4,
    FUNCTION_BYTES = 16,
    LOCATION_BYTES = 20,
    MAPPING_BYTES = 100, /* with its build id */
    VALUES_MAX = 4,
    LABELS_MAX = 3,
    FRAMES_MAX = SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX + INTERPRETED_FRAMES_MAX,
};

/* A sample that others are counted under, as the builder has it. */
struct tallied {
    const uint32_t *stack;
    uint32_t depth;
    uint32_t label_count;
    struct profile_label labels[LABELS_MAX];
};

/* A place in code without a name, and that place as a key: without room between its parts. */
struct unnamed {
    struct jit_symbols *names; /* a reference */
    uint64_t address;
    uint64_t process_id;
    uint64_t is_mapped;
};

/* Whose what is added now is. */
struct window_bringer {
    uint64_t owner;
    uint32_t process_id;
    bool has_room; /* else nothing is added that is not there already */
};

struct window {
    struct window_options options;
    struct profile_builder *builder;
    struct map_u64 kernel_locations;   /* by address */
    struct map_u64 user_locations;     /* by binary and ELF address */
    struct map_bytes script_locations; /* by struct script_key */
    struct map_bytes unnamed_places;   /* by struct unnamed: its place in unnamed */
    struct map_bytes resources;        /* by the labels' key */
    struct map_u64 tallied_numbers;    /* by the sample's key */
    struct map_u64 unwanted_keys;      /* of samples that a rule left out */
    struct tallied *tallied;
    uint32_t tallied_count;
    uint32_t tallied_capacity;
    struct unnamed **unnamed;
    uint32_t *unnamed_locations;
    uint32_t unnamed_count;
    uint32_t unnamed_capacity;
    struct arena *arena; /* of keys and stacks, and the resources themselves */
    struct otlp_resource *resource_list;
    uint32_t resource_count;
    uint32_t resource_capacity;
    uint64_t entry_count;
    uint64_t sample_count;
    uint64_t unwanted_count; /* of all windows */
    struct idle_times *idle_times;
    struct window_quota text;
    struct window_bringer bringer;
    struct profile_builder_counts before; /* what it brings now */
    uint32_t left_out_resource;           /* PROFILE_NONE: there is none yet */
    int64_t begun_ns;                     /* monotonic */
    int64_t start_ns;
    int64_t end_ns; /* 0: it goes on */
    uint32_t thread_key;
    uint32_t process_key;
    uint32_t process_name_key; /* for people alone: of OTLP's resources it is an attribute */
    uint32_t kernel_mapping;
    uint64_t switch_address; /* in __schedule of the kernel, once it was seen */
    uint64_t newest_serial;  /* of the binaries seen */
    uint32_t stack[FRAMES_MAX];
    uint32_t woven[SAMPLE_USER_FRAMES_MAX + INTERPRETED_FRAMES_MAX];
};

/* Of a place in a function of an interpreter: without room between its parts, as it is a key. */
struct script_key {
    uint64_t interpreter; /* its serial */
    uint64_t code;
    uint64_t place;
    uint64_t check;
};

static struct span event_type(const struct window *window)
{
    return window->options.off_cpu == WINDOW_WAITS_AS_WALL
               ? SPAN_LITERAL("wall")
               : span_text(event_facts(window->options.event)->type);
}

static struct span event_unit(const struct window *window)
{
    return span_text(event_facts(window->options.event)->unit);
}

/* ---- life ---- */

static void begin(struct window *window)
{
    const struct profile_limits limits = {.memory_bytes = MEMORY_MAX_BYTES};
    const bool is_otlp = window->options.form == WINDOW_FOR_OTLP;
    struct profile_builder *builder = profile_builder_create(&limits);
    window->builder = builder;
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    if (!is_otlp)
        profile_builder_add_value_type(builder, event_type(window), event_unit(window));
    if (window->options.off_cpu == WINDOW_WAITS_BESIDE && !is_otlp)
        profile_builder_add_value_type(builder, SPAN_LITERAL("waits"), SPAN_LITERAL("count"));
    if (window->options.off_cpu == WINDOW_WAITS_BESIDE)
        profile_builder_add_value_type(builder, SPAN_LITERAL("off_cpu"),
                                       SPAN_LITERAL("nanoseconds"));
    window->thread_key = profile_builder_string(builder, is_otlp ? SPAN_LITERAL("thread.name")
                                                                 : SPAN_LITERAL("thread"));
    window->process_key = profile_builder_string(builder, is_otlp ? span_text(OTLP_RESOURCE_LABEL)
                                                                  : SPAN_LITERAL("pid"));
    window->process_name_key = profile_builder_string(builder, SPAN_LITERAL("process"));
    window->kernel_mapping = profile_builder_mapping(
        builder, &(struct profile_mapping){
                     .filename = profile_builder_string(builder, SPAN_LITERAL("[kernel.kallsyms]")),
                     .has_functions = true});
    window->arena = arena_create();
    window->left_out_resource = PROFILE_NONE;
    window->begun_ns = clock_monotonic_ns();
    window->start_ns = clock_wall_ns();
    window->end_ns = 0;
}

static void forget_unnamed(struct window *window)
{
    for (uint32_t i = 0; i < window->unnamed_count; i++)
        jit_symbols_release(window->unnamed[i]->names);
    window->unnamed_count = 0;
    map_bytes_fini(&window->unnamed_places);
    window->unnamed_places = (struct map_bytes){0};
}

static void end(struct window *window)
{
    forget_unnamed(window);
    map_u64_fini(&window->kernel_locations);
    map_u64_fini(&window->user_locations);
    map_bytes_fini(&window->script_locations);
    map_bytes_fini(&window->resources);
    map_u64_fini(&window->tallied_numbers);
    map_u64_fini(&window->unwanted_keys);
    window->tallied_count = 0;
    window->script_locations = (struct map_bytes){0};
    window->kernel_locations = window->user_locations = (struct map_u64){0};
    window->resources = (struct map_bytes){0};
    window_quota_fini(&window->text);
    arena_destroy(window->arena);
    profile_builder_destroy(window->builder);
    window->resource_list = NULL;
    window->resource_count = window->resource_capacity = 0;
    window->entry_count = window->sample_count = 0;
}

struct window *window_create(const struct window_options *options)
{
    struct window *window = mem_new(struct window, 1);
    window->options = *options;
    window->idle_times = idle_times_create();
    begin(window);
    return window;
}

void window_destroy(struct window *window)
{
    if (!window)
        return;
    end(window);
    idle_times_destroy(window->idle_times);
    mem_free(window->tallied);
    mem_free(window->unnamed);
    mem_free(window->unnamed_locations);
    mem_free(window);
}

/* ---- frames ---- */

static uint32_t named_location(struct window *window, uint32_t mapping, struct span name,
                               struct span file)
{
    struct profile_builder *builder = window->builder;
    const uint32_t text = profile_builder_string(builder, name);
    const struct profile_function function = {
        .name = text, .system_name = text, .filename = profile_builder_string(builder, file)};
    const struct profile_line line = {.function = profile_builder_function(builder, &function)};
    const struct profile_location location = {.mapping = mapping};
    return profile_builder_location(builder, &location, &line, 1);
}

static uint32_t kernel_location(struct window *window, uint64_t address, int64_t now_ns)
{
    uint32_t location = map_u64_find(&window->kernel_locations, address);
    if (location != MAP_ABSENT)
        return location;
    struct kernel_symbol symbol = {.name = SPAN_LITERAL("[unknown kernel function]")};
    (void)kernel_symbols_find(window->options.kernel_symbols, address, now_ns, &symbol);
    location = named_location(window, window->kernel_mapping, symbol.name, symbol.module);
    map_u64_add(&window->kernel_locations, address, location);
    return location;
}

/* ---- what processes bring ---- */

static void set_bringer(struct window *window, uint64_t owner, uint32_t process_id)
{
    const bool is_bounded = window->options.form == WINDOW_FOR_OTLP;
    window->bringer = (struct window_bringer){
        .owner = owner,
        .process_id = process_id,
        .has_room = !is_bounded || window_quota_has_room(&window->text, owner)};
    window->before = profile_builder_count(window->builder);
}

/* What it has brought since. */
static void charge_bringer(struct window *window)
{
    const struct profile_builder_counts now = profile_builder_count(window->builder),
                                        before = window->before;
    const size_t bytes = (size_t)STRING_BYTES * (now.strings - before.strings) +
                         (size_t)FUNCTION_BYTES * (now.functions - before.functions) +
                         (size_t)LOCATION_BYTES * (now.locations - before.locations) +
                         (size_t)MAPPING_BYTES * (now.mappings - before.mappings);
    if (bytes && window->options.form == WINDOW_FOR_OTLP)
        window_quota_charge(&window->text, window->bringer.owner, bytes);
}

/* Is there room for so many bytes of what is not there already? */
static bool take_room(struct window *window, size_t bytes)
{
    const struct window_options *options = &window->options;
    bool is_first = false;
    if (options->form != WINDOW_FOR_OTLP ||
        window_quota_take(&window->text, window->bringer.owner, bytes, &is_first))
        return true;
    if (is_first && options->on_left_out)
        options->on_left_out(options->context, window->bringer.process_id);
    return false;
}

/* PROFILE_NONE: there is no room for it. */
static uint32_t chosen_text(struct window *window, struct span text)
{
    const uint32_t known = profile_builder_find_string(window->builder, text);
    if (known != PROFILE_NONE)
        return known;
    return take_room(window, text.size) ? profile_builder_string(window->builder, text)
                                        : PROFILE_NONE;
}

/* All that has no room is one; that there is such is told. */
static struct profile_line left_out_line(struct window *window)
{
    (void)take_room(window, 1);
    const uint32_t text =
        profile_builder_string(window->builder, SPAN_LITERAL(WINDOW_NAME_LEFT_OUT));
    const struct profile_function function = {.name = text, .system_name = text};
    return (struct profile_line){.function = profile_builder_function(window->builder, &function)};
}

static uint32_t left_out_location(struct window *window)
{
    const struct profile_line line = left_out_line(window);
    const struct profile_location location = {.mapping = PROFILE_NONE};
    return profile_builder_location(window->builder, &location, &line, 1);
}

static uint32_t chosen_location(struct window *window, const struct profile_location *location,
                                const struct profile_line *line)
{
    profile_builder_hold(window->builder, !window->bringer.has_room);
    const uint32_t number = profile_builder_location(window->builder, location, line, line ? 1 : 0);
    profile_builder_hold(window->builder, false);
    return number != PROFILE_NONE ? number : left_out_location(window);
}

static struct profile_line chosen_function(struct window *window,
                                           const struct profile_function *function, uint32_t line)
{
    profile_builder_hold(window->builder, !window->bringer.has_room);
    const uint32_t number = profile_builder_function(window->builder, function);
    profile_builder_hold(window->builder, false);
    return number != PROFILE_NONE ? (struct profile_line){.function = number, .line = line}
                                  : left_out_line(window);
}

/* A line of a function that the process named. All whose names have no room are one. */
static struct profile_line chosen_line(struct window *window, const struct interpreter_name *of)
{
    struct profile_builder *builder = window->builder;
    const uint32_t name = chosen_text(window, span_cut_utf8(of->function, NAME_MAX_BYTES));
    const uint32_t file = name == PROFILE_NONE
                              ? PROFILE_NONE
                              : chosen_text(window, span_cut_utf8(of->file, NAME_MAX_BYTES));
    const bool is_named = name != PROFILE_NONE, has_file = file != PROFILE_NONE;
    const uint32_t text =
        is_named ? name : profile_builder_string(builder, SPAN_LITERAL(WINDOW_NAME_LEFT_OUT));
    const struct profile_function function = {.name = text,
                                              .system_name = text,
                                              .filename = has_file ? file : 0,
                                              .start_line = has_file ? of->first_line : 0};
    return chosen_function(window, &function, has_file ? of->line : 0);
}

/* ---- code made at run time ---- */

static struct profile_line code_line(struct window *window, const struct jitdump_place *place)
{
    return chosen_line(window, &(struct interpreter_name){.function = place->function,
                                                          .file = place->file,
                                                          .line = place->line});
}

/* address: 0, or what keeps it apart from others. */
static uint32_t add_code(struct window *window, const struct jitdump_place *place, uint64_t address)
{
    const struct profile_line line = code_line(window, place);
    const struct profile_location location = {.mapping = PROFILE_NONE, .address = address};
    return chosen_location(window, &location, &line);
}

static uint32_t keep_unnamed(struct window *window, const struct unnamed *unnamed,
                             const struct jitdump_place *place)
{
    if (window->unnamed_count == window->unnamed_capacity) {
        const uint32_t capacity = window->unnamed_capacity ? 2 * window->unnamed_capacity : 64;
        window->unnamed = mem_resize(window->unnamed, capacity, sizeof(struct unnamed *));
        window->unnamed_locations =
            mem_resize(window->unnamed_locations, capacity, sizeof(uint32_t));
        window->unnamed_capacity = capacity;
    }
    struct unnamed *kept = arena_new(window->arena, struct unnamed, 1);
    const uint32_t number = window->unnamed_count++;
    *kept = *unnamed;
    (void)jit_symbols_keep(kept->names);
    map_bytes_add(&window->unnamed_places, span_of(kept, sizeof(*kept)), number);
    window->unnamed[number] = kept;
    return window->unnamed_locations[number] = add_code(window, place, number + UINT64_C(1));
}

/* A location of its own, which may have a name when the window is taken. */
static uint32_t unnamed_location(struct window *window, const struct process *process,
                                 uint64_t address, bool is_mapped)
{
    const struct unnamed unnamed = {.names = process->jit_symbols,
                                    .address = address,
                                    .process_id = process->process_id,
                                    .is_mapped = is_mapped};
    const struct jitdump_place place = {
        .function = is_mapped ? SPAN_LITERAL(WINDOW_CODE_WITHOUT_NAME) : SPAN_LITERAL("[unknown]")};
    const uint32_t known =
        map_bytes_find(&window->unnamed_places, span_of(&unnamed, sizeof(unnamed)));
    if (known != MAP_ABSENT)
        return window->unnamed_locations[known];
    return window->unnamed_count < UNNAMED_MAX && window->bringer.has_room
               ? keep_unnamed(window, &unnamed, &place)
               : add_code(window, &place, 0);
}

/* The path of what the process has mapped as a jitdump; empty: nothing. */
static struct span jitdump_path(const struct window *window, const struct process *process)
{
    for (uint32_t i = 0; i < process->mapping_count; i++) {
        const uint32_t binary = process->mappings[i].binary;
        if (binary == BINARY_NONE)
            continue;
        const struct span path = span_text(binaries_get(window->options.binaries, binary)->path);
        if (jitdump_is_path(path))
            return path;
    }
    return (struct span){0};
}

static void read_names(const struct window *window, struct process *process)
{
    const struct jit_source source = {.shown_id = process->shown_id,
                                      .jitdump = jitdump_path(window, process)};
    jit_symbols_read(process->jit_symbols, &source);
}

static uint32_t code_location(struct window *window, struct process *process, uint64_t address,
                              bool is_mapped, int64_t now_ns)
{
    struct jitdump_place place;
    if (!process->jit_symbols)
        process->jit_symbols = jit_symbols_create(window->options.jit_budget, process->process_id,
                                                  process_owner(process));
    if (jit_symbols_look_up(process->jit_symbols, address, &place))
        return add_code(window, &place, 0);
    if (jit_symbols_is_due(process->jit_symbols, now_ns)) {
        read_names(window, process);
        if (jit_symbols_look_up(process->jit_symbols, address, &place))
            return add_code(window, &place, 0);
    }
    return unnamed_location(window, process, address, is_mapped);
}

/* Where there are more names than were read one of those is most likely its. */
static bool find_late_name(const struct unnamed *unnamed, struct jitdump_place *ret_place)
{
    if (jit_symbols_look_up(unnamed->names, unnamed->address, ret_place))
        return true;
    *ret_place = (struct jitdump_place){.function = SPAN_LITERAL(WINDOW_NAME_LEFT_OUT)};
    return unnamed->is_mapped && jit_symbols_are_cut(unnamed->names);
}

static int compare_turns(const void *a, const void *b)
{
    return jit_symbols_compare_turns(*(struct jit_symbols *const *)a,
                                     *(struct jit_symbols *const *)b);
}

/* There need not be time for all. */
static void read_late(const struct window *window)
{
    const int64_t began_ns = clock_monotonic_ns();
    const bool is_hasty = window->options.form == WINDOW_FOR_OTLP;
    const int64_t until_ns =
        began_ns + (is_hasty ? LATE_MAX_MS : LATE_FOR_PEOPLE_MAX_MS) * CLOCK_NS_PER_MS;
    struct jit_symbols **names = mem_new(struct jit_symbols *, window->unnamed_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < window->unnamed_count; i++) {
        if (!count || names[count - 1] != window->unnamed[i]->names)
            names[count++] = window->unnamed[i]->names;
    }
    qsort(names, count, sizeof(struct jit_symbols *), compare_turns);
    for (uint32_t i = 0; i < count && (!is_hasty || clock_monotonic_ns() < until_ns); i++)
        jit_symbols_read_late(names[i], began_ns, until_ns);
    mem_free(names);
}

/* Compilers write names when they have time, some at the program's end. */
static void name_late(struct window *window)
{
    read_late(window);
    for (uint32_t i = 0; i < window->unnamed_count; i++) {
        const struct unnamed *unnamed = window->unnamed[i];
        struct jitdump_place place;
        const bool is_known = find_late_name(unnamed, &place);
        set_bringer(window, jit_symbols_owner(unnamed->names), (uint32_t)unnamed->process_id);
        const struct profile_line line =
            is_known ? code_line(window, &place) : (struct profile_line){0};
        charge_bringer(window);
        profile_builder_replace_location(window->builder, window->unnamed_locations[i], 0,
                                         is_known ? &line : NULL);
    }
}

/* Locations are found by the number of their binary, which is another's after a while: then all are
 * looked for again. */
static void forget_replaced(struct window *window, const struct binary *binary)
{
    if (binary->serial <= window->newest_serial)
        return;
    window->newest_serial = binary->serial;
    map_u64_fini(&window->user_locations);
    window->user_locations = (struct map_u64){0};
}

static uint32_t binary_mapping(struct window *window, const struct process_mapping *mapping)
{
    struct profile_builder *builder = window->builder;
    const struct binary *binary = binaries_get(window->options.binaries, mapping->binary);
    const uint64_t start = binary_address(binary, mapping->file_offset);
    const uint32_t path = chosen_text(window, span_text(binary->path));
    const struct profile_mapping of_file = {
        .start = start,
        .limit = start + (mapping->limit - mapping->start),
        .offset = mapping->file_offset,
        .filename = path != PROFILE_NONE
                        ? path
                        : profile_builder_string(builder, SPAN_LITERAL(WINDOW_NAME_LEFT_OUT)),
        .build_id = profile_builder_string(builder, span_text(binary->build_id))};
    return profile_builder_mapping(builder, &of_file);
}

static uint32_t binary_location(struct window *window, const struct process *process,
                                const struct process_mapping *mapping, uint64_t address)
{
    const struct binary *binary = binaries_get(window->options.binaries, mapping->binary);
    const uint64_t start = binary_address(binary, mapping->file_offset);
    forget_replaced(window, binary);
    const uint64_t own = start + (address - mapping->start);
    const uint64_t key = (uint64_t)mapping->binary << 48 | (own & ((UINT64_C(1) << 48) - 1));
    uint32_t location = map_u64_find(&window->user_locations, key);
    if (location != MAP_ABSENT)
        return location;
    if (!window->bringer.has_room)
        return left_out_location(window);
    const struct profile_location at = {.address = own, .mapping = binary_mapping(window, mapping)};
    location = profile_builder_location(window->builder, &at, NULL, 0);
    map_u64_add(&window->user_locations, key, location);
    if (window->options.on_binary)
        window->options.on_binary(window->options.context, process, mapping);
    return location;
}

/* A program of 32 bits has another one, below 4 GiB. */
static uint32_t vdso_location(struct window *window, const struct process_mapping *mapping,
                              uint64_t address)
{
    struct span name = {0};
    if (mapping->start > UINT32_MAX)
        name = vdso_symbols_find(address - mapping->start + mapping->file_offset);
    if (!name.size)
        name = SPAN_LITERAL("[vdso]");
    return named_location(window, PROFILE_NONE, name, SPAN_LITERAL("[vdso]"));
}

static uint32_t user_location(struct window *window, struct process *process, uint64_t address,
                              int64_t now_ns)
{
    const struct process_mapping *mapping =
        processes_find_mapping(window->options.processes, process, address);
    if (mapping && mapping->binary != BINARY_NONE)
        return binary_location(window, process, mapping, address);
    if (mapping && mapping->is_vdso)
        return vdso_location(window, mapping, address);
    return code_location(window, process, address, mapping, now_ns);
}

/* ---- frames of interpreters ---- */

static uint32_t script_mapping(struct window *window, const struct interpreter *interpreter)
{
    const struct profile_mapping mapping = {
        .filename =
            profile_builder_string(window->builder, span_text(interpreter_mapping(interpreter))),
        .has_functions = true};
    return profile_builder_mapping(window->builder, &mapping);
}

static uint32_t name_script(struct window *window, const struct process *process,
                            const struct interpreted_frame *frame)
{
    struct interpreter_name name;
    if (!interpreter_find_name(process->interpreter, frame, &name))
        return PROFILE_NONE;
    const struct profile_line line = chosen_line(window, &name);
    const struct profile_location location = {.mapping =
                                                  script_mapping(window, process->interpreter)};
    return chosen_location(window, &location, &line);
}

/* PROFILE_NONE: it is no frame of a function. */
static uint32_t script_location(struct window *window, const struct process *process,
                                const struct interpreted_frame *frame)
{
    const struct script_key key = {.interpreter = interpreter_serial(process->interpreter),
                                   .code = frame->code,
                                   .place = frame->place,
                                   .check = frame->check};
    const uint32_t known = map_bytes_find(&window->script_locations, span_of(&key, sizeof(key)));
    if (known != MAP_ABSENT)
        return known - 1;
    const uint32_t location = name_script(window, process, frame);
    if (!window->bringer.has_room)
        return location;
    struct script_key *kept = arena_new(window->arena, struct script_key, 1);
    *kept = key;
    /* One more, as PROFILE_NONE is no value of the map. */
    map_bytes_add(&window->script_locations, span_of(kept, sizeof(*kept)), location + 1);
    return location;
}

struct call_search {
    const struct interpreter *interpreter;
    const struct sample_event *event;
};

static bool is_call(const void *context, uint32_t native)
{
    const struct call_search *search = context;
    return interpreter_is_call(search->interpreter, search->event->addresses[native]);
}

/* The program's frames, the interpreter's in the places of those that run them. */
static uint32_t merge(struct window *window, struct process *process,
                      const struct sample_event *event)
{
    const struct call_search search = {.interpreter = process->interpreter, .event = event};
    const bool is_ready = event->interpreted_count && interpreter_is_ready(process->interpreter);
    const struct stack_merge of_event = {.native_count = event->user_count,
                                         .frames = sample_interpreted(event),
                                         .frame_count = is_ready ? event->interpreted_count : 0,
                                         .is_call = is_call,
                                         .context = &search};
    return stack_merge_frames(&of_event, window->woven);
}

/* ---- stacks ---- */

static uint32_t woven_location(struct window *window, struct process *process,
                               const struct sample_event *event, uint32_t item)
{
    if (!(item & STACK_MERGE_INTERPRETED))
        return user_location(window, process, event->addresses[item], (int64_t)event->time_ns);
    return script_location(window, process,
                           &sample_interpreted(event)[item & ~STACK_MERGE_INTERPRETED]);
}

/* Of a wait the first frames of the kernel are those of our own program: the one to begin with is
 * that of the function that switches; 0: it is not among them. */
static uint32_t find_switch(struct window *window, const struct sample_event *event)
{
    const __u64 *kernel = event->addresses + event->user_count;
    const uint32_t limit =
        event->kernel_count < OWN_FRAMES_MAX ? event->kernel_count : OWN_FRAMES_MAX;
    for (uint32_t i = 0; i < limit; i++) {
        if (kernel[i] == window->switch_address)
            return i;
    }
    for (uint32_t i = 0; i < limit; i++) {
        struct kernel_symbol symbol;
        if (kernel_symbols_find(window->options.kernel_symbols, kernel[i] - 1,
                                (int64_t)event->time_ns, &symbol) &&
            span_equal_text(symbol.name, "__schedule")) {
            window->switch_address = kernel[i];
            return i;
        }
    }
    return 0;
}

static uint32_t fill_stack(struct window *window, struct process *process,
                           const struct sample_event *event)
{
    const int64_t now_ns = (int64_t)event->time_ns;
    uint32_t depth = 0;
    const __u64 *kernel = event->addresses + event->user_count;
    const uint32_t first = event->kind == SAMPLE_WAIT ? find_switch(window, event) : 0;
    for (uint32_t i = first; i < event->kernel_count && depth < FRAMES_MAX; i++) {
        /* Callers' are return addresses. */
        const uint64_t address = kernel[i] - (i > 0);
        window->stack[depth++] = kernel_location(window, address, now_ns);
    }
    set_bringer(window, process_owner(process), process->process_id); /* not of the kernel's */
    const uint32_t woven_count = merge(window, process, event);
    for (uint32_t i = 0; i < woven_count && depth < FRAMES_MAX; i++) {
        const uint32_t location = woven_location(window, process, event, window->woven[i]);
        if (location != PROFILE_NONE)
            window->stack[depth++] = location;
    }
    if (depth == 0)
        window->stack[depth++] =
            named_location(window, PROFILE_NONE, SPAN_LITERAL("[no stack]"), SPAN_LITERAL(""));
    return depth;
}

/* ---- labels ---- */

/* A bit for each type of begin(), in the form for OTLP. */
static uint32_t all_types(const struct window *window)
{
    return window->options.off_cpu == WINDOW_WAITS_BESIDE ? 3 : 1;
}

static uint32_t put_resource(struct window *window, const struct otlp_resource *resource)
{
    if (window->resource_count == window->resource_capacity) {
        const uint32_t capacity = window->resource_capacity ? 2 * window->resource_capacity : 64;
        struct otlp_resource *grown = arena_new(window->arena, struct otlp_resource, capacity);
        if (window->resource_count)
            memcpy(grown, window->resource_list, window->resource_count * sizeof(*grown));
        window->resource_list = grown;
        window->resource_capacity = capacity;
    }
    window->resource_list[window->resource_count] = *resource;
    return window->resource_count++;
}

/* Of all whose labels have no room. */
static uint32_t left_out_resource(struct window *window)
{
    static const struct batch_text_label service = {.name = SPAN_LITERAL("service.name"),
                                                    .value = SPAN_LITERAL(WINDOW_NAME_LEFT_OUT)};
    if (window->left_out_resource == PROFILE_NONE)
        window->left_out_resource =
            put_resource(window, &(struct otlp_resource){.attributes = &service,
                                                         .attribute_count = 1,
                                                         .idle_types = all_types(window)});
    return window->left_out_resource;
}

/* Labels and their key are copied. */
static uint32_t keep_resource(struct window *window, struct span key,
                              const struct otlp_resource *resource)
{
    const size_t count = resource->attribute_count;
    struct otlp_resource kept = *resource;
    struct batch_text_label *copy = arena_new(window->arena, struct batch_text_label, count);
    for (size_t i = 0; i < count; i++) {
        const struct batch_text_label *from = &resource->attributes[i];
        copy[i].name = span_of(arena_strndup(window->arena, from->name.data, from->name.size),
                               from->name.size);
        copy[i].value = span_of(arena_strndup(window->arena, from->value.data, from->value.size),
                                from->value.size);
    }
    kept.attributes = copy;
    const struct span kept_key =
        span_of(arena_strndup(window->arena, key.data, key.size), key.size);
    return map_bytes_add(&window->resources, kept_key, put_resource(window, &kept));
}

static uint32_t add_resource(struct window *window, const struct process_labels *labels)
{
    const struct span key = process_labels_key(labels);
    const uint32_t known = map_bytes_find(&window->resources, key);
    if (known != MAP_ABSENT)
        return known;
    if (!take_room(window, key.size))
        return left_out_resource(window);
    struct otlp_resource resource = {.idle_types = all_types(window)};
    resource.attributes = process_labels_get(labels, &resource.attribute_count);
    return keep_resource(window, key, &resource);
}

static int64_t process_number(struct window *window, struct process *process)
{
    if (window->options.form == WINDOW_FOR_PEOPLE)
        return process->process_id;
    return add_resource(window, process->labels);
}

static bool is_wanted(const struct window *window, struct process *process)
{
    if (window->options.form == WINDOW_FOR_PEOPLE)
        return true;
    process_labels_renew(&process->labels, window->options.label_source, process);
    return process_labels_are_wanted(process->labels);
}

/* The sample's resource was busy by these types. */
static void note_busy(struct window *window, struct process *process, int64_t resource,
                      const int64_t *values)
{
    if (window->options.form != WINDOW_FOR_OTLP)
        return;
    process->sampled_ns = window->begun_ns;
    for (uint32_t i = 0; i < VALUES_MAX; i++) {
        if (values[i])
            window->resource_list[resource].idle_types &= ~(1U << i);
    }
}

static uint32_t thread_name(struct window *window, const struct sample_event *event)
{
    const struct span name = span_of(event->comm, strnlen(event->comm, sizeof(event->comm)));
    const uint32_t text = chosen_text(window, name);
    return text != PROFILE_NONE
               ? text
               : profile_builder_string(window->builder, SPAN_LITERAL(WINDOW_NAME_LEFT_OUT));
}

static int64_t amount_of(const struct window *window, const struct sample_event *event)
{
    return event_kind_is_time(window->options.event) ? CLOCK_NS_PER_S / window->options.frequency_hz
                                                     : (int64_t)event->amount;
}

/* In the window's arena, which a taken profile keeps. */
static void keep_tallied(struct window *window, uint64_t key, const struct tallied *sample)
{
    if (map_u64_find(&window->tallied_numbers, key) != MAP_ABSENT)
        return;
    vec_reserve(window->tallied, window->tallied_capacity, window->tallied_count + 1);
    uint32_t *stack = arena_new_raw(window->arena, uint32_t, sample->depth);
    memcpy(stack, sample->stack, sample->depth * sizeof(*stack));
    map_u64_add(&window->tallied_numbers, key, window->tallied_count);
    window->tallied[window->tallied_count] = *sample;
    window->tallied[window->tallied_count++].stack = stack;
}

static void add(struct window *window, struct process *process, const struct sample_event *event,
                const int64_t *values)
{
    if (!is_wanted(window, process)) {
        window->unwanted_count++;
        if (event->key)
            map_u64_add(&window->unwanted_keys, event->key, 0);
        return;
    }
    const uint32_t depth = fill_stack(window, process, event);
    const bool is_otlp = window->options.form == WINDOW_FOR_OTLP;
    struct tallied sample = {.stack = window->stack, .depth = depth};
    const struct profile_label labels[LABELS_MAX] = {
        {.key = window->thread_key, .text = thread_name(window, event)},
        {.key = window->process_key, .number = process_number(window, process), .is_numeric = true},
        {.key = window->process_name_key,
         .text = is_otlp ? 0 : profile_builder_string(window->builder, span_text(process->name))},
    };
    charge_bringer(window);
    note_busy(window, process, labels[1].number, values);
    sample.label_count = is_otlp || !process->name[0] ? 2 : 3;
    memcpy(sample.labels, labels, sizeof(labels));
    profile_builder_add_sample(window->builder, window->stack, depth, values, labels,
                               sample.label_count);
    if (event->key)
        keep_tallied(window, event->key, &sample);
    window->entry_count += depth;
    window->sample_count++;
}

/* The values are those of the types of begin(). */
void window_add(struct window *window, struct process *process, const struct sample_event *event)
{
    const bool is_otlp = window->options.form == WINDOW_FOR_OTLP;
    const int64_t amount = is_otlp ? 0 : amount_of(window, event);
    add(window, process, event, (const int64_t[VALUES_MAX]){1, amount});
}

void window_add_tally(struct window *window, uint64_t key, const struct sample_tally *tally)
{
    const uint32_t number = map_u64_find(&window->tallied_numbers, key);
    if (number == MAP_ABSENT) { /* its process is unwanted, or there are too many of them */
        if (map_u64_find(&window->unwanted_keys, key) != MAP_ABSENT)
            window->unwanted_count += tally->samples;
        return;
    }
    const struct tallied *sample = &window->tallied[number];
    const bool is_time = event_kind_is_time(window->options.event);
    const int64_t samples = (int64_t)tally->samples;
    const int64_t amount = is_time ? samples * (CLOCK_NS_PER_S / window->options.frequency_hz)
                                   : (int64_t)tally->amount;
    const bool is_otlp = window->options.form == WINDOW_FOR_OTLP;
    profile_builder_add_sample(window->builder, sample->stack, sample->depth,
                               (const int64_t[VALUES_MAX]){samples, is_otlp ? 0 : amount},
                               sample->labels, sample->label_count);
    window->sample_count += tally->samples;
}

void window_add_wait(struct window *window, struct process *process,
                     const struct sample_event *event, int64_t waited_ns)
{
    const double share = window->options.off_cpu_share;
    const int64_t all_ns = (int64_t)((double)waited_ns / share);
    const int64_t count = (int64_t)(1 / share + 0.5);
    if (window->options.form == WINDOW_FOR_OTLP)
        add(window, process, event, (const int64_t[VALUES_MAX]){0, all_ns});
    else if (window->options.off_cpu == WINDOW_WAITS_AS_WALL)
        add(window, process, event, (const int64_t[VALUES_MAX]){count, all_ns});
    else
        add(window, process, event, (const int64_t[VALUES_MAX]){0, 0, count, all_ns});
}

uint64_t window_unwanted(const struct window *window)
{
    return window->unwanted_count;
}

bool window_has_samples(const struct window *window)
{
    return window->sample_count > 0;
}

void window_begin_time(struct window *window)
{
    window->start_ns = clock_wall_ns();
}

void window_end_time(struct window *window)
{
    window->end_ns = clock_wall_ns();
}

bool window_is_full(const struct window *window)
{
    const int64_t age_ns = clock_monotonic_ns() - window->begun_ns;
    return window->entry_count > ENTRIES_MAX || profile_builder_failed(window->builder) ||
           (window_quota_is_full(&window->text) && age_ns > FULL_TEXT_PAUSE_S * CLOCK_NS_PER_S);
}

/* ---- taking ---- */

static void describe(struct window *window, int64_t end_ns)
{
    struct profile *profile = profile_builder_fields(window->builder);
    const bool is_otlp = window->options.form == WINDOW_FOR_OTLP;
    const uint32_t type = profile_builder_string(window->builder, event_type(window));
    profile->period_type.type = type;
    profile->period_type.unit = profile_builder_string(window->builder, event_unit(window));
    /* How many events come between two samples changes with how often they come. */
    profile->period = event_kind_is_time(window->options.event)
                          ? CLOCK_NS_PER_S / window->options.frequency_hz
                          : 0;
    profile->time_ns = window->start_ns;
    /* A clock that was set back must not make a duration that is none. */
    profile->duration_ns = end_ns > window->start_ns ? end_ns - window->start_ns : 1;
    if (!is_otlp)
        profile->default_sample_type =
            window->options.off_cpu == WINDOW_WAITS_BESIDE
                ? profile_builder_string(window->builder, SPAN_LITERAL("off_cpu"))
                : type;
}

/* Its mapping; where there is none the first one after the kernel's. */
static uint32_t main_mapping(struct window *window, const struct process *main)
{
    for (uint32_t i = 0; main && i < main->mapping_count; i++) {
        const struct process_mapping *mapping = &main->mappings[i];
        if (mapping->binary != BINARY_NONE && mapping->binary == main->program)
            return binary_mapping(window, mapping);
    }
    return window->kernel_mapping + 1;
}

/* ---- idle time ---- */

/* The window that ends, for processes that were idle in it. */
struct idle_window {
    struct window *window;
    uint32_t busy_count; /* resources that have samples: those before others */
    int64_t end_ns;
};

static void add_idle_time(void *context, const struct idle_time *time)
{
    struct window *window = context;
    uint32_t number = map_bytes_find(&window->resources, time->key);
    set_bringer(window, time->owner, time->process_id);
    if (number == MAP_ABSENT && !take_room(window, time->key.size))
        return;
    if (number == MAP_ABSENT)
        number = keep_resource(window, time->key,
                               &(struct otlp_resource){.attributes = time->labels,
                                                       .attribute_count = time->label_count});
    window->resource_list[number].idle_time_ns = time->begin_ns;
    window->resource_list[number].idle_duration_ns = time->end_ns - time->begin_ns;
}

/* It lives, and has run before; of equal labels another process may have run in this window. */
static void note_idle(void *context, struct process *process)
{
    const struct idle_window *idle = context;
    struct window *window = idle->window;
    const bool has_run = process->sampled_ns && process->sampled_ns != window->begun_ns;
    if (!has_run || process->is_kernel_thread || !process_is_alive(process) ||
        !is_wanted(window, process))
        return;
    struct idle_time time = {.key = process_labels_key(process->labels),
                             .owner = process_owner(process),
                             .process_id = process->process_id,
                             .begin_ns = window->start_ns,
                             .end_ns = idle->end_ns};
    const uint32_t known = map_bytes_find(&window->resources, time.key);
    if (known != MAP_ABSENT && known < idle->busy_count)
        return;
    time.labels = process_labels_get(process->labels, &time.label_count);
    if (!idle_times_add(window->idle_times, &time))
        add_idle_time(window, &time);
}

static void report_idle(struct window *window, int64_t end_ns)
{
    struct idle_window idle = {
        .window = window, .busy_count = window->resource_count, .end_ns = end_ns};
    if (window->options.form != WINDOW_FOR_OTLP || end_ns <= window->start_ns)
        return;
    processes_each(window->options.processes, note_idle, &idle);
    idle_times_report(window->idle_times, window->start_ns, end_ns, window->end_ns != 0,
                      add_idle_time, window);
}

static void destroy_arena(void *arena)
{
    arena_destroy(arena);
}

enum err_code window_take(struct window *window, const struct process *main,
                          struct window_result *ret_result, struct err *err)
{
    struct window_result result = {.start_ns = window->start_ns,
                                   .end_ns = window->end_ns ? window->end_ns : clock_wall_ns(),
                                   .samples = window->sample_count};
    name_late(window);
    report_idle(window, result.end_ns);
    result.resources = window->resource_list;
    result.resource_count = window->resource_count;
    describe(window, result.end_ns);
    const uint32_t first = main_mapping(window, main);
    enum err_code code = profile_builder_take(window->builder, &result.profile, err);
    if (!code) {
        arena_on_destroy(result.profile->arena, destroy_arena, window->arena);
        window->arena = NULL;
        if (window->options.form == WINDOW_FOR_PEOPLE && first < result.profile->mapping_count)
            profile_put_mapping_first(result.profile, first);
        *ret_result = result;
    }
    const bool was_sampling = window->end_ns == 0;
    end(window);
    begin(window);
    /* Windows follow each other without a gap: samples of the time in which this one was described
     * are in the next one. A clock that was set back begins anew. */
    if (was_sampling && result.end_ns < window->start_ns)
        window->start_ns = result.end_ns;
    return code;
}

void window_result_fini(struct window_result *result)
{
    profile_destroy(result->profile);
    result->profile = NULL;
}
