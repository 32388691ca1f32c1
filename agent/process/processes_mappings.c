#include "agent/process/processes_internal.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <string.h>

enum { MAPPINGS_MAX = 524288, MAPPINGS_OF_ONE_MAX = 65536 };

#define USER_ADDRESS_END (UINT64_C(1) << 63)

static void release_binary(struct processes *processes, const struct process_mapping *mapping)
{
    if (mapping->binary != BINARY_NONE)
        binaries_release(processes->binaries, mapping->binary);
}

void processes_drop_mappings(struct processes *processes, struct process *process)
{
    for (uint32_t i = 0; i < process->mapping_count; i++)
        release_binary(processes, &process->mappings[i]);
    processes->counts.mappings -= process->mapping_count;
    process->mapping_count = 0;
    process->program = BINARY_NONE;
}

/* Counts mappings without space. Their addresses are not kept, so a mapping that is reported again
 * cannot be recognised. Only the excess over the largest number since the program began is counted,
 * so that repeated reports of the same mappings count once. */
static void count_left_out(struct processes *processes, struct process *process, uint32_t count)
{
    process->has_refused = true;
    process->left_out += count;
    if (process->left_out <= process->counted_left_out)
        return;
    processes->counts.refused_mappings += process->left_out - process->counted_left_out;
    process->counted_left_out = process->left_out;
}

static bool reserve_mapping(struct processes *processes, struct process *process)
{
    if (process->mapping_count + 1 >= MAPPINGS_OF_ONE_MAX ||
        processes->counts.mappings + 1 >= MAPPINGS_MAX) {
        count_left_out(processes, process, 1);
        return false;
    }
    /* Two more, because an insertion may split an existing mapping. */
    vec_reserve(process->mappings, process->mapping_capacity, process->mapping_count + 2);
    return true;
}

static void insert_mapping(struct processes *processes, struct process *process, uint32_t i,
                           const struct process_mapping *mapping)
{
    memmove(&process->mappings[i + 1], &process->mappings[i],
            (process->mapping_count - i) * sizeof(*mapping));
    process->mappings[i] = *mapping;
    process->mapping_count++;
    processes->counts.mappings++;
}

static void remove_mapping(struct processes *processes, struct process *process, uint32_t i)
{
    release_binary(processes, &process->mappings[i]);
    process->mapping_count--;
    processes->counts.mappings--;
    memmove(&process->mappings[i], &process->mappings[i + 1],
            (process->mapping_count - i) * sizeof(*process->mappings));
}

/* Removes [start, limit) from the mappings, as mmap does with MAP_FIXED. */
static void unmap_range(struct processes *processes, struct process *process, uint64_t start,
                        uint64_t limit)
{
    uint32_t i = process_mapping_index(process, start);
    if (i < process->mapping_count && process->mappings[i].start < start) {
        struct process_mapping *old = &process->mappings[i];
        struct process_mapping rest = *old;
        old->limit = start;
        i++;
        if (rest.limit > limit) {
            rest.file_offset += limit - rest.start;
            rest.start = limit;
            if (rest.binary != BINARY_NONE)
                binaries_ref(processes->binaries, rest.binary);
            insert_mapping(processes, process, i, &rest);
            return;
        }
    }
    while (i < process->mapping_count && process->mappings[i].limit <= limit)
        remove_mapping(processes, process, i);
    if (i < process->mapping_count && process->mappings[i].start < limit) {
        struct process_mapping *old = &process->mappings[i];
        old->file_offset += limit - old->start;
        old->start = limit;
    }
}

static bool is_vdso(struct span path)
{
    return span_equal_text(path, "[vdso]");
}

/* A named mapping without a file on disk is JIT code. A memfd may be either: container runtimes
 * execute themselves from one. */
static bool is_file(const struct binary_source *source)
{
    const struct span path = source->path;
    if (span_starts_with(path, "/memfd:"))
        return source->build_id.size || binaries_can_read(source);
    return path.size && path.data[0] == '/' && !span_starts_with(path, "//") &&
           !span_starts_with(path, "/dev/") && !span_starts_with(path, "/SYSV") &&
           !span_starts_with(path, "/anon_hugepage");
}

/* Whether the binary has the path. The path of a deleted file ends with " (deleted)" in /proc, but
 * not in events. */
static bool is_path_of(const struct binary *binary, struct span path)
{
    const struct span known = span_text(binary->path);
    if (known.size < path.size || memcmp(known.data, path.data, path.size) != 0)
        return false;
    const struct span rest = span_of(known.data + path.size, known.size - path.size);
    return rest.size == 0 || span_equal_text(rest, " (deleted)");
}

/*
 * Whether the mapping is known already, with the same file as far as the path shows.
 *
 * A scan repeats all mappings without build ids, so an equal path is taken as the same file. A map
 * event without build id is a new mapping and may be of another file that has the path by now (no
 * event reports munmap); the caller then opens the file and compares (retake_binary).
 */
