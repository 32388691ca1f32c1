#include "cli/record/unsymbolized_code.h"

#include "agent/agent.h"
#include "cli/terminal.h"
#include "lib/base/arena.h"
#include "lib/profile/profile.h"

enum { PROGRAMS_MAX = 5, NAME_MAX_BYTES = 256 };

enum runtime { RUNTIME_OTHER, RUNTIME_NODE, RUNTIME_JAVA };

static const char *const hints[] = {
    [RUNTIME_OTHER] = "write a perf map, /tmp/perf-PID.map, to name it",
    [RUNTIME_NODE] = "run node with --perf-basic-prof to name it",
    [RUNTIME_JAVA] = ("run jcmd PID Compiler.perfmap before the recording ends to name it; "
                      "-XX:+PreserveFramePointer gives complete stacks"),
};

struct program {
    struct program *next;
    uint32_t name; /* string of the profile, 0: unknown */
    enum runtime runtime;
    int64_t samples;
    bool is_printed;
};

static uint32_t find_string(const struct profile *profile, const char *text)
{
    uint32_t i = profile->string_count;
    while (i-- > 1) {
        if (span_equal_text(profile_string(profile, i), text))
            return i;
    }
    return 0;
}

static enum runtime runtime_of_file(struct span path)
{
    struct span name = path;
    const uint8_t *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;
    if (slash)
        name = span_of(slash + 1, path.size - (size_t)(slash + 1 - path.data));
    if (span_equal_text(name, "libjvm.so"))
        return RUNTIME_JAVA;
    return span_equal_text(name, "node") || span_equal_text(name, "nodejs") ||
                   span_starts_with(name, "libnode.so")
               ? RUNTIME_NODE
               : RUNTIME_OTHER;
}

/* Determines the runtime from the files of the sample's callers. */
static enum runtime runtime_of_sample(const struct profile *profile, uint32_t sample)
{
    enum runtime runtime = RUNTIME_OTHER;
    for (uint64_t i = profile->stack_start[sample];
         !runtime && i < profile->stack_start[sample + 1]; i++) {
        const uint32_t mapping = profile->locations[profile->stack[i]].mapping;
        if (mapping != PROFILE_NONE)
            runtime = runtime_of_file(profile_string(profile, profile->mappings[mapping].filename));
    }
    return runtime;
}

static bool is_leaf(const struct profile *profile, uint32_t sample, uint32_t name)
{
    if (profile->stack_start[sample] == profile->stack_start[sample + 1])
        return false;
    const struct profile_location *leaf =
        &profile->locations[profile->stack[profile->stack_start[sample]]];
    const uint32_t function =
        leaf->line_count ? profile->lines[leaf->first_line].function : PROFILE_NONE;
    return function != PROFILE_NONE && profile->functions[function].name == name;
}

static uint32_t process_of(const struct profile *profile, uint32_t sample, uint32_t key)
{
    for (uint32_t i = profile->label_start[sample]; i < profile->label_start[sample + 1]; i++) {
        if (profile->labels[i].key == key)
            return profile->labels[i].text;
    }
    return 0;
}

static struct program *program_of(struct program **first, uint32_t name, struct arena *arena)
{
    for (struct program *program = *first; program; program = program->next) {
        if (program->name == name)
            return program;
    }
    struct program *program = arena_new(arena, struct program, 1);
    *program = (struct program){.next = *first, .name = name};
    return *first = program;
}

/* The program with the most samples, at least `least`, that was not reported yet; NULL: none. */
static struct program *next_program(struct program *first, int64_t least)
{
    struct program *best = NULL;
    for (struct program *program = first; program; program = program->next) {
        if (!program->is_printed && program->samples >= (best ? best->samples : least))
            best = program;
    }
    return best;
}

static void print_program(struct terminal *terminal, const struct profile *profile,
                          const struct program *program, int64_t total)
{
    buf_auto name;
    buf_init(&name, NAME_MAX_BYTES);
    terminal_append_clean(&name, program->name ? profile_string(profile, program->name)
                                               : SPAN_LITERAL("a program"));
    terminal_note(terminal, "%.0f %% of the samples are in code of %.*s without a name: %s",
                  100 * (double)program->samples / (double)total, SPAN_PRINT(buf_span(&name)),
                  hints[program->runtime]);
}

void unsymbolized_code_print(struct terminal *terminal, const struct profile *profile)
{
    arena_auto arena = arena_create();
    const uint32_t nameless = find_string(profile, WINDOW_CODE_WITHOUT_NAME);
    const uint32_t process_key = find_string(profile, "process");
    struct program *first = NULL, *program;
    int64_t total = 0;
    for (uint32_t i = 0; nameless && i < profile->sample_count; i++) {
        const int64_t samples = profile->values[(size_t)i * profile->value_type_count];
        total += samples;
        if (!is_leaf(profile, i, nameless))
            continue;
        program = program_of(&first, process_of(profile, i, process_key), arena);
        program->samples += samples;
        if (!program->runtime)
            program->runtime = runtime_of_sample(profile, i);
    }
    for (int printed = 0; printed < PROGRAMS_MAX; printed++) {
        program = next_program(first, total / 100 + 1);
        if (!program)
            break;
        program->is_printed = true;
        print_program(terminal, profile, program, total);
    }
}
