/*
 * jitdump: names and lines of code that a process made at run time, as JIT compilers write them to
 * a file "jit-PID.dump" (tools/perf/Documentation/jitdump-specification.txt of Linux): Node with
 * --perf-prof, Java with perf's agent, .NET, Julia, wasmtime, PHP. The file is found as perf finds
 * it: the process maps its first page executable.
 *
 * The file grows while the process runs; each read continues where the last one ended. The file is
 * untrusted: after a malformed record or at the memory limit nothing is read any more, and names
 * that are not text are ignored. A read ends after 64 MiB or 100 ms, at the end of a record; the
 * next read continues there. If two functions had the same address at different times, the later
 * one is found. Threads: one.
 */
#ifndef AGENT_SYMBOLS_JITDUMP_H
#define AGENT_SYMBOLS_JITDUMP_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct jitdump;

struct jitdump_location {
    struct span function;
    struct span file; /* empty: not known */
    uint32_t line;    /* 0: not known */
};

struct jitdump *jitdump_create(void);
void jitdump_destroy(struct jitdump *dump); /* NULL is a no-op */

/* Whether path has the form "…/jit-NUMBER.dump". */
bool jitdump_is_path(struct span path);

/* Reads what has been appended to the file, which has file_bytes now; max_bytes: the memory limit.
 * False: the limit was reached. */
bool jitdump_read(struct jitdump *dump, int fd, uint64_t file_bytes, uint64_t max_bytes);
/* Whether the last read ended at its limit of bytes or time, so that another one is needed. */
bool jitdump_has_more(const struct jitdump *dump);
/* Borrowed until the next call of jitdump_read; false: no function has the address. */
bool jitdump_find(const struct jitdump *dump, uint64_t address,
                  struct jitdump_location *ret_location);
uint64_t jitdump_bytes(const struct jitdump *dump); /* memory in use */

#endif
