/*
 * One window collects the samples between two calls of window_take():
 *
 *   sample -> is_wanted: relabelling rules -> window_stack: addresses to locations of the profile
 *          -> labels: thread, process or resource -> profile_builder_add_sample: equal ones are
 *          summed
 *
 * Quotas (OTLP): names and table entries that the sampled process caused are charged to its owner:
 *
 *   kernel frames                 charged to no owner
 *   window_builder_set_owner  \
 *   user frames, thread name   |  texts when they are added, table entries together at the end
 *   resource (labels)          |
 *   window_builder_charge     /
 *
 * Example: a sample adds 2 functions with names of 20 bytes in one file whose path has 30 bytes,
 * and 2 locations in a known mapping. Its owner is charged 20 + 20 + 30 bytes for the texts, 3 * 4
 * for their entries, 2 * 16 for the functions and 2 * 20 for the locations, 154 bytes in all. The
 * next sample of these functions costs nothing, even if it has another owner.
 */
#include "agent/profile/window.h"

#include "agent/labels/process_labels.h"
#include "agent/process/process.h"
#include "agent/process/processes.h"
#include "agent/profile/idle_times.h"
#include "agent/profile/window_builder.h"
#include "agent/profile/window_code.h"
#include "agent/profile/window_resources.h"
#include "agent/profile/window_stack.h"
#include "agent/profile/window_time.h"
#include "bpf/shared.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

enum {
    ENTRIES_MAX = 4 << 20, /* locations of all stacks: about 20 MB */
    MEMORY_MAX_BYTES = 256 << 20,
    /* Minimum time between two windows that are taken early because they are full of texts.
     * Otherwise a program that generates names would fill the spool with them. */
    FULL_TEXT_PAUSE_S = 10,
    VALUES_MAX = 4,
    LABELS_MAX = 3,
};

/* The sample that a key of the kernel's counts stands for (window_add_tally). */
struct tallied_sample {
    const uint32_t *stack;
    uint32_t depth;
    uint32_t label_count;
    struct profile_label labels[LABELS_MAX];
};

struct window {
    struct window_options options;
    struct window_builder builder;
    struct window_code *code;
    struct window_stack *stack;
    struct window_resources resources;
    struct idle_times *idle_times;
    struct arena *arena; /* of tallied stacks and resources; the taken profile keeps it */

    /* Samples that the kernel counts, by their key. */
    struct map_u64 tallied_numbers; /* index in tallied */
    struct map_u64 unwanted_keys;   /* keys of samples that a rule dropped */
    struct tallied_sample *tallied;
    uint32_t tallied_count;
    uint32_t tallied_capacity;

    uint64_t entry_count;
    uint64_t sample_count;
    uint64_t unwanted_count; /* samples of all windows that a rule dropped */
    int64_t begun_ns;        /* monotonic; identifies the window */
    struct window_time begin;
    struct window_time end; /* zeros: the window has not ended yet */
    uint32_t thread_key;
    uint32_t process_key;
    uint32_t process_name_key; /* for people; the resources of OTLP have it as an attribute */
};

static bool is_for_otlp(const struct window *window)
{
    return window->options.form == WINDOW_FOR_OTLP;
}

static struct span event_type(const struct window *window)
{
    return window->options.off_cpu == WINDOW_OFF_CPU_AS_WALL
               ? SPAN_LITERAL("wall")
               : span_text(event_facts(window->options.event)->type);
}

static struct span event_unit(const struct window *window)
{
    return span_text(event_facts(window->options.event)->unit);
}

/* ---- life ---- */

/*
 * The sample types, in the order of a sample's values:
 *
 *                 OTLP               people
 *   without       samples            samples, event
 *   separate      samples, off_cpu   samples, event, waits, off_cpu
 *   as wall       samples            samples, wall
 */
