#include "agent/unwind/elf_frames.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PROGRAM_HEADERS_MAX = 1024,
    SECTION_NAMES_MAX = 4 << 20,
};

/* Reads size bytes; false: there are fewer. */
static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
    uint8_t *bytes = to;
    while (size) {
        ssize_t count = pread(fd, bytes, size, (off_t)offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        bytes += count;
        offset += (uint64_t)count;
        size -= (size_t)count;
    }
    return true;
}

static bool is_in_file(const struct elf_frames *frames, uint64_t offset, uint64_t bytes)
{
    uint64_t end;
    return !__builtin_add_overflow(offset, bytes, &end) && end <= frames->file_bytes;
}

static enum err_code check_header(const struct elf_frames *frames, const Elf64_Ehdr *header,
                                  struct err *err)
{
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return err_set(err, ERR_INVALID, "%s is not an ELF file", frames->path);
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
        return err_set(err, ERR_UNSUPPORTED, "%s is not a 64-bit little-endian ELF file",
                       frames->path);
    if (header->e_machine != EM_X86_64 && header->e_machine != EM_AARCH64)
        return err_set(err, ERR_UNSUPPORTED, "%s is for machine %d, neither x86-64 nor arm64",
                       frames->path, header->e_machine);
    if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
        return err_set(err, ERR_UNSUPPORTED, "%s is neither a program nor a shared library",
                       frames->path);
    return ERR_NONE;
}

static void merge_code(struct elf_extent *into, const struct elf_extent *other)
{
    uint64_t end = into->address + into->bytes;
    uint64_t other_end = other->address + other->bytes;
    uint64_t start = into->address < other->address ? into->address : other->address;
    into->bytes = (end > other_end ? end : other_end) - start;
    into->address = start;
}

/* Keeps code[] ascending; the ELF specification wants segments so, but nothing enforces it. */
static void add_code(struct elf_frames *frames, const Elf64_Phdr *segment)
{
    struct elf_extent code = {segment->p_vaddr, segment->p_offset, segment->p_memsz};
    uint64_t end;
    if (!code.bytes || __builtin_add_overflow(code.address, code.bytes, &end) || end >> 63)
        return;
    uint32_t at = frames->code_count;
    while (at > 0 && frames->code[at - 1].address > code.address)
        at--;
    if (frames->code_count == ELF_FRAMES_CODE_MAX) {
        merge_code(&frames->code[at ? at - 1 : 0], &code);
        return;
    }
    memmove(&frames->code[at + 1], &frames->code[at],
            (frames->code_count - at) * sizeof frames->code[0]);
    frames->code[at] = code;
    frames->code_count++;
}

static void add_segment(struct elf_frames *frames, const Elf64_Phdr *segment)
{
    if (segment->p_type == PT_LOAD && segment->p_flags & PF_X)
        add_code(frames, segment);
    if (segment->p_type == PT_GNU_EH_FRAME &&
        is_in_file(frames, segment->p_offset, segment->p_filesz))
        frames->eh_frame_hdr =
            (struct elf_extent){segment->p_vaddr, segment->p_offset, segment->p_filesz};
}

static enum err_code read_segments(struct elf_frames *frames, const Elf64_Ehdr *header,
                                   Elf64_Phdr *segments, struct err *err)
{
    if (!read_at(frames->fd, segments, header->e_phnum * sizeof *segments, header->e_phoff))
        return err_set(err, ERR_INVALID, "%s ends within its program headers", frames->path);
    for (uint32_t i = 0; i < header->e_phnum; i++)
        add_segment(frames, &segments[i]);
    return ERR_NONE;
}

/* Finds .eh_frame by .eh_frame_hdr in a file without section headers. The size of .eh_frame is
 * unknown, so the end of its segment counts as its end; its reader stops at a record of length 0.
 */
