/*
 * jit_names: names of code that a process made at run time, from its perf map (/tmp/perf-PID.map)
 * and its jitdump: files that its compiler writes while it runs, or when it ends.
 *
 * They are read when an address is not in them, at most once a second, and once more at the end of
 * what is gathered: a compiler may write a name after the code has run. Whose they are is no
 * doubt: they belong to the process's user, are no links and were written to after its start, as
 * the wall clock has it, else they are those of an earlier process of its number; those of a later
 * one are not read either. All processes together have a bounded share of memory and, but for the
 * end of what is gathered, of time: one of them has at most half of the memory that is left, those
 * of one owner (process_owner) three quarters of what the others leave and half of the time, so
 * that nobody takes it from all.
 *
 * References are counted: a process's names are needed for a moment after it has ended.
 * Threads: one.
 */
#ifndef AGENT_SYMBOLS_JIT_SYMBOLS_H
#define AGENT_SYMBOLS_JIT_SYMBOLS_H

#include "agent/symbols/jitdump.h"

struct jit_symbols;
struct jit_owner;

/* What all have together; zeros but max_bytes at the start. */
struct jit_budget {
    uint64_t max_bytes;
    uint64_t used_bytes;
    uint64_t refused;         /* processes of which not all names fit */
    struct jit_owner *owners; /* of all that there are */
    int64_t next_ns; /* when files may be read again, so that reading takes a part of the time */
    bool is_closed;  /* nothing new is taken on */
};

/* Where the process's files are to be found now. */
struct jit_source {
    uint32_t shown_id;   /* of the thread by which /proc shows it */
    struct span jitdump; /* the path of what it mapped as one; empty: nothing */
};

struct jit_symbols *jit_symbols_create(struct jit_budget *budget, uint32_t process_id,
                                       uint64_t owner);
struct jit_symbols *jit_symbols_keep(struct jit_symbols *names); /* one reference more */
void jit_symbols_release(struct jit_symbols *names);             /* NULL is a no-op */

/* In what was read. Borrowed until the next reading; false: nobody knows, as yet. */
bool jit_symbols_look_up(const struct jit_symbols *names, uint64_t address,
                         struct jitdump_place *ret_place);
/* Is there more of them than was read? */
bool jit_symbols_are_cut(const struct jit_symbols *names);
/* Is it time to read again for code that was seen at now_ns, which is monotonic? */
bool jit_symbols_is_due(const struct jit_symbols *names, int64_t now_ns);
void jit_symbols_read(struct jit_symbols *names, const struct jit_source *source);
/* Once more, from where it was read last, unless that was after since_ns; and where that is too
 * much for one reading goes on until until_ns. */
void jit_symbols_read_late(struct jit_symbols *names, int64_t since_ns, int64_t until_ns);
/* Whose turn is it first, <0: a's, >0: b's? Those are first of whose owner, then of which itself,
 * nothing was read for longest. */
int jit_symbols_compare_turns(const struct jit_symbols *a, const struct jit_symbols *b);
uint64_t jit_symbols_owner(const struct jit_symbols *names);

#endif
