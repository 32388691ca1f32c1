#include "agent/profile/window_stack.h"

#include "agent/interpreter/interpreter.h"
#include "agent/interpreter/stack_merge.h"
#include "agent/process/process.h"
#include "agent/process/processes.h"
#include "agent/profile/window.h"
#include "agent/profile/window_builder.h"
#include "agent/profile/window_code.h"
#include "agent/symbols/kernel_symbols.h"
#include "agent/symbols/vdso_symbols.h"
#include "bpf/shared.h"
#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

enum {
    OWN_FRAMES_MAX = 8, /* kernel frames of our own program on top of an off-CPU stack */
    FRAMES_MAX = SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX + INTERPRETED_FRAMES_MAX,
};

/* A position in an interpreted function. Its bytes are the key of a map, so all members have 8
 * bytes: there is no padding. */
struct interpreted_key {
    uint64_t interpreter; /* its serial */
    uint64_t code;
    uint64_t position;
    uint64_t check;
};

struct window_stack {
    const struct window_options *options;
    struct window_builder *builder;
    struct window_code *code;
    struct map_u64 kernel_locations;        /* by address */
    struct map_u64 binary_locations;        /* by binary and ELF address */
    struct map_bytes interpreted_locations; /* by struct interpreted_key: location + 1 */
    struct arena *arena;                    /* holds the keys of interpreted_locations */
    uint32_t kernel_mapping;
    uint64_t switch_address; /* return address in __schedule; 0: no off-CPU sample was seen yet */
    uint64_t newest_serial;  /* of the binaries in binary_locations */
    uint32_t locations[FRAMES_MAX];
    uint32_t merged[SAMPLE_USER_FRAMES_MAX + INTERPRETED_FRAMES_MAX];
};

static void clear_locations(struct window_stack *stack)
{
    map_u64_fini(&stack->kernel_locations);
    map_u64_fini(&stack->binary_locations);
    map_bytes_fini(&stack->interpreted_locations);
    arena_destroy(stack->arena);
    stack->kernel_locations = stack->binary_locations = (struct map_u64){0};
    stack->interpreted_locations = (struct map_bytes){0};
    stack->arena = NULL;
}

struct window_stack *window_stack_create(const struct window_options *options,
                                         struct window_builder *builder, struct window_code *code)
{
    struct window_stack *stack = mem_new(struct window_stack, 1);
    stack->options = options;
    stack->builder = builder;
    stack->code = code;
    return stack;
}

void window_stack_destroy(struct window_stack *stack)
{
    if (!stack)
        return;
    clear_locations(stack);
    mem_free(stack);
}

void window_stack_begin(struct window_stack *stack)
{
    struct profile_builder *profile = stack->builder->profile;
    clear_locations(stack);
    stack->arena = arena_create();
    stack->kernel_mapping = profile_builder_mapping(
        profile, &(struct profile_mapping){
                     .filename = profile_builder_string(profile, SPAN_LITERAL("[kernel.kallsyms]")),
                     .has_functions = true});
}

uint32_t window_stack_kernel_mapping(const struct window_stack *stack)
{
    return stack->kernel_mapping;
}

/* ---- kernel frames ---- */

static uint32_t kernel_location(struct window_stack *stack, uint64_t address, int64_t now_ns)
{
    uint32_t location = map_u64_find(&stack->kernel_locations, address);
    if (location != MAP_ABSENT)
        return location;
    struct kernel_symbol symbol = {.name = SPAN_LITERAL("[unknown kernel function]")};
    (void)kernel_symbols_find(stack->options->kernel_symbols, address, now_ns, &symbol);
    location = window_builder_named_location(stack->builder, stack->kernel_mapping, symbol.name,
                                             symbol.module);
    map_u64_add(&stack->kernel_locations, address, location);
    return location;
}

/* The index of the kernel frame in __schedule, where an off-CPU stack begins; 0: it is not among
 * the first frames. All switches have the same return address in it, which is remembered. */
