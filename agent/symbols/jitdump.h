/*
 * jitdump: names and lines of code that a process made at run time, as JIT compilers write them to
 * a file "jit-PID.dump" (tools/perf/Documentation/jitdump-specification.txt of Linux): Node with
 * --perf-prof, Java with perf's agent, .NET, Julia, wasmtime, PHP. The file is found as perf finds
 * it: the process maps its first page executable.
 *
 * The file grows while the process runs, and what is new is read. Its bytes are a stranger's: what
 * is broken ends the reading for good, and so does what there is no room for; names that are no
 * text are none. A reading ends after 64 MiB or 100 ms (and the record that it is in, of which a
 * mebibyte is looked at), and what is left is for the next. Of two functions that had the same
 * address at different times the later is true. Threads: one.
 */
#ifndef AGENT_SYMBOLS_JITDUMP_H
#define AGENT_SYMBOLS_JITDUMP_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct jitdump;

struct jitdump_place {
    struct span function;
    struct span file; /* empty: not known */
    uint32_t line;    /* 0: not known */
};

struct jitdump *jitdump_create(void);
void jitdump_destroy(struct jitdump *dump); /* NULL is a no-op */

/* Is that the name of such a file? */
bool jitdump_is_path(struct span path);

/* Reads what is new in fd, of the file's present size, with at most max_bytes of memory. False:
 * there is no room for more of it. */
bool jitdump_read(struct jitdump *dump, int fd, uint64_t file_bytes, uint64_t max_bytes);
/* Did the last reading leave a part, as it was too much at a time? */
bool jitdump_has_more(const struct jitdump *dump);
/* Borrowed until the next call of jitdump_read; false: nobody knows. */
bool jitdump_find(const struct jitdump *dump, uint64_t address, struct jitdump_place *ret_place);
uint64_t jitdump_bytes(const struct jitdump *dump); /* of memory */

#endif