static void add_value_types(struct window *window)
{
    struct profile_builder *profile = window->builder.profile;
    const bool is_otlp = is_for_otlp(window);
    const bool has_off_cpu = window->options.off_cpu == WINDOW_OFF_CPU_SEPARATE;
    profile_builder_add_value_type(profile, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    if (!is_otlp)
        profile_builder_add_value_type(profile, event_type(window), event_unit(window));
    if (has_off_cpu && !is_otlp)
        profile_builder_add_value_type(profile, SPAN_LITERAL("waits"), SPAN_LITERAL("count"));
    if (has_off_cpu)
        profile_builder_add_value_type(profile, SPAN_LITERAL("off_cpu"),
                                       SPAN_LITERAL("nanoseconds"));
}

/* A bit for each of OTLP's sample types. */
static uint32_t otlp_type_bits(const struct window *window)
{
    return window->options.off_cpu == WINDOW_OFF_CPU_SEPARATE ? 3 : 1;
}

static void begin_window(struct window *window)
{
    const struct profile_limits limits = {.memory_bytes = MEMORY_MAX_BYTES};
    const bool is_otlp = is_for_otlp(window);
    window_builder_begin(&window->builder, &limits);
    add_value_types(window);
    struct profile_builder *profile = window->builder.profile;
    window->thread_key = profile_builder_string(profile, is_otlp ? SPAN_LITERAL("thread.name")
                                                                 : SPAN_LITERAL("thread"));
    window->process_key = profile_builder_string(profile, is_otlp ? span_text(OTLP_RESOURCE_LABEL)
                                                                  : SPAN_LITERAL("pid"));
    window->process_name_key = profile_builder_string(profile, SPAN_LITERAL("process"));
    window_stack_begin(window->stack);
    window->arena = arena_create();
    window_resources_begin(&window->resources, &window->builder, window->arena,
                           otlp_type_bits(window));
    window->begun_ns = clock_monotonic_ns();
    window->begin = window_time_now();
    window->end = (struct window_time){0};
}

static bool has_ended(const struct window *window)
{
    return window->end.wall_ns != 0;
}

static void end_window(struct window *window)
{
    window_code_clear(window->code);
    map_u64_fini(&window->tallied_numbers);
    map_u64_fini(&window->unwanted_keys);
    window->tallied_count = 0;
    window_resources_end(&window->resources);
    arena_destroy(window->arena);
    window_builder_end(&window->builder);
    window->entry_count = window->sample_count = 0;
}

struct window *window_create(const struct window_options *options)
{
    struct window *window = mem_new(struct window, 1);
    window->options = *options;
    window->builder = (struct window_builder){.is_charged = is_for_otlp(window),
                                              .on_left_out = options->on_left_out,
                                              .context = options->context};
    window->code = window_code_create(&window->builder, options->binaries, options->jit_budget);
    window->stack = window_stack_create(&window->options, &window->builder, window->code);
    window->idle_times = idle_times_create();
    begin_window(window);
    return window;
}

void window_destroy(struct window *window)
{
    if (!window)
        return;
    end_window(window);
    window_stack_destroy(window->stack);
    window_code_destroy(window->code);
    idle_times_destroy(window->idle_times);
    mem_free(window->tallied);
    mem_free(window);
}

/* ---- samples ---- */

static bool is_wanted(const struct window *window, struct process *process)
{
    if (!is_for_otlp(window))
        return true;
    process_labels_renew(&process->labels, window->options.label_source, process);
    return process_labels_are_wanted(process->labels);
}

/* Keeps the sample under its key. The stack is copied to the window's arena. */
static void keep_tallied(struct window *window, uint64_t key, const struct tallied_sample *sample)
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

/* Fills the labels of a sample: thread and resource for OTLP; thread, pid and, if the process has a
 * name, process for people. */
static void fill_labels(struct window *window, const struct process *process,
                        const struct sample_event *event, struct tallied_sample *sample)
{
    const struct span thread = span_of(event->comm, strnlen(event->comm, sizeof(event->comm)));
    sample->label_count = 2;
    sample->labels[0] =
        (struct profile_label){.key = window->thread_key,
                               .text = window_builder_text_or_left_out(&window->builder, thread)};
    sample->labels[1] = (struct profile_label){
        .key = window->process_key,
        .number = is_for_otlp(window) ? window_resources_add(&window->resources, process->labels)
                                      : process->process_id,
        .is_numeric = true};
    if (is_for_otlp(window) || !process->name[0])
        return;
    sample->label_count = 3;
    sample->labels[2] = (struct profile_label){
        .key = window->process_name_key,
        .text = profile_builder_string(window->builder.profile, span_text(process->name))};
}

/* values: one for each type of add_value_types(). */
static void add_sample(struct window *window, struct process *process,
                       const struct sample_event *event, const int64_t values[VALUES_MAX])
{
    if (!is_wanted(window, process)) {
        window->unwanted_count++;
        if (event->key)
            map_u64_add(&window->unwanted_keys, event->key, 0);
        return;
    }
    struct tallied_sample sample = {0};
    sample.stack = window_stack_find(window->stack, process, event, &sample.depth);
    fill_labels(window, process, event, &sample);
    window_builder_charge(&window->builder);
    if (is_for_otlp(window)) {
        process->sampled_ns = window->begun_ns;
        window_resources_note_busy(&window->resources, (uint32_t)sample.labels[1].number, values,
                                   VALUES_MAX);
    }
    profile_builder_add_sample(window->builder.profile, sample.stack, sample.depth, values,
                               sample.labels, sample.label_count);
    if (event->key)
        keep_tallied(window, event->key, &sample);
    window->entry_count += sample.depth;
    window->sample_count++;
}

/* The value of samples of the event: time, or counted events. */
static int64_t event_value(const struct window *window, uint64_t samples, uint64_t amount)
{
    return event_kind_is_time(window->options.event)
               ? (int64_t)samples * (CLOCK_NS_PER_S / window->options.frequency_hz)
               : (int64_t)amount;
}

void window_add(struct window *window, struct process *process, const struct sample_event *event)
{
    const int64_t value = is_for_otlp(window) ? 0 : event_value(window, 1, event->amount);
    add_sample(window, process, event, (const int64_t[VALUES_MAX]){1, value});
}

void window_add_tally(struct window *window, uint64_t key, const struct sample_tally *tally)
{
    const uint32_t number = map_u64_find(&window->tallied_numbers, key);
    if (number == MAP_ABSENT) {
        /* A rule dropped the first sample, or there were too many processes for it. */
        if (map_u64_find(&window->unwanted_keys, key) != MAP_ABSENT)
            window->unwanted_count += tally->samples;
        return;
    }
    const struct tallied_sample *sample = &window->tallied[number];
    const int64_t value =
        is_for_otlp(window) ? 0 : event_value(window, tally->samples, tally->amount);
    profile_builder_add_sample(window->builder.profile, sample->stack, sample->depth,
                               (const int64_t[VALUES_MAX]){(int64_t)tally->samples, value},
                               sample->labels, sample->label_count);
    window->sample_count += tally->samples;
}

/* Only the fraction off_cpu_fraction of all switches is recorded, so an interval stands for 1 /
 * off_cpu_fraction intervals. */
void window_add_off_cpu(struct window *window, struct process *process,
                        const struct sample_event *event, int64_t duration_ns)
{
    const double fraction = window->options.off_cpu_fraction;
    const int64_t scaled_ns = (int64_t)((double)duration_ns / fraction);
    const int64_t count = (int64_t)(1 / fraction + 0.5);
    if (is_for_otlp(window))
        add_sample(window, process, event, (const int64_t[VALUES_MAX]){0, scaled_ns});
    else if (window->options.off_cpu == WINDOW_OFF_CPU_AS_WALL)
        add_sample(window, process, event, (const int64_t[VALUES_MAX]){count, scaled_ns});
    else
        add_sample(window, process, event, (const int64_t[VALUES_MAX]){0, 0, count, scaled_ns});
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
    window->begin = window_time_now();
}

void window_end_time(struct window *window)
{
    window->end = window_time_now();
}

bool window_is_full(const struct window *window)
{
    const int64_t age_ns = clock_monotonic_ns() - window->begun_ns;
    return window->entry_count > ENTRIES_MAX || profile_builder_failed(window->builder.profile) ||
           (window_quota_is_full(&window->builder.quota) &&
            age_ns > FULL_TEXT_PAUSE_S * CLOCK_NS_PER_S);
}

/* ---- idle time ---- */

/* The window that ends, for processes that were idle in it. */
struct idle_window {
    struct window *window;
    uint32_t busy_count; /* resources with samples: they were added before idle ones */
    int64_t start_ns;
    int64_t end_ns;
};

static void set_idle_time(void *context, const struct idle_time *time)
{
    struct window *window = context;
    window_resources_set_idle(&window->resources, time);
}

/* Notes the idle time of a process that was sampled in an earlier window and is still alive, unless
 * another process with equal labels was sampled in this one. */
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
                             .begin_ns = idle->start_ns,
                             .end_ns = idle->end_ns};
    const uint32_t known = map_bytes_find(&window->resources.numbers, time.key);
    if (known != MAP_ABSENT && known < idle->busy_count)
        return;
    time.labels = process_labels_get(process->labels, &time.label_count);
    if (!idle_times_add(window->idle_times, &time))
        window_resources_set_idle(&window->resources, &time);
}

