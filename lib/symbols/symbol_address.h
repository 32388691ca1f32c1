/*
 * symbol_address: from an address of a process to the address in the binary that a table knows.
 *
 * A profile says where a part of a file was mapped; the binary's program headers, which the table
 * has, say which addresses that part has in the file. A debug file that was split off has headers
 * whose offsets mean nothing any more: then the mapping is recognised by its length and place, and
 * the answer says that it is a guess. Pages are taken to be 4 KiB. Threads: any.
 */
#ifndef LIB_SYMBOLS_SYMBOL_ADDRESS_H
#define LIB_SYMBOLS_SYMBOL_ADDRESS_H

#include <stdint.h>

struct symbol_table;

/* A mapping as pprof and /proc/PID/maps have it: the process's [start, limit) shows the file from
 * offset on. */
struct symbol_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
};

enum symbol_address_result {
    SYMBOL_ADDRESS_NONE,   /* it cannot be in this binary's code, or nobody can tell */
    SYMBOL_ADDRESS_EXACT,  /* by the program headers */
    SYMBOL_ADDRESS_GUESSED /* the headers were moved: by length and place of the mapping */
};

/* The address in the binary of an address of the process; *ret_address is set unless NONE. */
enum symbol_address_result symbol_address_find(const struct symbol_table *table,
                                               const struct symbol_mapping *mapping,
                                               uint64_t address, uint64_t *ret_address);

#endif
