/*
 * perf_map: names of code that a process made at run time, as many JIT compilers write them to
 * /tmp/perf-PID.map: "START SIZE name" a line, hexadecimal
 * (tools/perf/Documentation/jit-interface.txt of Linux). Node does with --perf-basic-prof, Java
 * with a libperf-jitted agent, .NET with DOTNET_PerfMapEnabled.
 *
 * The file grows while the process runs: it is read again, at most once a second, when an address
 * is not in it. It has to belong to the process's user or to root. Where two entries cover an
 * address the one that was written last is true. Size and count are bounded. Threads: one.
 */
#ifndef AGENT_PERF_MAP_H
#define AGENT_PERF_MAP_H

#include "lib/base/buf.h"

#include <stdint.h>

struct perf_map;

/* Never NULL: the file may come later. */
struct perf_map *perf_map_create(uint32_t process_id);
void perf_map_destroy(struct perf_map *map); /* NULL is a no-op */

/* Borrowed until the next call; empty: nobody knows. now_ns is monotonic. */
struct span perf_map_find(struct perf_map *map, uint64_t address, int64_t now_ns);

/* Takes text for the file's content: for tests and fuzzers, too. */
void perf_map_read(struct perf_map *map, struct span text);

#endif
