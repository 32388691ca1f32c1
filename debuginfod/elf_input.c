#include "debuginfod/elf_input.h"

#include "debuginfod/cursor.h"
#include "debuginfod/elf_id.h"
#include "lib/base/compress.h"
#include "lib/base/mem.h"

#include <elf.h>
#include <sys/mman.h>

enum {
    COMPRESSED_ZLIB = 1,
    COMPRESSED_ZSTD = 2, /* ELFCOMPRESS_ZSTD, which older headers do not have */
    PAGE_BYTES = 4096,
    ZDEBUG_HEADER_BYTES = 12, /* "ZLIB" and the size, big-endian */
    DEFLATE_RATIO_MAX = 1032, /* what claims to hold more lies */
};

struct elf_header {
    uint64_t program_headers_offset;
    uint64_t sections_offset;
    uint16_t program_header_bytes;
    uint16_t program_header_count;
    uint16_t section_bytes;
    uint16_t section_count;
    uint16_t names_index;
};

static enum err_code read_identity(struct elf_input *elf, struct err *err)
{
    const uint8_t *ident = elf->file.data;
    if (elf->file.size < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG) != 0)
        return err_set(err, ERR_INVALID, "this is no ELF file");
    if (ident[EI_DATA] == ELFDATA2MSB)
        return err_set(err, ERR_UNSUPPORTED, "big-endian ELF files are not supported");
    if (ident[EI_DATA] != ELFDATA2LSB ||
        (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64))
        return err_set(err, ERR_INVALID, "the ELF header names no known class and byte order");
    elf->is_64_bit = ident[EI_CLASS] == ELFCLASS64;
    return ERR_NONE;
}

static enum err_code read_header(struct elf_input *elf, struct elf_header *header, struct err *err)
{
    struct cursor cursor = cursor_at(elf->file, EI_NIDENT);
    unsigned word = elf->is_64_bit ? 8 : 4;
    elf->type = cursor_u16(&cursor);
    elf->machine = cursor_u16(&cursor);
    cursor_skip(&cursor, 4 + word); /* version and entry */
    header->program_headers_offset = cursor_uint(&cursor, word);
    header->sections_offset = cursor_uint(&cursor, word);
    cursor_skip(&cursor, 4 + 2); /* flags and own size */
    header->program_header_bytes = cursor_u16(&cursor);
    header->program_header_count = cursor_u16(&cursor);
    header->section_bytes = cursor_u16(&cursor);
    header->section_count = cursor_u16(&cursor);
    header->names_index = cursor_u16(&cursor);
    if (cursor.has_failed)
        return err_set(err, ERR_INVALID, "the ELF header is cut short");
    return ERR_NONE;
}

/* The header of one section; its name is an offset until the names are known. */
static struct elf_section read_section_header(const struct elf_input *elf, struct cursor *cursor,
                                              uint32_t *ret_name, uint64_t *ret_offset)
{
    unsigned word = elf->is_64_bit ? 8 : 4;
    struct elf_section section = {0};
    *ret_name = cursor_u32(cursor);
    section.type = cursor_u32(cursor);
    section.flags = cursor_uint(cursor, word);
    section.address = cursor_uint(cursor, word);
    *ret_offset = cursor_uint(cursor, word);
    section.memory_bytes = cursor_uint(cursor, word);
    section.link = cursor_u32(cursor);
    section.info = cursor_u32(cursor);
    section.alignment = cursor_uint(cursor, word);
    section.entry_bytes = cursor_uint(cursor, word);
    return section;
}

static bool is_inside(struct span file, uint64_t offset, uint64_t size)
{
    return offset <= file.size && size <= file.size - offset;
}

