#include "agent/process/elf_exports.h"

#include "agent/process/elf_file.h"
#include "lib/base/os.h"

#include <elf.h>
#include <string.h>

enum { PROGRAM_HEADERS_MAX = 128, DYNAMIC_MAX = 1024, CHAIN_MAX = 4096, NAME_MAX_BYTES = 64 };

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
    return offset <= INT64_MAX - size && os_pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

/* The offset in the file of the byte at an ELF address. */
static bool find_offset(const struct elf_file *file, uint64_t address, uint64_t *ret_offset)
{
    for (uint32_t i = 0; i < file->segment_count; i++) {
        const struct elf_file_segment *segment = &file->segments[i];
        if (address >= segment->address && address - segment->address < segment->bytes) {
            *ret_offset = segment->offset + (address - segment->address);
            return true;
        }
    }
    return false;
}

static bool find_dynamic(int fd, uint64_t *ret_offset, uint32_t *ret_count)
{
    Elf64_Ehdr header;
    Elf64_Phdr program;
    if (!read_at(fd, &header, sizeof(header), 0) || header.e_phentsize != sizeof(program) ||
        header.e_phnum > PROGRAM_HEADERS_MAX)
        return false;
    for (uint32_t i = 0; i < header.e_phnum; i++) {
        if (!read_at(fd, &program, sizeof(program), header.e_phoff + i * sizeof(program)))
            return false;
        if (program.p_type != PT_DYNAMIC)
            continue;
        const uint64_t count = program.p_filesz / sizeof(Elf64_Dyn);
        *ret_offset = program.p_offset;
        *ret_count = count < DYNAMIC_MAX ? (uint32_t)count : DYNAMIC_MAX;
        return true;
    }
    return false;
}

static void take_entry(struct elf_exports *symbols, const Elf64_Dyn *entry)
{
    uint64_t *offset = entry->d_tag == DT_SYMTAB     ? &symbols->symbols
                       : entry->d_tag == DT_STRTAB   ? &symbols->strings
                       : entry->d_tag == DT_GNU_HASH ? &symbols->hash
                                                     : NULL;
    if (offset && !find_offset(symbols->file, entry->d_un.d_ptr, offset))
        *offset = 0;
}

bool elf_exports_init(struct elf_exports *symbols, int fd, const struct elf_file *file)
{
    Elf64_Dyn entry;
    uint64_t offset;
    uint32_t count, head[4];
    *symbols = (struct elf_exports){.fd = fd, .file = file};
    if (!find_dynamic(fd, &offset, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!read_at(fd, &entry, sizeof(entry), offset + i * sizeof(entry)) ||
            entry.d_tag == DT_NULL)
            break;
        take_entry(symbols, &entry);
    }
    if (!symbols->symbols || !symbols->strings || !symbols->hash ||
        !read_at(fd, head, sizeof(head), symbols->hash) || !head[0] || !head[2])
        return false;
    symbols->bucket_count = head[0];
    symbols->first_hashed = head[1];
    symbols->bloom_words = head[2];
    symbols->bloom_shift = head[3];
    return true;
}

static uint32_t hash_name(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (uint8_t)*name;
    return hash;
}

/* Checks the Bloom filter; false: the file does not export the name. */
static bool may_be_exported(const struct elf_exports *symbols, uint32_t hash)
{
    uint64_t word;
    const uint64_t at =
        symbols->hash + 16 + (uint64_t)(hash / 64 % symbols->bloom_words) * sizeof(word);
    const uint64_t bits =
        UINT64_C(1) << (hash % 64) | UINT64_C(1) << ((hash >> (symbols->bloom_shift & 31)) % 64);
    return read_at(symbols->fd, &word, sizeof(word), at) && (word & bits) == bits;
}

static bool is_named(const struct elf_exports *symbols, uint32_t index, const char *name,
                     Elf64_Sym *symbol)
{
    char text[NAME_MAX_BYTES];
    const size_t size = strlen(name) + 1;
    return size <= sizeof(text) &&
           read_at(symbols->fd, symbol, sizeof(*symbol),
                   symbols->symbols + index * sizeof(*symbol)) &&
           read_at(symbols->fd, text, size, symbols->strings + symbol->st_name) &&
           memcmp(text, name, size) == 0;
}

bool elf_exports_find(const struct elf_exports *symbols, const char *name,
                      struct elf_symbol *ret_symbol)
{
    const uint32_t hash = hash_name(name);
    const uint64_t buckets = symbols->hash + 16 + (uint64_t)symbols->bloom_words * 8;
    const uint64_t chains = buckets + (uint64_t)symbols->bucket_count * 4;
    uint32_t index, chained;
    Elf64_Sym symbol;
    if (!may_be_exported(symbols, hash) ||
        !read_at(symbols->fd, &index, sizeof(index),
                 buckets + (uint64_t)(hash % symbols->bucket_count) * 4) ||
        index < symbols->first_hashed)
        return false;
    for (uint32_t i = 0; i < CHAIN_MAX; i++, index++) {
        if (!read_at(symbols->fd, &chained, sizeof(chained),
                     chains + (uint64_t)(index - symbols->first_hashed) * 4))
            return false;
        if ((chained | 1) == (hash | 1) && is_named(symbols, index, name, &symbol) &&
            symbol.st_shndx != SHN_UNDEF) {
            *ret_symbol = (struct elf_symbol){.address = symbol.st_value, .bytes = symbol.st_size};
            return true;
        }
        if (chained & 1)
            return false;
    }
    return false;
}

bool elf_exports_read(const struct elf_exports *symbols, uint64_t address, void *to, size_t size)
{
    uint64_t offset;
    return find_offset(symbols->file, address, &offset) && read_at(symbols->fd, to, size, offset);
}
