/*
 * symbol_address: converts an address of a process to an address in the binary, for a symbol table.
 *
 * A profile contains the mapping of a part of a file into the process. The program headers of the
 * binary, which the table contains, give the address of that part in the file. In a separate debug
 * file the offsets of the program headers are meaningless; then the mapping is matched by its
 * length and layout, and the result is marked as guessed. Pages are assumed to be 4 KiB. Threads:
 * any.
 */
#ifndef LIB_SYMBOLS_SYMBOL_ADDRESS_H
#define LIB_SYMBOLS_SYMBOL_ADDRESS_H

#include <stdint.h>

struct symbol_table;

/* A mapping as in pprof and /proc/PID/maps: the process maps [start, limit) to the file, from
 * offset on. */
struct symbol_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
};

enum symbol_address_result {
    SYMBOL_ADDRESS_NONE,  /* not in the code of this binary, or it cannot be determined */
    SYMBOL_ADDRESS_EXACT, /* computed from the program headers */
    /* the headers have no offsets: matched by length and layout of the mapping */
    SYMBOL_ADDRESS_GUESSED
};

/* Converts an address of the process. *ret_address is set unless the result is NONE. */
enum symbol_address_result symbol_address_find(const struct symbol_table *table,
                                               const struct symbol_mapping *mapping,
                                               uint64_t address, uint64_t *ret_address);

#endif