static void report_idle_times(struct window *window, int64_t start_ns, int64_t end_ns)
{
    struct idle_window idle = {.window = window,
                               .busy_count = window->resources.count,
                               .start_ns = start_ns,
                               .end_ns = end_ns};
    if (!is_for_otlp(window))
        return;
    processes_each(window->options.processes, note_idle, &idle);
    idle_times_report(window->idle_times, start_ns, end_ns, has_ended(window), set_idle_time,
                      window);
}

/* ---- taking ---- */

static void set_profile_fields(struct window *window, int64_t start_ns, int64_t end_ns)
{
    struct profile_builder *builder = window->builder.profile;
    struct profile *profile = profile_builder_fields(builder);
    const uint32_t type = profile_builder_string(builder, event_type(window));
    profile->period_type.type = type;
    profile->period_type.unit = profile_builder_string(builder, event_unit(window));
    /* Counted events have no period: the number of events between two samples varies. */
    profile->period = event_kind_is_time(window->options.event)
                          ? CLOCK_NS_PER_S / window->options.frequency_hz
                          : 0;
    profile->time_ns = start_ns;
    profile->duration_ns = end_ns - start_ns;
    if (!is_for_otlp(window))
        profile->default_sample_type =
            window->options.off_cpu == WINDOW_OFF_CPU_SEPARATE
                ? profile_builder_string(builder, SPAN_LITERAL("off_cpu"))
                : type;
}

