#include "agent/labels/label_source.h"

#include "agent/process/binaries.h"
#include "agent/process/process.h"
#include "agent/process/procfs_file.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/vec.h"

enum { CPU_INFO_MAX_BYTES = 4 << 20 };

/* The result of examining the binary with the same number. It is valid while the binary has the
 * same serial. */
struct known_program {
    uint64_t serial;
    struct program_info facts;
};

/* The first line "model name : …" of /proc/cpuinfo. */
static struct span read_cpu_model(struct arena *arena)
{
    struct err ignored;
    struct span rest, line, name, value;
    buf_auto text;
    buf_init(&text, CPU_INFO_MAX_BYTES);
    if (procfs_file_read("/proc/cpuinfo", &text, &ignored))
        return (struct span){0};
    rest = buf_span(&text);
    while (span_take_line(&rest, &line)) {
        if (!span_split(line, ':', &name, &value) ||
            !span_equal_text(span_trim(name), "model name"))
            continue;
        value = span_trim(value);
        return span_of(arena_strndup(arena, value.data, value.size), value.size);
    }
    return (struct span){0};
}

struct label_source *label_source_create(const struct label_settings *settings,
                                         const struct binaries *binaries)
{
    struct label_source *source = mem_new(struct label_source, 1);
    *source = (struct label_source){.binaries = binaries, .arena = arena_create()};
    if (settings)
        source->settings = *settings;
    if (uname(&source->host))
        source->host = (struct utsname){0};
    source->cpu_model = read_cpu_model(source->arena);
    return source;
}

void label_source_destroy(struct label_source *source)
{
    if (!source)
        return;
    arena_destroy(source->arena);
    mem_free(source->programs);
    mem_free(source);
}

static const struct process_mapping *mapping_of_program(const struct process *process)
{
    for (uint32_t i = 0; i < process->mapping_count; i++) {
        if (process->mappings[i].binary == process->program)
            return &process->mappings[i];
    }
    return NULL;
}

const struct program_info *label_source_program(struct label_source *source,
                                                const struct process *process)
{
    const uint32_t number = process->program;
    const struct binary *binary = binaries_get(source->binaries, number);
    const struct process_mapping *mapping = mapping_of_program(process);
    vec_reserve_zeroed(source->programs, source->program_count, (size_t)number + 1);
    struct known_program *known = &source->programs[number];
    if (known->serial == binary->serial || !mapping)
        return &known->facts;
    fd_auto fd =
        binaries_open(source->binaries, number, process->shown_id, mapping->start, mapping->limit);
    program_info_read(fd, &known->facts);
    known->serial = binary->serial;
    return &known->facts;
}
