#include "agent/labels/program_info.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/os.h"

#include <elf.h>
#include <stdio.h>

enum {
    NAMES_MAX_BYTES = 1 << 20,
    COMMENT_MAX_BYTES = 16 << 10,
    GO_HEAD_BYTES = 32, /* magic, size of pointers, flags, two pointers */
    GO_FLAGS_AT = 15,
    GO_IS_INLINE = 2, /* since Go 1.18: the length and the text of the version follow the head */
    GO_READ_BYTES = 128,
};

struct reader {
    int fd;
    struct arena *arena;
    Elf64_Ehdr header;
    struct program_info *facts;
};

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
    return offset <= INT64_MAX - size && os_pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static bool read_header(struct reader *reader)
{
    const Elf64_Ehdr *header = &reader->header;
    return read_at(reader->fd, &reader->header, sizeof(*header), 0) &&
           memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB;
}

/* ---- compilers ---- */

static void set_compiler(struct reader *reader, struct span text)
{
    text = span_trim(text);
    snprintf(reader->facts->compiler, sizeof(reader->facts->compiler), "%.*s",
             (int)(text.size < PROGRAM_INFO_COMPILER_BYTES ? text.size
                                                           : PROGRAM_INFO_COMPILER_BYTES - 1),
             (const char *)text.data);
}

/* Reads .comment: NUL-terminated texts, one of each compiler that built a part of the program. The
 * start files of libc add GCC's to every program, so GCC's is the last choice. */
static void read_comment(struct reader *reader, const Elf64_Shdr *section)
{
    static const char *const best_first[] = {"rustc version", "clang version", "GCC:"};
    const size_t size = section->sh_size < COMMENT_MAX_BYTES ? section->sh_size : COMMENT_MAX_BYTES;
    char *text = arena_alloc(reader->arena, size + 1, 1);
    if (!read_at(reader->fd, text, size, section->sh_offset))
        return;
    for (size_t kind = 0; kind < sizeof(best_first) / sizeof(*best_first); kind++) {
        for (size_t at = 0; at < size; at += strlen(text + at) + 1) {
            if (strstr(text + at, best_first[kind])) {
                set_compiler(reader, span_text(text + at));
                return;
            }
        }
    }
}

static void read_go(struct reader *reader, const Elf64_Shdr *section)
{
    static const char magic[] = "\xff Go buildinf:";
    uint8_t bytes[GO_READ_BYTES];
    set_compiler(reader, SPAN_LITERAL("Go"));
    if (section->sh_size < sizeof(bytes) ||
        !read_at(reader->fd, bytes, sizeof(bytes), section->sh_offset) ||
        memcmp(bytes, magic, sizeof(magic) - 1) != 0 || !(bytes[GO_FLAGS_AT] & GO_IS_INLINE))
        return;
    const size_t size =
        bytes[GO_HEAD_BYTES]; /* a varint; one byte for texts that are as short as these */
    if (size && size < sizeof(bytes) - GO_HEAD_BYTES - 1)
        set_compiler(reader, span_of(bytes + GO_HEAD_BYTES + 1, size));
}

/* ---- headers ---- */

static void take_section(struct reader *reader, const Elf64_Shdr *section, const char *name)
{
    if (strcmp(name, ".symtab") == 0)
        reader->facts->is_stripped = false;
    else if (strcmp(name, ".go.buildinfo") == 0)
        read_go(reader, section);
    else if (strcmp(name, ".comment") == 0 && reader->facts->compiler[0] == 0)
        read_comment(reader, section);
}

static void read_sections(struct reader *reader)
{
    const Elf64_Ehdr *header = &reader->header;
    const uint32_t count = header->e_shnum, names_at = header->e_shstrndx;
    if (header->e_shentsize != sizeof(Elf64_Shdr) || names_at >= count)
        return;
    Elf64_Shdr *sections = arena_new_raw(reader->arena, Elf64_Shdr, count);
    if (!read_at(reader->fd, sections, count * sizeof(*sections), header->e_shoff) ||
        sections[names_at].sh_size > NAMES_MAX_BYTES)
        return;
    const size_t names_bytes = sections[names_at].sh_size;
    char *names = arena_alloc(reader->arena, names_bytes + 1, 1);
    if (!read_at(reader->fd, names, names_bytes, sections[names_at].sh_offset))
        return;
    for (uint32_t i = 0; i < count; i++) {
        if (sections[i].sh_name < names_bytes)
            take_section(reader, &sections[i], names + sections[i].sh_name);
    }
}

static void read_segments(struct reader *reader)
{
    const Elf64_Ehdr *header = &reader->header;
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0)
        return;
    Elf64_Phdr *segments = arena_new_raw(reader->arena, Elf64_Phdr, header->e_phnum);
    if (!read_at(reader->fd, segments, header->e_phnum * sizeof(*segments), header->e_phoff))
        return;
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_INTERP)
            reader->facts->is_static = false;
    }
}

void program_info_read(int fd, struct program_info *ret_facts)
{
    arena_auto arena = arena_create();
    struct program_info facts = {.is_static = true, .is_stripped = true};
    struct reader reader = {.fd = fd, .arena = arena, .facts = &facts};
    *ret_facts = (struct program_info){0};
    if (fd < 0 || !read_header(&reader))
        return;
    read_sections(&reader);
    read_segments(&reader);
    *ret_facts = facts;
}