static uint32_t find_switch(struct window_stack *stack, const struct sample_event *event)
{
    const __u64 *kernel = event->addresses + event->user_count;
    const uint32_t limit =
        event->kernel_count < OWN_FRAMES_MAX ? event->kernel_count : OWN_FRAMES_MAX;
    for (uint32_t i = 0; i < limit; i++) {
        if (kernel[i] == stack->switch_address)
            return i;
    }
    for (uint32_t i = 0; i < limit; i++) {
        struct kernel_symbol symbol;
        if (kernel_symbols_find(stack->options->kernel_symbols, kernel[i] - 1,
                                (int64_t)event->time_ns, &symbol) &&
            span_equal_text(symbol.name, "__schedule")) {
            stack->switch_address = kernel[i];
            return i;
        }
    }
    return 0;
}

static uint32_t add_kernel_frames(struct window_stack *stack, const struct sample_event *event)
{
    uint32_t depth = 0;
    const __u64 *kernel = event->addresses + event->user_count;
    const uint32_t first = event->kind == SAMPLE_SWITCH_OUT ? find_switch(stack, event) : 0;
    for (uint32_t i = first; i < event->kernel_count && depth < FRAMES_MAX; i++) {
        /* All but the leaf are return addresses, which follow the call. */
        const uint64_t address = kernel[i] - (i > 0);
        stack->locations[depth++] = kernel_location(stack, address, (int64_t)event->time_ns);
    }
    return depth;
}

/* ---- native user frames ---- */

/* Locations are found by the number of their binary. A number that was freed is given to another
 * binary, with a higher serial: the locations of all binaries are then looked up again. */
static void forget_if_newer(struct window_stack *stack, const struct binary *binary)
{
    if (binary->serial <= stack->newest_serial)
        return;
    stack->newest_serial = binary->serial;
    map_u64_fini(&stack->binary_locations);
    stack->binary_locations = (struct map_u64){0};
}

uint32_t window_stack_mapping(struct window_stack *stack, const struct process_mapping *mapping)
{
    struct profile_builder *profile = stack->builder->profile;
    const struct binary *binary = binaries_get(stack->options->binaries, mapping->binary);
    const uint64_t start = binary_address(binary, mapping->file_offset);
    const struct profile_mapping of_file = {
        .start = start,
        .limit = start + (mapping->limit - mapping->start),
        .offset = mapping->file_offset,
        .filename = window_builder_text_or_left_out(stack->builder, span_text(binary->path)),
        .build_id = profile_builder_string(profile, span_text(binary->build_id))};
    return profile_builder_mapping(profile, &of_file);
}

static uint32_t binary_location(struct window_stack *stack, const struct process *process,
                                const struct process_mapping *mapping, uint64_t address)
{
    const struct window_options *options = stack->options;
    const struct binary *binary = binaries_get(options->binaries, mapping->binary);
    const uint64_t start = binary_address(binary, mapping->file_offset);
    forget_if_newer(stack, binary);
    const uint64_t elf_address = start + (address - mapping->start);
    const uint64_t key =
        (uint64_t)mapping->binary << 48 | (elf_address & ((UINT64_C(1) << 48) - 1));
    uint32_t location = map_u64_find(&stack->binary_locations, key);
    if (location != MAP_ABSENT)
        return location;
    if (!stack->builder->owner_has_space)
        return window_builder_left_out_location(stack->builder);
    const struct profile_location added = {.address = elf_address,
                                           .mapping = window_stack_mapping(stack, mapping)};
    location = profile_builder_location(stack->builder->profile, &added, NULL, 0);
    map_u64_add(&stack->binary_locations, key, location);
    if (options->on_binary)
        options->on_binary(options->context, process, mapping);
    return location;
}

/* The symbols are those of our own, 64-bit vDSO. A 32-bit program has another one, mapped below
 * 4 GiB. */
static uint32_t vdso_location(struct window_stack *stack, const struct process_mapping *mapping,
                              uint64_t address)
{
    struct span name = {0};
    if (mapping->start > UINT32_MAX)
        name = vdso_symbols_find(address - mapping->start + mapping->file_offset);
    if (!name.size)
        name = SPAN_LITERAL("[vdso]");
    return window_builder_named_location(stack->builder, PROFILE_NONE, name,
                                         SPAN_LITERAL("[vdso]"));
}

static uint32_t native_location(struct window_stack *stack, struct process *process,
                                uint64_t address, int64_t now_ns)
{
    const struct process_mapping *mapping =
        processes_find_mapping(stack->options->processes, process, address);
    if (mapping && mapping->binary != BINARY_NONE)
        return binary_location(stack, process, mapping, address);
    if (mapping && mapping->is_vdso)
        return vdso_location(stack, mapping, address);
    return window_code_location(stack->code, process, address, mapping, now_ns);
}

