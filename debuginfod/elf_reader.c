#include "debuginfod/elf_reader.h"

#include "debuginfod/elf_input.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <gelf.h>
#include <limits.h>

/* ---- headers ---- */

static enum err_code read_header(struct elf_input *elf, GElf_Ehdr *header, struct err *err)
{
    if (elf_version(EV_CURRENT) == EV_NONE)
        return err_set(err, ERR_INTERNAL, "libelf is older than its header");
    /* elf_memory takes a non-const pointer, but does not modify a file that is only read. */
    elf->handle = elf_memory((char *)(uintptr_t)elf->file.data, elf->file.size);
    if (!elf->handle || elf_kind(elf->handle) != ELF_K_ELF || !gelf_getehdr(elf->handle, header))
        return err_set(err, ERR_INVALID, "this is no ELF file, or its header is cut short");
    if (header->e_ident[EI_DATA] == ELFDATA2MSB)
        return err_set(err, ERR_UNSUPPORTED, "big-endian ELF files are not supported");
    elf->is_64_bit = gelf_getclass(elf->handle) == ELFCLASS64;
    elf->type = header->e_type;
    elf->machine = header->e_machine;
    return ERR_NONE;
}

static bool is_inside(const struct elf_input *elf, uint64_t offset, uint64_t size)
{
    return offset <= elf->file.size && size <= elf->file.size - offset;
}

/* Distinguishes a truncated file from one without sections: libelf returns the sections that it can
 * read, without an error. */
static enum err_code check_section_table(const struct elf_input *elf, const GElf_Ehdr *header,
                                         size_t count, struct err *err)
{
    size_t needed = gelf_fsize(elf->handle, ELF_T_SHDR, 1, EV_CURRENT);
    if (!header->e_shoff)
        return ERR_NONE;
    if (header->e_shentsize != needed)
        return err_set(err, ERR_INVALID, "its section headers have %u bytes instead of %zu",
                       header->e_shentsize, needed);
    if (count > ELF_INPUT_MAX_SECTIONS)
        return err_set(err, ERR_TOO_LARGE, "it has more than %d sections", ELF_INPUT_MAX_SECTIONS);
    if (count < header->e_shnum || !is_inside(elf, header->e_shoff, (count ? count : 1) * needed))
        return err_set(err, ERR_INVALID, "its section headers lie outside of the file");
    return ERR_NONE;
}

static enum err_code read_section(struct elf_input *elf, Elf_Scn *handle, size_t names_index,
                                  struct elf_section *section, struct err *err)
{
    GElf_Shdr header;
    if (!handle || !gelf_getshdr(handle, &header))
        return err_set(err, ERR_INVALID, "its section headers cannot be read");
    const char *name = elf_strptr(elf->handle, names_index, header.sh_name);
    *section = (struct elf_section){.handle = handle,
                                    .name = span_text(name ? name : ""),
                                    .type = header.sh_type,
                                    .flags = header.sh_flags,
                                    .address = header.sh_addr,
                                    .memory_bytes = header.sh_size,
                                    .alignment = header.sh_addralign,
                                    .link = header.sh_link,
                                    .info = header.sh_info};
    if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL || !header.sh_size)
        return ERR_NONE;
    if (!is_inside(elf, header.sh_offset, header.sh_size))
        return err_set(err, ERR_INVALID, "its section %zu lies outside of the file: cut short?",
                       elf_ndxscn(handle));
    const Elf_Data *data = elf_rawdata(handle, NULL);
    if (data && data->d_buf)
        section->stored = span_of(data->d_buf, data->d_size);
    return ERR_NONE;
}

static enum err_code read_sections(struct elf_input *elf, const GElf_Ehdr *header, struct err *err)
{
    size_t count = 0, names_index = 0;
    if (elf_getshdrnum(elf->handle, &count) != 0)
        return err_set(err, ERR_INVALID, "its section headers lie outside of the file");
    enum err_code code = check_section_table(elf, header, count, err);
    if (code || !count)
        return code;
    if (elf_getshdrstrndx(elf->handle, &names_index) != 0)
        names_index = 0;
    elf->sections = arena_new(elf->arena, struct elf_section, count);
    elf->section_count = (uint32_t)count;
    for (size_t i = 0; !code && i < count; i++)
        code = read_section(elf, elf_getscn(elf->handle, i), names_index, &elf->sections[i], err);
    return code;
}