static bool is_reported_again(const struct processes *processes, const struct process *process,
                              const struct binary_source *source, uint64_t file_offset)
{
    const uint32_t i = process_mapping_index(process, source->start);
    if (i == process->mapping_count)
        return false;
    const struct process_mapping *old = &process->mappings[i];
    return old->start == source->start && old->limit == source->limit &&
           old->binary != BINARY_NONE && old->file_offset == file_offset &&
           source->build_id.size == 0 &&
           is_path_of(binaries_get(processes->binaries, old->binary), source->path);
}

/* Whether the file of a mapping that is_reported_again was read; it may have failed to open. */
static bool was_read(const struct processes *processes, const struct process *process,
                     const struct binary_source *source)
{
    const uint32_t number = process->mappings[process_mapping_index(process, source->start)].binary;
    return binaries_get(processes->binaries, number)->file.segment_count > 0;
}

/* Whether the mapping is known already, without a file. */
static bool is_without_file(const struct process *process, const struct binary_source *source)
{
    const struct process_mapping *old = process_find_mapping(process, source->start);
    return old && old->start == source->start && old->limit == source->limit &&
           old->binary == BINARY_NONE && !old->is_refused &&
           old->is_vdso == is_vdso(source->path) && !is_file(source);
}

/* Opens the file of a mapping that is_reported_again once more. Returns the number of its binary
 * with a new reference; if the path no longer leads to a readable ELF file, that of the known one.
 */
static uint32_t retake_binary(struct processes *processes, struct process *process,
                              const struct binary_source *source)
{
    const uint32_t old = process->mappings[process_mapping_index(process, source->start)].binary;
    const uint32_t number = binaries_take(processes->binaries, source);
    if (number != BINARY_NONE && binaries_get(processes->binaries, number)->file.segment_count) {
        if (process->program == old)
            process->program = number;
        return number;
    }
    if (number != BINARY_NONE)
        binaries_release(processes->binaries, number);
    binaries_ref(processes->binaries, old);
    return old;
}

/* Counts a refused mapping once, however often it is tried again. */
static void note_refusal(struct processes *processes, struct process *process,
                         const struct process_mapping *mapping)
{
    const struct process_mapping *old = process_find_mapping(process, mapping->start);
    process->has_refused = true;
    if (!old || !old->is_refused || old->start != mapping->start || old->limit != mapping->limit)
        processes->counts.refused_mappings++;
}

void processes_add_mapping(struct processes *processes, struct process *process,
                           const struct binary_source *source, uint64_t file_offset, bool is_scan)
{
    struct process_mapping mapping = {.start = source->start,
                                      .limit = source->limit,
                                      .file_offset = file_offset,
                                      .binary = BINARY_NONE,
                                      .is_vdso = is_vdso(source->path)};
    /* [vsyscall] is at a kernel address, where programs do not run. */
    if (source->limit > USER_ADDRESS_END)
        return;
    const bool is_known = is_reported_again(processes, process, source, file_offset);
    if ((is_known && is_scan && was_read(processes, process, source)) ||
        (is_scan && is_without_file(process, source)) || !reserve_mapping(processes, process))
        return;
    if (is_known)
        mapping.binary = retake_binary(processes, process, source);
    else if (is_file(source))
        mapping.binary = binaries_take(processes->binaries, source);
    mapping.is_refused = mapping.binary == BINARY_NONE && is_file(source);
    if (mapping.is_refused)
        note_refusal(processes, process, &mapping);
    unmap_range(processes, process, source->start, source->limit);
    insert_mapping(processes, process, process_mapping_index(process, source->start), &mapping);
    if (process->program == BINARY_NONE && mapping.binary != BINARY_NONE)
        process->program = mapping.binary;
    if (mapping.binary != BINARY_NONE && processes->options.on_file)
        processes->options.on_file(processes->options.context, process, &mapping);
}

void processes_copy_mappings(struct processes *processes, struct process *to,
                             const struct process *from)
{
    processes_drop_program(processes, to);
    if (processes->counts.mappings + from->mapping_count > MAPPINGS_MAX) {
        count_left_out(processes, to, from->mapping_count);
        return;
    }
    to->mappings = mem_resize(to->mappings, from->mapping_count + 2, sizeof(*to->mappings));
    to->mapping_capacity = from->mapping_count + 2;
    if (from->mapping_count)
        memcpy(to->mappings, from->mappings, from->mapping_count * sizeof(*to->mappings));
    to->mapping_count = from->mapping_count;
    to->program = from->program;
    processes->counts.mappings += from->mapping_count;
    for (uint32_t i = 0; i < to->mapping_count; i++) {
        if (to->mappings[i].binary != BINARY_NONE)
            binaries_ref(processes->binaries, to->mappings[i].binary);
    }
}

void processes_drop_program(struct processes *processes, struct process *process)
{
    processes_drop_mappings(processes, process);
    if (processes->options.on_program_end)
        processes->options.on_program_end(processes->options.context, process);
    process->sampled_ns = 0;
    process->unopened_ns = process->unopened_pause_ns = 0;
}
