/*
 * elf_relocate: fills in the addresses that a relocatable file leaves open: kernel modules,
 * objects.
 *
 * The debug information of such a file has zeros where addresses go, and .rela.debug_* says what
 * belongs there. Only what addresses and offsets need is known: the absolute relocations of x86-64,
 * i386, AArch64 and RISC-V's ADD and SUB pairs. Values are those of elf_input's placing of
 * sections.
 */
#ifndef DEBUGINFOD_ELF_RELOCATE_H
#define DEBUGINFOD_ELF_RELOCATE_H

#include "lib/base/err.h"

struct elf_input;

/* Changes copies of the debug sections; does nothing to a file that is not relocatable. Handles:
 * ERR_UNSUPPORTED (another machine or kind of relocation), ERR_INVALID, those of elf_input_read. */
enum err_code elf_relocate(struct elf_input *elf, struct err *err) MUST_USE;

#endif
