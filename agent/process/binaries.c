#include "agent/process/binaries.h"

#include "agent/process/fair_quota.h"
#include "agent/process/process_file.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/vec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    BINARIES_MAX = 8192,
    FIRST_ENTRIES = 64,    /* doubles to BINARIES_MAX exactly */
    KEPT_UNUSED_MAX = 512, /* unused ones that are kept; further ones replace the oldest */
    KEY_BYTES = 2 * ELF_FILE_BUILD_ID_MAX_BYTES + 16,
};

struct entry {
    struct binary binary;
    char key[KEY_BYTES]; /* "": the entry is free */
    uint64_t key_hash;
    uint32_t ref_count;
    uint64_t owner; /* the owner whose quota it counts against; 0: none */
    int64_t unused_ns;
};

struct binaries {
    struct entry *entries;
    uint32_t count; /* number of entries, free ones included */
    uint32_t used;
    uint32_t unused_kept;
    uint64_t last_serial;
};

struct binaries *binaries_create(void)
{
    struct binaries *binaries = mem_new(struct binaries, 1);
    binaries->entries = NULL;
    return binaries;
}

static void clear_entry(struct entry *entry)
{
    mem_free((char *)(uintptr_t)entry->binary.path);
    *entry = (struct entry){0};
}

void binaries_destroy(struct binaries *binaries)
{
    if (!binaries)
        return;
    for (uint32_t i = 0; i < binaries->count; i++)
        clear_entry(&binaries->entries[i]);
    mem_free(binaries->entries);
    mem_free(binaries);
}

/* ---- finding ---- */

/* FNV-1a. Collisions do no harm, because keys are compared afterwards. */
static uint64_t hash_of(const char *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *key; key++)
        hash = (hash ^ (uint8_t)*key) * UINT64_C(0x100000001b3);
    return hash;
}

static uint32_t find_key(const struct binaries *binaries, const char *key)
{
    const uint64_t hash = hash_of(key);
    for (uint32_t i = 0; i < binaries->count; i++) {
        const struct entry *entry = &binaries->entries[i];
        if (entry->key_hash == hash && strcmp(entry->key, key) == 0)
            return i;
    }
    return BINARY_NONE;
}

/* Drops the unused binary of the owner (0: of all owners) that has been unused for longest; false:
 * there is none. */
static bool forget_oldest_unused(struct binaries *binaries, uint64_t owner)
{
    struct entry *oldest = NULL;
    for (uint32_t i = 0; binaries->unused_kept && i < binaries->count; i++) {
        struct entry *entry = &binaries->entries[i];
        if (entry->key[0] && entry->ref_count == 0 && (!owner || entry->owner == owner) &&
            (!oldest || entry->unused_ns < oldest->unused_ns))
            oldest = entry;
    }
    if (!oldest)
        return false;
    clear_entry(oldest);
    binaries->used--;
    binaries->unused_kept--;
    return true;
}

/* The number of binaries that count against the owner; is_mapped: only those that are in use. */
static uint32_t count_held(const struct binaries *binaries, uint64_t owner, bool is_mapped)
{
    uint32_t held = 0;
    for (uint32_t i = 0; owner && i < binaries->count; i++)
        held += binaries->entries[i].owner == owner &&
                (!is_mapped || binaries->entries[i].ref_count > 0);
    return held;
}

bool binaries_are_counted(const struct binaries *binaries)
{
    return fair_quota_is_counted(binaries->used, BINARIES_MAX);
}

static bool may_add(const struct binaries *binaries, uint64_t owner)
{
    return fair_quota_allows(binaries->used, BINARIES_MAX, count_held(binaries, owner, false), 1);
}

/* Whether a binary could be added after dropping all unused ones. */
static bool may_add_after_dropping(const struct binaries *binaries, uint64_t owner)
{
    return fair_quota_allows(binaries->used - binaries->unused_kept, BINARIES_MAX,
                             count_held(binaries, owner, true), 1);
}

/* Drops unused binaries to make space for a mapped one, the owner's own first. Drops none if that
 * would not make space: an owner at its quota must not cause files of others to be read again. */