/* Counts past 16 bits stand in the section header 0 (SHN_XINDEX). */
static enum err_code count_sections(struct elf_input *elf, const struct elf_header *header,
                                    uint32_t *ret_names_index, uint32_t *ret_program_headers,
                                    struct err *err)
{
    uint64_t count = header->section_count;
    *ret_names_index = header->names_index;
    *ret_program_headers = header->program_header_count;
    size_t needed = elf->is_64_bit ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    if (!header->sections_offset)
        return ERR_NONE;
    if (header->section_bytes != needed)
        return err_set(err, ERR_INVALID, "its section headers have %u bytes instead of %zu",
                       header->section_bytes, needed);
    struct cursor cursor = cursor_at(elf->file, header->sections_offset);
    uint32_t name;
    uint64_t offset;
    struct elf_section first = read_section_header(elf, &cursor, &name, &offset);
    if (!count)
        count = first.memory_bytes;
    if (header->names_index == SHN_XINDEX)
        *ret_names_index = first.link;
    if (header->program_header_count == PN_XNUM)
        *ret_program_headers = first.info;
    if (count > ELF_INPUT_MAX_SECTIONS)
        return err_set(err, ERR_TOO_LARGE, "it has more than %d sections", ELF_INPUT_MAX_SECTIONS);
    if (!is_inside(elf->file, header->sections_offset, count * needed))
        return err_set(err, ERR_INVALID, "its section headers lie outside of the file");
    elf->section_count = (uint32_t)count;
    return ERR_NONE;
}

static void name_sections(struct elf_input *elf, const uint32_t *names, uint32_t names_index)
{
    if (names_index >= elf->section_count)
        return;
    struct span strings = elf->sections[names_index].stored;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        struct cursor cursor = cursor_at(strings, names[i]);
        elf->sections[i].name = cursor_text(&cursor);
    }
}

static enum err_code read_sections(struct elf_input *elf, const struct elf_header *header,
                                   uint32_t names_index, struct err *err)
{
    struct cursor cursor = cursor_at(elf->file, header->sections_offset);
    elf->sections = arena_new(elf->arena, struct elf_section, elf->section_count);
    uint32_t *names = arena_new(elf->arena, uint32_t, elf->section_count);
    for (uint32_t i = 0; i < elf->section_count; i++) {
        uint64_t offset;
        struct elf_section *section = &elf->sections[i];
        *section = read_section_header(elf, &cursor, &names[i], &offset);
        if (section->type == SHT_NOBITS || section->type == SHT_NULL || !section->memory_bytes)
            continue;
        if (!is_inside(elf->file, offset, section->memory_bytes))
            return err_set(err, ERR_INVALID, "its section %u lies outside of the file: cut short?",
                           i);
        section->stored = span_of(elf->file.data + offset, (size_t)section->memory_bytes);
    }
    name_sections(elf, names, names_index);
    return ERR_NONE;
}

static enum err_code read_program_headers(struct elf_input *elf, const struct elf_header *header,
                                          uint32_t count, struct err *err)
{
    size_t needed = elf->is_64_bit ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    if (!header->program_headers_offset || !count)
        return ERR_NONE;
    if (count > ELF_INPUT_MAX_PROGRAM_HEADERS)
        return err_set(err, ERR_TOO_LARGE, "it has more than %d program headers",
                       ELF_INPUT_MAX_PROGRAM_HEADERS);
    if (header->program_header_bytes != needed ||
        !is_inside(elf->file, header->program_headers_offset, count * needed))
        return err_set(err, ERR_INVALID, "its program headers lie outside of the file");
    struct cursor cursor = cursor_at(elf->file, header->program_headers_offset);
    elf->program_headers = arena_new(elf->arena, struct elf_program_header, count);
    elf->program_header_count = count;
    unsigned word = elf->is_64_bit ? 8 : 4;
    for (uint32_t i = 0; i < count; i++) {
        struct elf_program_header *segment = &elf->program_headers[i];
        segment->type = cursor_u32(&cursor);
        if (elf->is_64_bit)
            segment->flags = cursor_u32(&cursor);
        segment->file_offset = cursor_uint(&cursor, word);
        segment->address = cursor_uint(&cursor, word);
        cursor_skip(&cursor, word);
        segment->file_bytes = cursor_uint(&cursor, word);
        segment->memory_bytes = cursor_uint(&cursor, word);
        if (!elf->is_64_bit)
            segment->flags = cursor_u32(&cursor);
        segment->alignment = cursor_uint(&cursor, word);
    }
    return ERR_NONE;
}

/* ---- compressed sections ---- */

struct packed {
    uint32_t method;
    uint64_t flat_bytes;
    struct span bytes;
};

static bool is_zdebug(const struct elf_section *section)
{
    return span_starts_with(section->name, ".zdebug_") &&
           section->stored.size >= ZDEBUG_HEADER_BYTES &&
           memcmp(section->stored.data, "ZLIB", 4) == 0;
}

