/*
 * elf_relocate: applies relocations to the debug sections of a relocatable file (kernel modules,
 * objects).
 *
 * In such a file the debug information has zeros in place of addresses; .rela.debug_* contains the
 * values. Only relocations for addresses and offsets are supported: the absolute ones of x86-64,
 * i386, ARM, AArch64 and RISC-V, and RISC-V's ADD and SUB pairs. Those of thread-local variables
 * are ignored. Values use the section addresses that elf_input assigned.
 */
#ifndef DEBUGINFOD_ELF_RELOCATE_H
#define DEBUGINFOD_ELF_RELOCATE_H

#include "lib/base/err_code.h"

struct elf_input;

/* Modifies copies of the debug sections; does nothing for a file that is not relocatable.
 * Errors: ERR_UNSUPPORTED (another machine or kind of relocation), ERR_INVALID, the errors of
 * elf_input_read. */
enum err_code elf_relocate(struct elf_input *elf, struct err *err) MUST_USE;

#endif
