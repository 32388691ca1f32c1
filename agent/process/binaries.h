/*
 * binaries: the table of mapped files. Each file is in it once, however many processes map it.
 *
 * A file is identified by its build id, else by device, inode and status change time (ctime). It is
 * read once, when its first mapping is seen: through the root folder of the mapping process, which
 * finds files of containers, or through the mapping itself (/proc/PID/map_files) if the path leads
 * to a file with another build id, or another inode where no build id is known. Only regular files
 * are opened.
 *
 * An unmapped binary is kept for a while, because most programs are started again. Its number is
 * reused after that.
 *
 * A file that cannot be read (its process has ended, or it is deleted) still has its path and build
 * id. Its addresses are then file offsets, from which the server can find names.
 * Threads: one.
 */
#ifndef AGENT_PROCESS_BINARIES_H
#define AGENT_PROCESS_BINARIES_H

#include "agent/process/elf_file.h"
#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct binaries;

#define BINARY_NONE UINT32_MAX

/* A mapping, from a process event or from /proc/PID/maps. */
struct binary_source {
    uint32_t process_id;
    uint64_t owner; /* process_file_owner() of the process if binaries_are_counted(); else 0 */
    uint64_t start; /* first address of the mapping */
    uint64_t limit; /* first address after it */
    struct span path;
    bool is_deleted;      /* path no longer leads to the mapped file */
    struct span build_id; /* from the kernel; may be empty */
    uint64_t inode;       /* 0: there is a build id, or it is not known */
    int64_t modified_ns;  /* 0: there is a build id, or it is not known */
    uint32_t device_major;
    uint32_t device_minor;
};

struct binary {
    uint64_t serial;  /* from 1; never reused, unlike the number */
    const char *path; /* as the process sees it */
    char build_id[2 * ELF_FILE_BUILD_ID_MAX_BYTES + 1]; /* hexadecimal; "": it has none */
    struct elf_file file;                               /* no segments: it could not be read */
    uint64_t inode;      /* 0: there is a build id, or it is not known */
    int64_t modified_ns; /* modification time (mtime) of the file when it was read; 0: it has a
                            build id, or was not read */
};

struct binaries *binaries_create(void);
void binaries_destroy(struct binaries *binaries); /* NULL is a no-op */

/* Adds a reference to the binary of a mapping and returns its number; binaries_release drops the
 * reference. BINARY_NONE: the table is full, or the owner holds its quota (fair_quota.h). */
uint32_t binaries_take(struct binaries *binaries, const struct binary_source *source);
/* Whether the table is so full that binary_source.owner is needed. */
bool binaries_are_counted(const struct binaries *binaries);
/* Whether the source can be opened and is an ELF file. */
bool binaries_can_read(const struct binary_source *source);
void binaries_ref(struct binaries *binaries, uint32_t number);
void binaries_release(struct binaries *binaries, uint32_t number);

/* Since when no process maps the binary (it may be freed already); 0: it is mapped. */
int64_t binaries_unused_ns(const struct binaries *binaries, uint32_t number);

/* Borrowed until the binary is released or binaries_take is called, which may move the table; path
 * stays valid until the release. */
const struct binary *binaries_get(const struct binaries *binaries, uint32_t number);
/* Opens the file again, as seen by a process that maps it at start. -1: it is gone, or it is
 * another file by build id, else by inode and modification time (mtime). The caller closes it. */
int binaries_open(const struct binaries *binaries, uint32_t number, uint32_t process_id,
                  uint64_t start, uint64_t limit);
/* The ELF address of the bytes at file_offset; file_offset itself if the file was not read. */
uint64_t binary_address(const struct binary *binary, uint64_t file_offset);

/* The number of binaries, and of those whose file could not be read. */
void binaries_count(const struct binaries *binaries, uint32_t *ret_count, uint32_t *ret_unread);

#endif
