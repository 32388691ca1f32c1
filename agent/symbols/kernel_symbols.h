/*
 * kernel_symbols: names of the kernel's functions, its modules' too, from /proc/kallsyms.
 *
 * The file is read when the first address is looked up, and again, at most every ten seconds, for
 * an address that is in no known function or in the last one (a module may have been loaded above
 * it). Only functions are kept, each with one name and its padding (__pfx_…), packed: 64,000 take
 * 1.6 MB. Threads: one.
 */
#ifndef AGENT_SYMBOLS_KERNEL_SYMBOLS_H
#define AGENT_SYMBOLS_KERNEL_SYMBOLS_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct kernel_symbols;

struct kernel_symbol {
    struct span name;
    struct span module; /* empty: the kernel itself */
    uint64_t start;
};

struct kernel_symbols *kernel_symbols_create(void);
void kernel_symbols_destroy(struct kernel_symbols *symbols); /* NULL is a no-op */

/* False: the function is not known; without CAP_SYSLOG the kernel hides all addresses. Spans are
 * valid until the next call. */
bool kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address, int64_t now_ns,
                         struct kernel_symbol *ret_symbol);

/* The number of known functions. */
uint32_t kernel_symbols_count(const struct kernel_symbols *symbols);

/* Reads text in place of the file; public for tests and fuzzers. */
void kernel_symbols_read(struct kernel_symbols *symbols, struct span text);

#endif