/* False: the section is not compressed. */
static bool find_packed(const struct elf_input *elf, const struct elf_section *section,
                        struct packed *ret_packed)
{
    struct cursor cursor = cursor_of(section->stored);
    *ret_packed = (struct packed){.method = COMPRESSED_ZLIB};
    if (section->flags & SHF_COMPRESSED) {
        ret_packed->method = cursor_u32(&cursor);
        if (elf->is_64_bit)
            cursor_skip(&cursor, 4);
        ret_packed->flat_bytes = cursor_uint(&cursor, elf->is_64_bit ? 8 : 4);
        cursor_skip(&cursor, elf->is_64_bit ? 8 : 4);
    } else if (is_zdebug(section)) {
        cursor_skip(&cursor, 4);
        ret_packed->flat_bytes = __builtin_bswap64(cursor_u64(&cursor));
    } else {
        return false;
    }
    ret_packed->bytes = span_of(cursor.next, cursor_left(&cursor));
    return section->stored.size > 0;
}

static enum err_code check_inflated(const struct elf_input *elf, struct err *err)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        struct packed packed;
        if (!find_packed(elf, &elf->sections[i], &packed))
            continue;
        if (packed.flat_bytes > ELF_INPUT_MAX_INFLATED_BYTES ||
            (sum += packed.flat_bytes) > ELF_INPUT_MAX_INFLATED_BYTES)
            return err_set(err, ERR_TOO_LARGE,
                           "its compressed sections hold more than the limit of %llu bytes",
                           (unsigned long long)ELF_INPUT_MAX_INFLATED_BYTES);
    }
    return ERR_NONE;
}

/* Pages of the file that are not needed again count as our memory as long as they are mapped. */
static void give_back(const struct elf_input *elf, struct span stored)
{
    if (!elf->is_mapped)
        return;
    uintptr_t begin = ((uintptr_t)stored.data + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
    uintptr_t end = ((uintptr_t)stored.data + stored.size) & ~(uintptr_t)(PAGE_BYTES - 1);
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static enum err_code inflate(const struct elf_input *elf, struct elf_section *section,
                             const struct packed *packed, struct err *err)
{
    if (packed->method != COMPRESSED_ZLIB && packed->method != COMPRESSED_ZSTD)
        return err_set(err, ERR_UNSUPPORTED,
                       "section %.*s is compressed by method %u, which is unknown",
                       SPAN_PRINT(section->name), packed->method);
    if (packed->method == COMPRESSED_ZLIB
            ? packed->flat_bytes / DEFLATE_RATIO_MAX > packed->bytes.size
            : !compress_can_expand_to(packed->bytes, (size_t)packed->flat_bytes))
        return err_set(err, ERR_INVALID, "section %.*s claims more than its bytes can hold",
                       SPAN_PRINT(section->name));
    uint8_t *flat = mem_alloc((size_t)packed->flat_bytes, 1);
    bool is_good = packed->method == COMPRESSED_ZLIB
                       ? compress_inflate_exact(packed->bytes, flat, (size_t)packed->flat_bytes)
                       : compress_expand_exact(packed->bytes, flat, (size_t)packed->flat_bytes);
    if (!is_good) {
        mem_free(flat);
        return err_set(err, ERR_INVALID, "the compressed bytes of section %.*s are damaged",
                       SPAN_PRINT(section->name));
    }
    give_back(elf, section->stored);
    section->owned = flat;
    section->flat = span_of(flat, (size_t)packed->flat_bytes);
    return ERR_NONE;
}

enum err_code elf_input_read(struct elf_input *elf, struct elf_section *section,
                             struct span *ret_bytes, struct err *err)
{
    struct packed packed;
    if (!section->flat.data && find_packed(elf, section, &packed)) {
        enum err_code code = inflate(elf, section, &packed, err);
        if (code)
            return code;
    } else if (!section->flat.data) {
        section->flat = section->stored;
    }
    *ret_bytes = section->flat;
    return ERR_NONE;
}

enum err_code elf_input_read_name(struct elf_input *elf, const char *name, struct span *ret_bytes,
                                  struct err *err)
{
    struct elf_section *section = elf_input_find(elf, name);
    *ret_bytes = (struct span){NULL, 0};
    return section ? elf_input_read(elf, section, ret_bytes, err) : ERR_NONE;
}

void elf_input_forget(struct elf_section *section)
{
    if (!section)
        return;
    mem_free(section->owned);
    section->owned = NULL;
    section->flat = (struct span){NULL, 0};
}

struct elf_section *elf_input_find(struct elf_input *elf, const char *name)
{
    bool is_debug = strncmp(name, ".debug_", 7) == 0;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        struct elf_section *section = &elf->sections[i];
        if (!section->stored.size)
            continue;
        struct span rest = section->name;
        if (is_debug && span_starts_with(rest, ".zdebug_"))
            rest = span_of(rest.data + 8, rest.size - 8);
        else if (is_debug && span_starts_with(rest, ".debug_"))
            rest = span_of(rest.data + 7, rest.size - 7);
        else if (is_debug)
            continue;
        if (span_equal_text(rest, is_debug ? name + 7 : name))
            return section;
    }
    return NULL;
}

const struct elf_section *elf_input_named(const struct elf_input *elf, const char *name)
{
    for (uint32_t i = 0; i < elf->section_count; i++) {
        if (span_equal_text(elf->sections[i].name, name))
            return &elf->sections[i];
    }
    return NULL;
}

struct span elf_input_at(const struct elf_input *elf, uint64_t address)
{
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const struct elf_section *section = &elf->sections[i];
        uint64_t offset = address - section->address;
        if ((section->flags & SHF_ALLOC) && !(section->flags & SHF_COMPRESSED) &&
            address >= section->address && offset < section->stored.size)
            return span_of(section->stored.data + offset, section->stored.size - offset);
    }
    for (uint32_t i = 0; !elf->section_count && i < elf->program_header_count; i++) {
        const struct elf_program_header *segment = &elf->program_headers[i];
        uint64_t offset = address - segment->address;
        if (segment->type == PT_LOAD && address >= segment->address &&
            offset < segment->file_bytes &&
            is_inside(elf->file, segment->file_offset, segment->file_bytes))
            return span_of(elf->file.data + segment->file_offset + offset,
                           (size_t)(segment->file_bytes - offset));
    }
    return (struct span){NULL, 0};
}

