#include "agent/upload/debug_file.h"

#include "agent/process/elf_file.h"
#include "agent/process/process_file.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 512, HOST_PROCESS = 1 };

static bool has_id(int fd, const char *build_id)
{
    struct elf_file file;
    struct err ignored;
    char text[2 * ELF_FILE_BUILD_ID_MAX_BYTES + 1];
    if (elf_file_read(fd, "a debug file", &file, &ignored))
        return false;
    digest_hex(span_of(file.build_id, file.build_id_bytes), text);
    return strcmp(text, build_id) == 0;
}

static int try_root(uint32_t process_id, const char *path, const char *build_id)
{
    const int fd = process_file_open(process_id, span_text(path), 0);
    if (fd < 0 || has_id(fd, build_id))
        return fd;
    os_close(fd);
    return -1;
}

int debug_file_open(uint32_t process_id, const char *build_id)
{
    char path[PATH_BYTES];
    if (strlen(build_id) < 4)
        return -1;
    snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
    const int fd = try_root(process_id, path, build_id);
    return fd >= 0 ? fd : try_root(HOST_PROCESS, path, build_id);
}

bool debug_file_is_free_of_code(int fd)
{
    Elf64_Ehdr header;
    if (os_pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_shentsize != sizeof(Elf64_Shdr) ||
        header.e_shnum == 0 || header.e_shoff > INT64_MAX)
        return false;
    arena_auto arena = arena_create();
    Elf64_Shdr *sections = arena_new_raw(arena, Elf64_Shdr, header.e_shnum);
    const size_t bytes = header.e_shnum * sizeof(*sections);
    if (os_pread(fd, sections, bytes, (off_t)header.e_shoff) != (ssize_t)bytes)
        return false;
    for (uint32_t i = 0; i < header.e_shnum; i++) {
        if (sections[i].sh_flags & SHF_EXECINSTR && sections[i].sh_type != SHT_NOBITS)
            return false;
    }
    return true;
}
