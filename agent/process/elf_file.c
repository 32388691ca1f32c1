#include "agent/process/elf_file.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
    PROGRAM_HEADERS_MAX = 128,
    NOTES_MAX_BYTES = 64 << 10,
    PAGE_BYTES_MAX = 64 << 10,
    GNU_NOTE_BYTES = 36
};
enum { NT_GO_BUILD_ID = 4 };

static enum err_code read_at(int fd, const char *name, void *to, size_t size, uint64_t offset,
                             struct err *err)
{
    if (offset > INT64_MAX - size)
        return err_set(err, ERR_INVALID, "%s: a part is outside of the file", name);
    const ssize_t got = os_pread(fd, to, size, (off_t)offset);
    if (got < 0)
        return err_set_errno(err, ERR_IO, "reading %s", name);
    if ((size_t)got < size)
        return err_set(err, ERR_INVALID, "%s is not an ELF file, or truncated", name);
    return ERR_NONE;
}

static enum err_code read_header(int fd, const char *name, Elf64_Ehdr *header, struct err *err)
{
    enum err_code code = read_at(fd, name, header, sizeof(*header), 0, err);
    if (code)
        return code;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return err_set(err, ERR_INVALID, "%s is not an ELF file", name);
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
        return err_set(err, ERR_UNSUPPORTED, "%s is not 64-bit little-endian", name);
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > PROGRAM_HEADERS_MAX)
        return err_set(err, ERR_INVALID, "%s has invalid program headers", name);
    return ERR_NONE;
}

static void add_segment(struct elf_file *file, const Elf64_Phdr *header)
{
    if (file->segment_count == ELF_FILE_SEGMENTS_MAX || header->p_filesz == 0 ||
        header->p_offset + header->p_filesz < header->p_offset)
        return;
    file->segments[file->segment_count++] =
        (struct elf_file_segment){.address = header->p_vaddr,
                                  .offset = header->p_offset,
                                  .bytes = header->p_filesz,
                                  .is_code = header->p_flags & PF_X};
}

static size_t aligned(size_t size)
{
    return (size + 3) & ~(size_t)3;
}

static void take_build_id(const uint8_t *text, uint32_t bytes, bool is_go_id, struct elf_file *file)
{
    if (bytes == 0 || bytes > ELF_FILE_BUILD_ID_MAX_BYTES)
        return;
    memcpy(file->build_id, text, bytes);
    file->build_id_bytes = bytes;
    file->is_go_id = is_go_id;
}

/* Finds the first GNU build id among the notes, otherwise Go's: Go before 1.24 writes no other. */
static void find_build_id(const uint8_t *notes, size_t size, struct elf_file *file)
{
    size_t at = 0;
    while (size - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof(note));
        at += sizeof(note);
        const size_t name_bytes = aligned(note.n_namesz), text_bytes = aligned(note.n_descsz);
        if (name_bytes > size - at || text_bytes > size - at - name_bytes)
            return;
        const uint8_t *text = notes + at + name_bytes;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz &&
            memcmp(notes + at, "GNU", 4) == 0) {
            take_build_id(text, note.n_descsz, false, file);
            return;
        }
        if (note.n_type == NT_GO_BUILD_ID && note.n_namesz == 4 && file->build_id_bytes == 0 &&
            memcmp(notes + at, "Go\0", 4) == 0)
            take_build_id(text, note.n_descsz, true, file);
        at += name_bytes + text_bytes;
    }
}

/* Notes that cannot be read are ignored, because the file can be unwound without them. */
static void read_notes(int fd, const char *name, const Elf64_Phdr *header, struct elf_file *file)
{
    struct err ignored;
    arena_auto arena = arena_create();
    if ((file->build_id_bytes && !file->is_go_id) || header->p_filesz == 0 ||
        header->p_filesz > NOTES_MAX_BYTES)
        return;
    /* Go places its GNU note after the end of the segment that contains the notes. */
    const size_t size = header->p_filesz + GNU_NOTE_BYTES;
    uint8_t *notes = arena_alloc_raw(arena, size, 1);
    if (!read_at(fd, name, notes, size, header->p_offset, &ignored))
        find_build_id(notes, size, file);
    else if (!read_at(fd, name, notes, header->p_filesz, header->p_offset, &ignored))
        find_build_id(notes, header->p_filesz, file);
}

enum err_code elf_file_read(int fd, const char *name, struct elf_file *ret_file, struct err *err)
{
    Elf64_Ehdr header;
    Elf64_Phdr programs[PROGRAM_HEADERS_MAX];
    struct elf_file file = {0};
    enum err_code code = read_header(fd, name, &header, err);
    if (!code)
        code = read_at(fd, name, programs, header.e_phnum * sizeof(*programs), header.e_phoff, err);
    if (code)
        return code;
    for (uint32_t i = 0; i < header.e_phnum; i++) {
        if (programs[i].p_type == PT_LOAD)
            add_segment(&file, &programs[i]);
        else if (programs[i].p_type == PT_NOTE)
            read_notes(fd, name, &programs[i], &file);
    }
    *ret_file = file;
    return ERR_NONE;
}

/* The distance of offset from the segment; 0: it is inside. */
static uint64_t distance_to(const struct elf_file_segment *segment, uint64_t offset)
{
    if (offset < segment->offset)
        return segment->offset - offset;
    const uint64_t into = offset - segment->offset;
    return into < segment->bytes ? 0 : into - segment->bytes + 1;
}

static const struct elf_file_segment *nearest(const struct elf_file *file, uint64_t offset,
                                              bool is_code)
{
    const struct elf_file_segment *best = NULL;
    uint64_t least = PAGE_BYTES_MAX;
    for (uint32_t i = 0; i < file->segment_count; i++) {
        const struct elf_file_segment *segment = &file->segments[i];
        const uint64_t distance = distance_to(segment, offset);
        if (segment->is_code != is_code || distance >= least ||
            (offset < segment->offset && segment->address < distance))
            continue;
        best = segment;
        least = distance;
    }
    return best;
}

bool elf_file_address(const struct elf_file *file, uint64_t offset, uint64_t *ret_address)
{
    const struct elf_file_segment *segment = nearest(file, offset, true);
    if (!segment)
        segment = nearest(file, offset, false);
    if (segment)
        *ret_address = segment->address + offset - segment->offset;
    return segment;
}