static void find_unnamed_eh_frame(struct elf_frames *frames, const Elf64_Phdr *segments,
                                  uint32_t count)
{
    uint8_t begin[8];
    int32_t distance;
    if (frames->eh_frame.bytes || frames->eh_frame_hdr.bytes < sizeof begin ||
        !read_at(frames->fd, begin, sizeof begin, frames->eh_frame_hdr.offset) || begin[0] != 1 ||
        begin[1] != 0x1b) /* pointer to .eh_frame: pc-relative, 4 signed bytes */
        return;
    memcpy(&distance, begin + 4, sizeof distance);
    uint64_t address = frames->eh_frame_hdr.address + 4 + (uint64_t)(int64_t)distance;
    for (uint32_t i = 0; i < count; i++) {
        const Elf64_Phdr *segment = &segments[i];
        uint64_t into = address - segment->p_vaddr;
        if (segment->p_type == PT_LOAD && into < segment->p_filesz &&
            is_in_file(frames, segment->p_offset, segment->p_filesz))
            frames->eh_frame =
                (struct elf_extent){address, segment->p_offset + into, segment->p_filesz - into};
    }
}

static void add_section(struct elf_frames *frames, const Elf64_Shdr *section, const char *name)
{
    if (section->sh_type == SHT_NOBITS || section->sh_flags & SHF_COMPRESSED ||
        !is_in_file(frames, section->sh_offset, section->sh_size))
        return;
    struct elf_extent extent = {section->sh_addr, section->sh_offset, section->sh_size};
    if (strcmp(name, ".eh_frame") == 0)
        frames->eh_frame = extent;
    else if (strcmp(name, ".eh_frame_hdr") == 0)
        frames->eh_frame_hdr = extent;
    else if (strcmp(name, ".debug_frame") == 0)
        frames->debug_frame = extent;
    else if (strcmp(name, ".gopclntab") == 0 || strcmp(name, ".data.rel.ro.gopclntab") == 0)
        frames->go_table = extent;
    else if (strcmp(name, ".text") == 0)
        frames->text_address = section->sh_addr;
}

static void add_sections(struct elf_frames *frames, const Elf64_Shdr *sections, uint32_t count,
                         const char *names, size_t names_bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sections[i].sh_name < names_bytes)
            add_section(frames, &sections[i], names + sections[i].sh_name);
    }
}

/* Reads the section headers. The program headers suffice, so errors are ignored. */
static void read_sections(struct elf_frames *frames, const Elf64_Ehdr *header)
{
    uint32_t count = header->e_shnum;
    uint32_t names_index = header->e_shstrndx;
    if (!count || header->e_shentsize != sizeof(Elf64_Shdr) || names_index >= count ||
        !is_in_file(frames, header->e_shoff, count * sizeof(Elf64_Shdr)))
        return;
    arena_auto arena = arena_create();
    Elf64_Shdr *sections = arena_new_raw(arena, Elf64_Shdr, count);
    if (!read_at(frames->fd, sections, count * sizeof *sections, header->e_shoff))
        return;
    const Elf64_Shdr *table = &sections[names_index];
    if (table->sh_size > SECTION_NAMES_MAX || !is_in_file(frames, table->sh_offset, table->sh_size))
        return;
    char *names = arena_alloc_raw(arena, table->sh_size + 1, 1);
    if (!read_at(frames->fd, names, table->sh_size, table->sh_offset))
        return;
    names[table->sh_size] = '\0';
    add_sections(frames, sections, count, names, table->sh_size);
}

enum err_code elf_frames_open(int fd, const char *path, struct elf_frames *ret_frames,
                              struct err *err)
{
    struct elf_frames frames = {.fd = fd, .path = path};
    Elf64_Ehdr header;
    struct stat file;
    if (fstat(fd, &file) < 0)
        return err_set_errno(err, ERR_IO, "%s cannot be read", path);
    frames.file_bytes = (uint64_t)file.st_size;
    if (!read_at(fd, &header, sizeof header, 0))
        return err_set(err, ERR_INVALID, "%s is not an ELF file", path);
    if (check_header(&frames, &header, err))
        return err->code;
    if (header.e_phentsize != sizeof(Elf64_Phdr) || !header.e_phnum ||
        header.e_phnum > PROGRAM_HEADERS_MAX)
        return err_set(err, ERR_INVALID, "%s has no usable program headers", path);
    frames.machine = header.e_machine;
    arena_auto arena = arena_create();
    Elf64_Phdr *segments = arena_new_raw(arena, Elf64_Phdr, header.e_phnum);
    if (read_segments(&frames, &header, segments, err))
        return err->code;
    read_sections(&frames, &header);
    find_unnamed_eh_frame(&frames, segments, header.e_phnum);
    *ret_frames = frames;
    return ERR_NONE;
}
