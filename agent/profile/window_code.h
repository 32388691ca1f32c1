/*
 * window_code: locations of JIT code in a window.
 *
 * A compiler may write the name of a function after the function has run, some only when the
 * program ends. An address without a name therefore gets a location of its own, at most 65,536 in a
 * window, and window_code_name_late() looks these up once more when the window is taken. Addresses
 * beyond that limit or the owner's quota share one location without a name. Threads: one.
 */
#ifndef AGENT_PROFILE_WINDOW_CODE_H
#define AGENT_PROFILE_WINDOW_CODE_H

#include <stdbool.h>
#include <stdint.h>

struct binaries;
struct jit_budget;
struct process;
struct window_builder;
struct window_code;

/* All arguments are borrowed and outlive the object. */
struct window_code *window_code_create(struct window_builder *builder,
                                       const struct binaries *binaries, struct jit_budget *budget);
void window_code_destroy(struct window_code *code); /* NULL is a no-op */
/* The next window begins: forgets the addresses without a name. */
void window_code_clear(struct window_code *code);

/* The location of an address that is in no file. is_mapped false: it is in no mapping either. May
 * read the process's perf map and jitdump. The builder's owner is the process's. */
uint32_t window_code_location(struct window_code *code, struct process *process, uint64_t address,
                              bool is_mapped, int64_t now_ns);

/* Reads new names and assigns them to the addresses without a name. is_short: for at most 0.2 s,
 * because the next window waits; otherwise each process is read once, and reading a process with
 * more names continues until 5 s have passed. Changes the builder's owner. */
void window_code_name_late(struct window_code *code, bool is_short);

#endif
