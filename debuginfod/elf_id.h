/*
 * elf_id: identifies a build: by the GNU build id, else Go's build id, else a hash of the code.
 *
 * Notes are read from the sections of type SHT_NOTE and, in a file without sections, from the
 * segments of type PT_NOTE. The hash is the one that other agents use, XXH64 of .text. It is not
 * computed for a separate debug file, whose .text has no bytes, or for a relocatable file.
 */
#ifndef DEBUGINFOD_ELF_ID_H
#define DEBUGINFOD_ELF_ID_H

struct elf_id;
struct elf_input;
struct elf_section;

/* text is the section .text, or NULL. ret_id->kind is ELF_ID_NONE when the file has no id. */
void elf_id_read(const struct elf_input *elf, const struct elf_section *text,
                 struct elf_id *ret_id);

#endif
