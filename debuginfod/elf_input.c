#include "debuginfod/elf_input.h"

#include "debuginfod/cursor.h"
#include "debuginfod/elf_id.h"
#include "debuginfod/elf_reader.h"
#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <elf.h>
#include <sys/mman.h>

enum {
    COMPRESSED_ZSTD = 2, /* ELFCOMPRESS_ZSTD, which libelf 0.188 lacks */
    PAGE_BYTES = 4096,
    ZDEBUG_HEADER_BYTES = 12, /* "ZLIB" and the size, big-endian */
    DEFLATE_RATIO_MAX = 1032, /* the highest that deflate reaches; a larger claim is false */
};

/* ---- compressed sections ---- */

static bool is_zdebug(const struct elf_section *section)
{
    return span_starts_with(section->name, ".zdebug_") &&
           section->stored.size >= ZDEBUG_HEADER_BYTES &&
           memcmp(section->stored.data, "ZLIB", 4) == 0;
}

static bool is_packed(const struct elf_section *section)
{
    return section->stored.size && ((section->flags & SHF_COMPRESSED) || is_zdebug(section));
}

static bool find_packed(const struct elf_input *elf, const struct elf_section *section,
                        struct elf_packed *ret_packed)
{
    if (section->flags & SHF_COMPRESSED)
        return elf_reader_packed(elf, section, ret_packed);
    struct cursor cursor = cursor_at(section->stored, 4);
    uint64_t flat_bytes = __builtin_bswap64(cursor_u64(&cursor));
    *ret_packed = (struct elf_packed){.method = ELFCOMPRESS_ZLIB,
                                      .flat_bytes = flat_bytes,
                                      .bytes = span_of(cursor.next, cursor_left(&cursor))};
    return true;
}

static enum err_code check_inflated(const struct elf_input *elf, struct err *err)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        struct elf_packed packed;
        if (!is_packed(&elf->sections[i]) || !find_packed(elf, &elf->sections[i], &packed))
            continue;
        if (packed.flat_bytes > ELF_INPUT_MAX_INFLATED_BYTES ||
            (sum += packed.flat_bytes) > ELF_INPUT_MAX_INFLATED_BYTES)
            return err_set(err, ERR_TOO_LARGE,
                           "its compressed sections hold more than the limit of %llu bytes",
                           (unsigned long long)ELF_INPUT_MAX_INFLATED_BYTES);
    }
    return ERR_NONE;
}

/* Releases pages of the mapped file that are not needed again; they count as memory of this
 * process. */
static void release_pages(const struct elf_input *elf, struct span stored)
{
    if (!elf->is_mapped)
        return;
    uintptr_t begin = ((uintptr_t)stored.data + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
    uintptr_t end = ((uintptr_t)stored.data + stored.size) & ~(uintptr_t)(PAGE_BYTES - 1);
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static enum err_code inflate(const struct elf_input *elf, struct elf_section *section,
                             const struct elf_packed *packed, struct err *err)
{
    if (packed->method != ELFCOMPRESS_ZLIB && packed->method != COMPRESSED_ZSTD)
        return err_set(err, ERR_UNSUPPORTED,
                       "section %.*s is compressed by method %u, which is unknown",
                       SPAN_PRINT(section->name), packed->method);
    if (packed->method == ELFCOMPRESS_ZLIB
            ? packed->flat_bytes / DEFLATE_RATIO_MAX > packed->bytes.size
            : !compress_can_expand_to(packed->bytes, (size_t)packed->flat_bytes))
        return err_set(err, ERR_INVALID, "section %.*s claims more than its bytes can hold",
                       SPAN_PRINT(section->name));
    uint8_t *flat = mem_alloc((size_t)packed->flat_bytes, 1);
    bool is_good = packed->method == ELFCOMPRESS_ZLIB
                       ? compress_inflate_exact(packed->bytes, flat, (size_t)packed->flat_bytes)
                       : compress_expand_exact(packed->bytes, flat, (size_t)packed->flat_bytes);
    if (!is_good) {
        mem_free(flat);
        return err_set(err, ERR_INVALID, "the compressed bytes of section %.*s are damaged",
                       SPAN_PRINT(section->name));
    }
    release_pages(elf, section->stored);
    section->owned = flat;
    section->flat = span_of(flat, (size_t)packed->flat_bytes);
    return ERR_NONE;
}

enum err_code elf_input_read(struct elf_input *elf, struct elf_section *section,
                             struct span *ret_bytes, struct err *err)
{
    struct elf_packed packed;
    if (!section->flat.data && is_packed(section)) {
        if (!find_packed(elf, section, &packed))
            return err_set(err, ERR_INVALID, "the header of the compressed section %.*s is damaged",
                           SPAN_PRINT(section->name));
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
            offset < segment->file_bytes && segment->file_offset <= elf->file.size &&
            segment->file_bytes <= elf->file.size - segment->file_offset)
            return span_of(elf->file.data + segment->file_offset + offset,
                           (size_t)(segment->file_bytes - offset));
    }
    return (struct span){NULL, 0};
}

/* Assigns consecutive addresses to the allocated sections, as the kernel's loader and elfutils
 * do. */
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

enum err_code elf_input_open(struct arena *arena, struct span file, bool is_mapped,
                             struct elf_input **ret_elf, struct err *err)
{
    struct elf_input *elf = arena_new(arena, struct elf_input, 1);
    *elf = (struct elf_input){.arena = arena, .file = file, .is_mapped = is_mapped};
    enum err_code code = elf_reader_open(elf, err);
    if (!code)
        code = check_inflated(elf, err);
    if (code) {
        elf_reader_close(elf);
        return code;
    }
    if (elf->type == ET_REL)
        place_sections(elf);
    elf_id_read(elf, elf_input_find(elf, ".text"), &elf->id);
    *ret_elf = elf;
    return ERR_NONE;
}

void elf_input_close(struct elf_input *elf)
{
    if (!elf)
        return;
    for (uint32_t i = 0; i < elf->section_count; i++)
        elf_input_forget(&elf->sections[i]);
    elf_reader_close(elf);
}