static enum err_code read_program_headers(struct elf_input *elf, const GElf_Ehdr *header,
                                          struct err *err)
{
    size_t count = 0;
    if (!header->e_phoff || !header->e_phnum)
        return ERR_NONE;
    if (elf_getphdrnum(elf->handle, &count) != 0 ||
        (count < header->e_phnum && header->e_phnum != PN_XNUM))
        return err_set(err, ERR_INVALID, "its program headers lie outside of the file");
    if (count > ELF_INPUT_MAX_PROGRAM_HEADERS)
        return err_set(err, ERR_TOO_LARGE, "it has more than %d program headers",
                       ELF_INPUT_MAX_PROGRAM_HEADERS);
    elf->program_headers = arena_new(elf->arena, struct elf_program_header, count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(elf->handle, (int)i, &segment))
            return err_set(err, ERR_INVALID, "its program headers lie outside of the file");
        elf->program_headers[i] = (struct elf_program_header){.type = segment.p_type,
                                                              .flags = segment.p_flags,
                                                              .file_offset = segment.p_offset,
                                                              .file_bytes = segment.p_filesz,
                                                              .address = segment.p_vaddr,
                                                              .memory_bytes = segment.p_memsz,
                                                              .alignment = segment.p_align};
    }
    elf->program_header_count = (uint32_t)count;
    return ERR_NONE;
}

enum err_code elf_reader_open(struct elf_input *elf, struct err *err)
{
    GElf_Ehdr header;
    enum err_code code = read_header(elf, &header, err);
    if (code)
        return code;
    code = read_sections(elf, &header, err);
    if (code)
        return code;
    return read_program_headers(elf, &header, err);
}

void elf_reader_close(struct elf_input *elf)
{
    elf_end(elf->handle);
    elf->handle = NULL;
}

/* ---- sections ---- */

bool elf_reader_packed(const struct elf_input *elf, const struct elf_section *section,
                       struct elf_packed *ret_packed)
{
    GElf_Chdr header;
    size_t header_bytes = gelf_fsize(elf->handle, ELF_T_CHDR, 1, EV_CURRENT);
    if (!gelf_getchdr(section->handle, &header) || section->stored.size < header_bytes)
        return false;
    *ret_packed = (struct elf_packed){
        .method = header.ch_type,
        .flat_bytes = header.ch_size,
        .bytes = span_of(section->stored.data + header_bytes, section->stored.size - header_bytes)};
    return true;
}

enum err_code elf_reader_entries(const struct elf_input *elf, const struct elf_section *section,
                                 struct elf_entries *ret_entries, struct err *err)
{
    *ret_entries = (struct elf_entries){.has_addends = section->type == SHT_RELA};
    if (section->flags & SHF_COMPRESSED)
        return err_set(err, ERR_UNSUPPORTED,
                       "section %.*s is compressed, which is known of debug sections alone",
                       SPAN_PRINT(section->name));
    Elf_Data *data = section->stored.size ? elf_getdata(section->handle, NULL) : NULL;
    size_t bytes = data ? gelf_fsize(elf->handle, data->d_type, 1, EV_CURRENT) : 0;
    if (bytes &&
        (data->d_type == ELF_T_SYM || data->d_type == ELF_T_REL || data->d_type == ELF_T_RELA)) {
        ret_entries->data = data;
        ret_entries->count = data->d_size / bytes < INT_MAX ? data->d_size / bytes : INT_MAX;
    }
    return ERR_NONE;
}

bool elf_entries_symbol(const struct elf_entries *entries, size_t number,
                        struct elf_symbol *ret_symbol)
{
    GElf_Sym symbol;
    if (number >= entries->count || !gelf_getsym(entries->data, (int)number, &symbol))
        return false;
    *ret_symbol = (struct elf_symbol){.name = symbol.st_name,
                                      .binding = GELF_ST_BIND(symbol.st_info),
                                      .type = GELF_ST_TYPE(symbol.st_info),
                                      .section = symbol.st_shndx,
                                      .value = symbol.st_value,
                                      .size = symbol.st_size};
    return true;
}

bool elf_entries_relocation(const struct elf_entries *entries, size_t number,
                            struct elf_relocation *ret_relocation)
{
    GElf_Rela rela;
    GElf_Rel rel;
    if (number >= entries->count)
        return false;
    if (!entries->has_addends) {
        if (!gelf_getrel(entries->data, (int)number, &rel))
            return false;
        rela = (GElf_Rela){.r_offset = rel.r_offset, .r_info = rel.r_info};
    } else if (!gelf_getrela(entries->data, (int)number, &rela)) {
        return false;
    }
    *ret_relocation = (struct elf_relocation){.offset = rela.r_offset,
                                              .symbol = (uint32_t)GELF_R_SYM(rela.r_info),
                                              .type = (uint32_t)GELF_R_TYPE(rela.r_info),
                                              .addend = rela.r_addend,
                                              .has_addend = entries->has_addends};
    return true;
}
