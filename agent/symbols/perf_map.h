/*
 * perf_map: names of code that a process made at run time, as many JIT compilers write them to
 * /tmp/perf-PID.map: "START SIZE name" a line, hexadecimal
 * (tools/perf/Documentation/jit-interface.txt of Linux). Node does with --perf-basic-prof, Java
 * with a libperf-jitted agent, .NET with DOTNET_PerfMapEnabled.
 *
 * The file grows while the process runs and is read as a whole each time. If two entries cover an
 * address, the one that was written last is found. Size, count and names are bounded: the start of
 * a larger file is used. Threads: one.
 */
#ifndef AGENT_SYMBOLS_PERF_MAP_H
#define AGENT_SYMBOLS_PERF_MAP_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { PERF_MAP_NAME_MAX_BYTES = 4096 }; /* longer names are cut */

struct perf_map;

struct perf_map *perf_map_create(void);
void perf_map_destroy(struct perf_map *map); /* NULL is a no-op */

/* Replaces the content by that of the file; does nothing and returns true if file_bytes is the same
 * as in the last call. max_bytes: the memory limit. False: not everything fits, or a read failed.
 */
bool perf_map_read(struct perf_map *map, int fd, uint64_t file_bytes, uint64_t max_bytes);
/* Replaces the content by text. */
void perf_map_take(struct perf_map *map, struct span text);

/* The name of the function at address; borrowed until the next read. Empty: none. */
struct span perf_map_find(const struct perf_map *map, uint64_t address);
uint64_t perf_map_bytes(const struct perf_map *map); /* memory in use */

#endif
