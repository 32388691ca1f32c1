/*
 * code_map: the addresses at which a file has code, to recognize functions that the linker
 * discarded.
 *
 * The debug information of discarded functions remains in the file, at address 0 or near the end of
 * the address space. Code is in executable sections or, in a file without sections, in executable
 * segments.
 */
#ifndef DEBUGINFOD_CODE_MAP_H
#define DEBUGINFOD_CODE_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct elf_input;

struct code_range {
    uint64_t begin;
    uint64_t end;
};

struct code_map {
    struct code_range *ranges; /* ascending, without overlaps; in the arena of the ELF file */
    uint32_t count;
};

void code_map_init(struct code_map *code, struct elf_input *elf);
/* Whether there is code at begin. If so, *end is reduced to the end of that code if it lies
 * beyond. */
bool code_map_clip(const struct code_map *code, uint64_t begin, uint64_t *end);

#endif
