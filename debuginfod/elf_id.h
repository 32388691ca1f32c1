/*
 * elf_id: what names a build: the GNU build id, else Go's, else a hash of the code.
 *
 * Notes are looked for in the sections of type SHT_NOTE and, where a file has no sections, in the
 * segments of type PT_NOTE. The hash is the one that other agents use, XXH64 of .text, and is only
 * taken where .text has bytes in the file: a file of debug information alone has none.
 */
#ifndef DEBUGINFOD_ELF_ID_H
#define DEBUGINFOD_ELF_ID_H

struct elf_id;
struct elf_input;

/* ret_id->kind is ELF_ID_NONE when nothing names it. */
void elf_id_read(struct elf_input *elf, struct elf_id *ret_id);

#endif
