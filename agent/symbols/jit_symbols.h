/*
 * jit_symbols: names of JIT code, from a process's perf map (/tmp/perf-PID.map) and jitdump, which
 * its compiler writes while it runs or when it ends.
 *
 * The files are read when an address is not known, at most once a second, and once more when a
 * window is taken, because a compiler may write a name after the code has run. jit_file_trust.h
 * decides which files are read.
 *
 * Limits: the memory of all processes together is bounded and, except when a window is taken, so is
 * the time for reading. One process may use half of the memory that all other processes leave; the
 * processes of one owner (process_owner) together may use three quarters of what the other owners
 * leave, and half of the time.
 *
 * Reference-counted, because the names of a process are needed for a moment after it has ended.
 * Threads: one.
 */
#ifndef AGENT_SYMBOLS_JIT_SYMBOLS_H
#define AGENT_SYMBOLS_JIT_SYMBOLS_H

#include "agent/symbols/jitdump.h"

struct jit_symbols;
struct jit_owner;

/* Shared by all processes; all zeros except max_bytes at the start. */
struct jit_budget {
    uint64_t max_bytes;
    uint64_t used_bytes;
    uint64_t refused;         /* number of processes whose names do not all fit */
    struct jit_owner *owners; /* list of all owners */
    int64_t next_ns;          /* earliest next read, which limits the time for reading */
    bool is_closed;           /* no new names are read */
};

/* Where the files of the process are. */
struct jit_source {
    uint32_t shown_id;   /* thread whose folder in /proc shows the process */
    struct span jitdump; /* path of the mapped jitdump; empty: none */
};

struct jit_symbols *jit_symbols_create(struct jit_budget *budget, uint32_t process_id,
                                       uint64_t owner);
struct jit_symbols *jit_symbols_keep(struct jit_symbols *names); /* adds a reference */
void jit_symbols_release(struct jit_symbols *names);             /* NULL is a no-op */

/* Finds the function at an address among the names read so far. *ret_location is borrowed until the
 * next read. False: the address has no name yet. */
bool jit_symbols_look_up(const struct jit_symbols *names, uint64_t address,
                         struct jitdump_location *ret_location);
/* Whether names were left out for lack of space. */
bool jit_symbols_are_cut(const struct jit_symbols *names);
/* Whether the files may be read again for code that was seen at now_ns (monotonic): the last read
 * of this process was at least a second before, and the limits of time allow it. */
bool jit_symbols_is_due(const struct jit_symbols *names, int64_t now_ns);
/* Reads the perf map and the jitdump, as far as the limits allow. source is needed only during the
 * call; the path of the first jitdump is remembered. */
void jit_symbols_read(struct jit_symbols *names, const struct jit_source *source);
/* Reads once more unless the last read was after since_ns; continues until until_ns if one read
 * does not suffice. */
void jit_symbols_read_late(struct jit_symbols *names, int64_t since_ns, int64_t until_ns);
/* Order in which to read, <0: a first, >0: b first: the least recently read owner first, then the
 * least recently read process. */
int jit_symbols_compare_read_order(const struct jit_symbols *a, const struct jit_symbols *b);
uint64_t jit_symbols_owner(const struct jit_symbols *names);

#endif
