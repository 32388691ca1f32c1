/*
 * code_map: where a file has code, so that what a linker threw away is not taken for some.
 *
 * Debug information of discarded functions stays, at address 0 or near the end of the address
 * space. Code lies in executable sections, or where a file names none, in executable segments.
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
    struct code_range *ranges; /* ascending, without overlaps; the arena's of the ELF file */
    uint32_t count;
};

void code_map_init(struct code_map *code, struct elf_input *elf);
/* Is there code at begin? Then *end is moved to where that code ends, if it lies behind. */
bool code_map_clip(const struct code_map *code, uint64_t begin, uint64_t *end);

#endif
