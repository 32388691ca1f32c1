#include "debuginfod/code_map.h"

#include "debuginfod/elf_input.h"
#include "lib/base/arena.h"

#include <elf.h>
#include <stdlib.h>

static void add_range(struct code_map *code, uint64_t begin, uint64_t size)
{
    uint64_t end;
    if (!size || __builtin_add_overflow(begin, size, &end))
        return;
    code->ranges[code->count++] = (struct code_range){begin, end};
}

static int compare_ranges(const void *a, const void *b)
{
    const struct code_range *left = a, *right = b;
    return (left->begin > right->begin) - (left->begin < right->begin);
}

/* Merges adjacent ranges: functions may extend over the end of a section into the next one. */
static void join_ranges(struct code_map *code)
{
    uint32_t kept = 0;
    qsort(code->ranges, code->count, sizeof(struct code_range), compare_ranges);
    for (uint32_t i = 0; i < code->count; i++) {
        struct code_range *last = kept ? &code->ranges[kept - 1] : NULL;
        if (!last || code->ranges[i].begin > last->end)
            code->ranges[kept++] = code->ranges[i];
        else if (code->ranges[i].end > last->end)
            last->end = code->ranges[i].end;
    }
    code->count = kept;
}

void code_map_init(struct code_map *code, struct elf_input *elf)
{
    code->count = 0;
    code->ranges = arena_new(elf->arena, struct code_range,
                             elf->section_count + elf->program_header_count + 1U);
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const struct elf_section *section = &elf->sections[i];
        if ((section->flags & SHF_ALLOC) && (section->flags & SHF_EXECINSTR))
            add_range(code, section->address, section->memory_bytes);
    }
    for (uint32_t i = 0; !code->count && i < elf->program_header_count; i++) {
        const struct elf_program_header *segment = &elf->program_headers[i];
        if (segment->type == PT_LOAD && (segment->flags & PF_X))
            add_range(code, segment->address, segment->memory_bytes);
    }
    if (code->count)
        join_ranges(code);
}

bool code_map_clip(const struct code_map *code, uint64_t begin, uint64_t *end)
{
    uint32_t low = 0, high = code->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (code->ranges[middle].end <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == code->count || begin < code->ranges[low].begin)
        return false;
    if (*end > code->ranges[low].end)
        *end = code->ranges[low].end;
    return true;
}