/* The profile's mapping of the program of the process; otherwise the first one after the kernel's.
 */
static uint32_t find_main_mapping(struct window *window, const struct process *main)
{
    for (uint32_t i = 0; main && i < main->mapping_count; i++) {
        const struct process_mapping *mapping = &main->mappings[i];
        if (mapping->binary != BINARY_NONE && mapping->binary == main->program)
            return window_stack_mapping(window->stack, mapping);
    }
    return window_stack_kernel_mapping(window->stack) + 1;
}

static void destroy_arena(void *arena)
{
    arena_destroy(arena);
}

enum err_code window_take(struct window *window, const struct process *main,
                          struct window_result *ret_result, struct err *err)
{
    const bool was_sampling = !has_ended(window);
    const struct window_time end = was_sampling ? window_time_now() : window->end;
    struct window_result result = {.start_ns = window_time_start(&window->begin, &end),
                                   .end_ns = end.wall_ns,
                                   .samples = window->sample_count};
    window_code_name_late(window->code, is_for_otlp(window));
    report_idle_times(window, result.start_ns, result.end_ns);
    result.resources = window->resources.list;
    result.resource_count = window->resources.count;
    set_profile_fields(window, result.start_ns, result.end_ns);
    const uint32_t first = find_main_mapping(window, main);
    enum err_code code = profile_builder_take(window->builder.profile, &result.profile, err);
    if (!code) {
        arena_on_destroy(result.profile->arena, destroy_arena, window->arena);
        window->arena = NULL;
        if (!is_for_otlp(window) && first < result.profile->mapping_count)
            profile_put_mapping_first(result.profile, first);
        *ret_result = result;
    }
    end_window(window);
    begin_window(window);
    /* The next window begins where this one ends, so that samples taken while this one was encoded
     * are within it. */
    if (was_sampling)
        window->begin = end;
    return code;
}

void window_result_fini(struct window_result *result)
{
    profile_destroy(result->profile);
    result->profile = NULL;
}