static bool make_space(struct binaries *binaries, uint64_t owner)
{
    if (!may_add_after_dropping(binaries, owner))
        return false;
    while (!may_add(binaries, owner) &&
           (forget_oldest_unused(binaries, owner) || forget_oldest_unused(binaries, 0)))
        ;
    return may_add(binaries, owner);
}

/* The number of a free entry, for which the table grows if necessary; BINARY_NONE: it is full. */
static uint32_t find_free_entry(struct binaries *binaries)
{
    for (uint32_t i = 0; binaries->used < binaries->count && i < binaries->count; i++) {
        if (binaries->entries[i].key[0] == 0)
            return i;
    }
    if (binaries->count == BINARIES_MAX)
        return BINARY_NONE;
    const uint32_t number = binaries->count;
    vec_reserve_zeroed(binaries->entries, binaries->count, number ? number + 1 : FIRST_ENTRIES);
    return number;
}

/* ---- reading ---- */

static int64_t modified_ns(const struct stat *status)
{
    return (int64_t)status->st_mtim.tv_sec * CLOCK_NS_PER_S + status->st_mtim.tv_nsec;
}

/* Whether the opened file is the mapped one: the path may lead to another file by now. */
static bool is_same(const struct elf_file *file, const struct binary_source *source,
                    const struct stat *status)
{
    if (source->build_id.size)
        return span_equal(source->build_id, span_of(file->build_id, file->build_id_bytes));
    return source->modified_ns == 0 || source->modified_ns == modified_ns(status);
}

static bool read_file(int fd, const struct binary_source *source, struct elf_file *ret_file,
                      struct stat *ret_status)
{
    struct err ignored;
    return fd >= 0 && !elf_file_read(fd, "a mapped file", ret_file, &ignored) &&
           fstat(fd, ret_status) == 0 && is_same(ret_file, source, ret_status);
}

/* Opens the mapped file by its path, else by the mapping, else (if the process has ended) by its
 * path as process 1 sees it; -1: none of them is that file. */
static int open_source(const struct binary_source *source, struct elf_file *ret_file,
                       struct stat *ret_status)
{
    const uint64_t inode = source->build_id.size ? 0 : source->inode;
    int fd = source->is_deleted ? -1 : process_file_open(source->process_id, source->path, inode);
    if (read_file(fd, source, ret_file, ret_status))
        return fd;
    os_close(fd);
    fd = process_file_open_mapping(source->process_id, source->start, source->limit);
    if (read_file(fd, source, ret_file, ret_status))
        return fd;
    os_close(fd);
    fd = source->build_id.size ? process_file_open(1, source->path, 0) : -1;
    if (read_file(fd, source, ret_file, ret_status))
        return fd;
    os_close(fd);
    return -1;
}

static bool read_source(const struct binary_source *source, struct elf_file *ret_file,
                        struct stat *ret_status)
{
    fd_auto fd = open_source(source, ret_file, ret_status);
    return fd >= 0;
}

bool binaries_can_read(const struct binary_source *source)
{
    struct elf_file file;
    struct stat status;
    return read_source(source, &file, &status);
}

int binaries_open(const struct binaries *binaries, uint32_t number, uint32_t process_id,
                  uint64_t start, uint64_t limit)
{
    const struct binary *binary = &binaries->entries[number].binary;
    const struct binary_source source = {
        .process_id = process_id,
        .start = start,
        .limit = limit,
        .path = span_text(binary->path),
        .build_id = span_of(binary->file.build_id, binary->file.build_id_bytes),
        .inode = binary->inode,
        .modified_ns = binary->modified_ns};
    struct elf_file file;
    struct stat status;
    return open_source(&source, &file, &status);
}

static void make_key(const struct binary_source *source, const struct elf_file *file,
                     const struct stat *status, char key[KEY_BYTES])
{
    struct span id = source->build_id;
    if (id.size == 0)
        id = span_of(file->build_id, file->build_id_bytes);
    if (id.size)
        digest_hex(id, key);
    else
        snprintf(key, KEY_BYTES, "%x:%x:%" PRIx64 ":%" PRIx64 ".%lx", source->device_major,
                 source->device_minor, source->inode, (uint64_t)status->st_ctim.tv_sec,
                 (unsigned long)status->st_ctim.tv_nsec);
}