/* Allocated sections one after the other: what the kernel's loader and elfutils agree on. */
static void place_sections(struct elf_input *elf)
{
    uint64_t next = 0;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        struct elf_section *section = &elf->sections[i];
        if (!(section->flags & SHF_ALLOC))
            continue;
        uint64_t alignment = section->alignment ? section->alignment : 1;
        if (alignment & (alignment - 1) || alignment > 1U << 30 ||
            section->memory_bytes > UINT32_MAX || next > UINT64_MAX / 4)
            continue;
        section->address = (next + alignment - 1) & ~(alignment - 1);
        next = section->address + section->memory_bytes;
    }
}

static enum err_code open_parts(struct elf_input *elf, struct err *err)
{
    struct elf_header header;
    uint32_t names_index, program_headers;
    enum err_code code = read_identity(elf, err);
    if (!code)
        code = read_header(elf, &header, err);
    if (!code)
        code = count_sections(elf, &header, &names_index, &program_headers, err);
    if (!code)
        code = read_sections(elf, &header, names_index, err);
    if (!code)
        code = read_program_headers(elf, &header, program_headers, err);
    if (!code)
        code = check_inflated(elf, err);
    return code;
}

enum err_code elf_input_open(struct arena *arena, struct span file, bool is_mapped,
                             struct elf_input **ret_elf, struct err *err)
{
    struct elf_input *elf = arena_new(arena, struct elf_input, 1);
    *elf = (struct elf_input){.arena = arena, .file = file, .is_mapped = is_mapped};
    enum err_code code = open_parts(elf, err);
    if (code)
        return code;
    if (elf->type == ET_REL)
        place_sections(elf);
    elf_id_read(elf, &elf->id);
    *ret_elf = elf;
    return ERR_NONE;
}

void elf_input_close(struct elf_input *elf)
{
    if (!elf)
        return;
    for (uint32_t i = 0; i < elf->section_count; i++)
        elf_input_forget(&elf->sections[i]);
}
