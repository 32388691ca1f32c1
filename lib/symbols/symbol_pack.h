/*
 * symbol_pack: the packed form of a symbol table, for storage and uploads: at most half of the
 * size, but it cannot be read in place.
 *
 * The packed form contains the same data (symbol_table.h) in columns of numbers, each predicted
 * from previous values, and the names in one piece; zstd compresses each column. A table is packed
 * before it is uploaded or stored, and unpacked before it is read. Unpacking yields the same data,
 * but not the same bytes as the original table. symbol_pack_format.h describes the layout.
 *
 * Packed bytes are untrusted: for any input, symbol_unpack fails or returns a table that
 * symbol_table_verify accepts. It allocates the expanded columns, at most SYMBOL_PACK_MAX_RATIO
 * times the packed bytes, and the table. Threads: any.
 */
#ifndef LIB_SYMBOLS_SYMBOL_PACK_H
#define LIB_SYMBOLS_SYMBOL_PACK_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <stdbool.h>

struct buf;
struct symbol_table;

enum {
    SYMBOL_PACK_MAX_RATIO = 64, /* columns: at most so many times the packed bytes, plus 1 MiB */
    SYMBOL_PACK_FLAT_MAX_BYTES = 1 << 28 /* of all columns together */
};

/* Whether bytes start with the magic of a packed table. */
bool symbol_pack_is(struct span bytes);

/*
 * Appends the packed table to output. The table must be valid (symbol_table_verify). Takes 0.4 CPU
 * seconds for a million records. Errors: ERR_TOO_LARGE (a limit above, or output's; such a table
 * is stored unpacked), ERR_CORRUPT (not valid).
 */
enum err_code symbol_pack(const struct symbol_table *table, struct buf *output,
                          struct err *err) MUST_USE;

/* The same from a file to a file. The table is verified first; the packed form replaces the content
 * of packed_fd. Errors: also those of symbol_table_open_fd and ERR_IO. */
enum err_code symbol_pack_fd(int table_fd, int packed_fd, struct err *err) MUST_USE;

/*
 * Unpacks a table and appends it to output. Takes 0.1 CPU seconds for a million records. Errors:
 * ERR_INVALID (not a packed table), ERR_UNSUPPORTED (newer version), ERR_CORRUPT, ERR_TOO_LARGE
 * (output's limit, or those above).
 */
enum err_code symbol_unpack(struct span packed, struct buf *output, struct err *err) MUST_USE;
/* The same from a file. Errors: also ERR_IO. */
enum err_code symbol_unpack_fd(int packed_fd, struct buf *output, struct err *err) MUST_USE;

/* Estimates from the header the memory that symbol_unpack will allocate besides the packed
 * bytes, so that callers can reserve it. 0: the bytes will be rejected. Verifies the checksum of
 * the bytes. */
uint64_t symbol_unpack_bytes(struct span packed);
uint64_t symbol_unpack_fd_bytes(int packed_fd);

#endif