static void fill_entry(struct entry *entry, const char *key, const struct binary_source *source,
                       const struct elf_file *file, const struct stat *status)
{
    char *path = mem_new(char, source->path.size + 1);
    memcpy(path, source->path.data, source->path.size);
    *entry = (struct entry){.binary = {.path = path, .file = *file}, .ref_count = 0};
    snprintf(entry->key, sizeof(entry->key), "%s", key);
    entry->key_hash = hash_of(key);
    if (!strchr(key, ':')) {
        snprintf(entry->binary.build_id, sizeof(entry->binary.build_id), "%s", key);
        return;
    }
    entry->binary.inode = source->inode;
    entry->binary.modified_ns = modified_ns(status);
}

static uint32_t add_entry(struct binaries *binaries, const char *key,
                          const struct binary_source *source, const struct elf_file *file,
                          const struct stat *status)
{
    const uint32_t number =
        make_space(binaries, source->owner) ? find_free_entry(binaries) : BINARY_NONE;
    if (number == BINARY_NONE)
        return BINARY_NONE;
    fill_entry(&binaries->entries[number], key, source, file, status);
    binaries->entries[number].owner = source->owner;
    binaries->entries[number].binary.serial = ++binaries->last_serial;
    binaries->used++;
    binaries->unused_kept++;
    return number;
}

uint32_t binaries_take(struct binaries *binaries, const struct binary_source *source)
{
    char key[KEY_BYTES] = "";
    struct elf_file file = {0};
    struct stat status = {0};
    uint32_t number = BINARY_NONE;
    if (source->build_id.size > ELF_FILE_BUILD_ID_MAX_BYTES)
        return BINARY_NONE;
    if (source->build_id.size) {
        digest_hex(source->build_id, key);
        number = find_key(binaries, key);
    }
    if (number != BINARY_NONE && binaries->entries[number].binary.file.segment_count == 0 &&
        read_source(source, &file, &status))
        binaries->entries[number].binary.file = file;
    if (number == BINARY_NONE) {
        if (!read_source(source, &file, &status))
            file = (struct elf_file){0};
        make_key(source, &file, &status, key);
        number = find_key(binaries, key);
    }
    if (number == BINARY_NONE)
        number = add_entry(binaries, key, source, &file, &status);
    if (number != BINARY_NONE)
        binaries_ref(binaries, number);
    return number;
}

void binaries_ref(struct binaries *binaries, uint32_t number)
{
    if (binaries->entries[number].ref_count++ == 0)
        binaries->unused_kept--;
}

void binaries_release(struct binaries *binaries, uint32_t number)
{
    struct entry *entry = &binaries->entries[number];
    if (--entry->ref_count > 0)
        return;
    entry->unused_ns = clock_monotonic_ns();
    if (++binaries->unused_kept > KEPT_UNUSED_MAX)
        (void)forget_oldest_unused(binaries, 0);
}

int64_t binaries_unused_ns(const struct binaries *binaries, uint32_t number)
{
    const struct entry *entry = &binaries->entries[number];
    return entry->ref_count ? 0 : entry->key[0] ? entry->unused_ns : 1;
}

const struct binary *binaries_get(const struct binaries *binaries, uint32_t number)
{
    return &binaries->entries[number].binary;
}

uint64_t binary_address(const struct binary *binary, uint64_t file_offset)
{
    uint64_t address;
    return elf_file_address(&binary->file, file_offset, &address) ? address : file_offset;
}

void binaries_count(const struct binaries *binaries, uint32_t *ret_count, uint32_t *ret_unread)
{
    *ret_count = binaries->used;
    *ret_unread = 0;
    for (uint32_t i = 0; i < binaries->count; i++)
        *ret_unread +=
            binaries->entries[i].key[0] && !binaries->entries[i].binary.file.segment_count;
}
