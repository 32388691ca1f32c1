/*
 * kernel_symbols: names of the kernel's functions, its modules' too, from /proc/kallsyms.
 *
 * Read when the first address is asked for, and again, at most every ten seconds, for an address
 * behind all that is known (a module was loaded). Only functions are kept, each by one name and
 * with its padding (__pfx_…), packed: 1.6 MB of 64,000. Threads: one.
 */
#ifndef AGENT_SYMBOLS_KERNEL_SYMBOLS_H
#define AGENT_SYMBOLS_KERNEL_SYMBOLS_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct kernel_symbols;

struct kernel_symbol {
    struct span name;
    struct span module; /* empty: of the kernel itself */
    uint64_t start;
};

struct kernel_symbols *kernel_symbols_create(void);
void kernel_symbols_destroy(struct kernel_symbols *symbols); /* NULL is a no-op */

/* False when nobody knows: without CAP_SYSLOG the kernel hides its addresses. Spans live as long as
 * symbols, until the next call. */
bool kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address, int64_t now_ns,
                         struct kernel_symbol *ret_symbol);

/* How many are known now. */
uint32_t kernel_symbols_count(const struct kernel_symbols *symbols);

/* Takes text for the file's content: for tests and fuzzers, too. */
void kernel_symbols_read(struct kernel_symbols *symbols, struct span text);

#endif
