#include "debuginfod/elf_id.h"

#include "debuginfod/cursor.h"
#include "debuginfod/elf_input.h"

#include <elf.h>
#include <xxhash.h>

enum { NOTE_GNU_BUILD_ID = 3, NOTE_GO_BUILD_ID = 4 };

/* Go includes the padding of a note's name in its size. */
static bool is_named(struct span name, const char *text)
{
    size_t length = strlen(text) + 1;
    return name.size >= length && name.size <= ((length + 3) & ~(size_t)3) &&
           memcmp(name.data, text, length) == 0;
}

static void take_id(struct elf_id *id, enum elf_id_kind kind, struct span bytes)
{
    if (!bytes.size || bytes.size > ELF_INPUT_MAX_ID_BYTES)
        return;
    if (id->kind == ELF_ID_GNU || (id->kind == ELF_ID_GO && kind == ELF_ID_GO))
        return;
    id->kind = kind;
    id->size = bytes.size;
    memcpy(id->bytes, bytes.data, bytes.size);
}

/* Reads notes without libelf, which ignores a last note that is not padded to four bytes;
 * linkers write such notes for ids of unusual sizes. */
static void read_notes(struct span notes, struct elf_id *id)
{
    struct cursor cursor = cursor_of(notes);
    for (int i = 0; i < ELF_INPUT_MAX_NOTES && cursor_left(&cursor) >= 12; i++) {
        uint32_t name_bytes = cursor_u32(&cursor), bytes = cursor_u32(&cursor);
        uint32_t type = cursor_u32(&cursor);
        struct span name = cursor_bytes(&cursor, name_bytes);
        cursor_skip(&cursor, -name_bytes & 3);
        struct span content = cursor_bytes(&cursor, bytes);
        cursor_skip(&cursor, -bytes & 3);
        if (type == NOTE_GNU_BUILD_ID && is_named(name, "GNU"))
            take_id(id, ELF_ID_GNU, content);
        else if (type == NOTE_GO_BUILD_ID && is_named(name, "Go"))
            take_id(id, ELF_ID_GO, content);
    }
}

static void hash_text(const struct elf_section *text, struct elf_id *id)
{
    XXH64_hash_t hash = XXH64(text->stored.data, text->stored.size, 0);
    XXH64_canonical_t bytes;
    XXH64_canonicalFromHash(&bytes, hash);
    take_id(id, ELF_ID_TEXT, span_of(bytes.digest, sizeof(bytes.digest)));
}

void elf_id_read(const struct elf_input *elf, const struct elf_section *text, struct elf_id *ret_id)
{
    *ret_id = (struct elf_id){.kind = ELF_ID_NONE};
    for (uint32_t i = 0; i < elf->section_count; i++) {
        if (elf->sections[i].type == SHT_NOTE)
            read_notes(elf->sections[i].stored, ret_id);
    }
    for (uint32_t i = 0; !elf->section_count && i < elf->program_header_count; i++) {
        const struct elf_program_header *segment = &elf->program_headers[i];
        if (segment->type == PT_NOTE && segment->file_offset <= elf->file.size &&
            segment->file_bytes <= elf->file.size - segment->file_offset)
            read_notes(span_of(elf->file.data + segment->file_offset, segment->file_bytes), ret_id);
    }
    if (ret_id->kind == ELF_ID_NONE && text && elf->type != ET_REL)
        hash_text(text, ret_id);
}