/* ---- interpreted frames ---- */

static uint32_t interpreter_profile_mapping(struct window_stack *stack,
                                            const struct interpreter *interpreter)
{
    struct profile_builder *profile = stack->builder->profile;
    const struct profile_mapping mapping = {
        .filename = profile_builder_string(profile, span_text(interpreter_mapping(interpreter))),
        .has_functions = true};
    return profile_builder_mapping(profile, &mapping);
}

static uint32_t add_interpreted_location(struct window_stack *stack, const struct process *process,
                                         const struct interpreted_frame *frame)
{
    struct interpreter_name name;
    if (!interpreter_find_name(process->interpreter, frame, &name))
        return PROFILE_NONE;
    const struct profile_line line = window_builder_line(stack->builder, &name);
    const struct profile_location location = {
        .mapping = interpreter_profile_mapping(stack, process->interpreter)};
    return window_builder_location(stack->builder, &location, &line);
}

/* PROFILE_NONE: the frame is the interpreter's own and belongs to no function of the program. */
static uint32_t interpreted_location(struct window_stack *stack, const struct process *process,
                                     const struct interpreted_frame *frame)
{
    const struct interpreted_key key = {.interpreter = interpreter_serial(process->interpreter),
                                        .code = frame->code,
                                        .position = frame->position,
                                        .check = frame->check};
    const uint32_t known =
        map_bytes_find(&stack->interpreted_locations, span_of(&key, sizeof(key)));
    if (known != MAP_ABSENT)
        return known - 1;
    const uint32_t location = add_interpreted_location(stack, process, frame);
    if (!stack->builder->owner_has_space)
        return location;
    struct interpreted_key *kept = arena_new(stack->arena, struct interpreted_key, 1);
    *kept = key;
    /* One more, because PROFILE_NONE is MAP_ABSENT and cannot be a value. */
    map_bytes_add(&stack->interpreted_locations, span_of(kept, sizeof(*kept)), location + 1);
    return location;
}

/* ---- the whole stack ---- */

struct call_search {
    const struct interpreter *interpreter;
    const struct sample_event *event;
};

static bool is_call(const void *context, uint32_t native)
{
    const struct call_search *search = context;
    return interpreter_is_call(search->interpreter, search->event->addresses[native]);
}

/* Fills stack->merged with the order of native and interpreted frames. */
static uint32_t merge_frames(struct window_stack *stack, const struct process *process,
                             const struct sample_event *event)
{
    const struct call_search search = {.interpreter = process->interpreter, .event = event};
    const bool is_ready = event->interpreted_count && interpreter_is_ready(process->interpreter);
    const struct stack_merge merge = {.native_count = event->user_count,
                                      .frames = sample_interpreted(event),
                                      .frame_count = is_ready ? event->interpreted_count : 0,
                                      .is_call = is_call,
                                      .context = &search};
    return stack_merge_frames(&merge, stack->merged);
}

static uint32_t merged_location(struct window_stack *stack, struct process *process,
                                const struct sample_event *event, uint32_t item)
{
    if (!(item & STACK_MERGE_INTERPRETED))
        return native_location(stack, process, event->addresses[item], (int64_t)event->time_ns);
    return interpreted_location(stack, process,
                                &sample_interpreted(event)[item & ~STACK_MERGE_INTERPRETED]);
}

const uint32_t *window_stack_find(struct window_stack *stack, struct process *process,
                                  const struct sample_event *event, uint32_t *ret_depth)
{
    uint32_t depth = add_kernel_frames(stack, event);
    /* The owner is set after the kernel's frames were added, which are charged to no owner. */
    window_builder_set_owner(stack->builder, process_owner(process), process->process_id);
    const uint32_t merged_count = merge_frames(stack, process, event);
    for (uint32_t i = 0; i < merged_count && depth < FRAMES_MAX; i++) {
        const uint32_t location = merged_location(stack, process, event, stack->merged[i]);
        if (location != PROFILE_NONE)
            stack->locations[depth++] = location;
    }
    if (depth == 0)
        stack->locations[depth++] = window_builder_named_location(
            stack->builder, PROFILE_NONE, SPAN_LITERAL("[no stack]"), SPAN_LITERAL(""));
    *ret_depth = depth;
    return stack->locations;
}
