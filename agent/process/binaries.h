/*
 * binaries: the files that are mapped somewhere, each once however many processes have it.
 *
 * A file is known by its build id, else by device, inode and time of change. It is read once, when
 * the first mapping of it is seen, through the root folder of the process that has it, so that
 * files of containers are found, or through the mapping itself where the path leads elsewhere (to
 * another build id, or inode where none is known); only regular files are opened. What nobody maps
 * any more is kept for a while, since most programs start again. Numbers of binaries are given
 * again after that.
 *
 * A file that cannot be read (its process has ended, it is deleted) still has its path and build
 * id; its addresses are then those of its bytes, which is what the server needs to find names.
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

/* A mapping as the side band or /proc/PID/maps tells it. */
struct binary_source {
    uint32_t process_id;
    uint64_t owner; /* the process's (process_file_owner), where binaries_are_counted; else 0 */
    uint64_t start; /* of the mapping */
    uint64_t limit;
    struct span path;
    bool is_deleted;      /* what is at path by now is not it */
    struct span build_id; /* from the kernel; may be empty */
    uint64_t inode;       /* 0 where there is a build id, or it is not known */
    int64_t modified_ns;  /* where that is known, and there is no build id; 0: any */
    uint32_t device_major;
    uint32_t device_minor;
};

struct binary {
    uint64_t serial;                                    /* from 1, never given again */
    const char *path;                                   /* as the process has it */
    char build_id[2 * ELF_FILE_BUILD_ID_MAX_BYTES + 1]; /* hexadecimal; "": it has none */
    struct elf_file file;                               /* no segments: it could not be read */
    uint64_t inode;      /* where there is no build id; 0: not known */
    int64_t modified_ns; /* of the file as it was read; 0: it was not */
};

struct binaries *binaries_create(void);
void binaries_destroy(struct binaries *binaries); /* NULL is a no-op */

/* The number of the binary, which is taken once for each mapping and given back with
 * binaries_release; BINARY_NONE when there are too many, or too many of the process's owner
 * (fair_share.h). */
uint32_t binaries_take(struct binaries *binaries, const struct binary_source *source);
/* Are there so many that it is asked whose a new one is? */
bool binaries_are_counted(const struct binaries *binaries);
/* It is an ELF file, and is there. */
bool binaries_can_read(const struct binary_source *source);
void binaries_ref(struct binaries *binaries, uint32_t number);
void binaries_release(struct binaries *binaries, uint32_t number);

/* Since when nobody has it mapped, perhaps it is forgotten; 0: somebody has. */
int64_t binaries_unused_ns(const struct binaries *binaries, uint32_t number);

const struct binary *binaries_get(const struct binaries *binaries, uint32_t number);
/* The file itself, once more, as a process that has it mapped at start sees it; -1 when it is gone
 * or another, which without a build id its inode and time of change tell. */
int binaries_open(const struct binaries *binaries, uint32_t number, uint32_t process_id,
                  uint64_t start, uint64_t limit);
/* Of the bytes at a file's offset: an ELF address, or the offset where the file is not known. */
uint64_t binary_address(const struct binary *binary, uint64_t file_offset);

/* How many there are, and how many could not be read. */
void binaries_count(const struct binaries *binaries, uint32_t *ret_count, uint32_t *ret_unread);

#endif
