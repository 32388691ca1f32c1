/*
 * symbol_pack: a symbol table at rest and on its way: half of the bytes or less, not to be read.
 *
 * What a table says (symbol_table.h) as columns of numbers that are told from what came before, and
 * names in one piece, each compressed by zstd. A table is packed when it is uploaded or stored, and
 * made a table again by whoever is about to read it; the bytes are then not those of the first
 * table, but say the same. symbol_pack_format.h has the layout.
 *
 * Packed bytes may come from anybody: whatever they are, symbol_unpack fails or gives a table that
 * symbol_table_verify finds sound. It holds what it expands to, at most SYMBOL_PACK_MAX_RATIO times
 * the packed bytes, and the table. Threads: any.
 */
#ifndef LIB_SYMBOLS_SYMBOL_PACK_H
#define LIB_SYMBOLS_SYMBOL_PACK_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>

struct symbol_table;

enum {
    SYMBOL_PACK_MAX_RATIO = 64,          /* and 1 MiB */
    SYMBOL_PACK_FLAT_MAX_BYTES = 1 << 28 /* of all columns */
};

/* Do they begin as a packed table does? */
bool symbol_pack_is(struct span bytes);

/*
 * Appends table, packed, to output. It has to be sound (symbol_table_verify). Takes 0.4 CPU seconds
 * for a million records. Handles: ERR_TOO_LARGE (the limits above, or output's: such a table rests
 * as it is), ERR_CORRUPT (it is not sound).
 */
enum err_code symbol_pack(const struct symbol_table *table, struct buf *output,
                          struct err *err) MUST_USE;

/* The same of the table in a file, which is verified first, to the beginning of a file. Also
 * handles what symbol_table_open_fd does. */
enum err_code symbol_pack_fd(int table_fd, int packed_fd, struct err *err) MUST_USE;

/*
 * Appends the table that was packed to output. Takes 0.1 CPU seconds for a million records.
 * Handles: ERR_INVALID (no packed table), ERR_UNSUPPORTED (of a newer version), ERR_CORRUPT,
 * ERR_TOO_LARGE (output's limit, or those above).
 */
enum err_code symbol_unpack(struct span packed, struct buf *output, struct err *err) MUST_USE;
/* The same from a file to the beginning of a file; max_bytes is the table's limit. Also handles:
 * ERR_IO. */
enum err_code symbol_unpack_fd(int packed_fd, int table_fd, size_t max_bytes,
                               struct err *err) MUST_USE;

/* About what symbol_unpack will hold of memory beside the packed bytes, for who has to make room
 * first: the head tells. 0: it will refuse them. Takes a checksum of the bytes. */
uint64_t symbol_unpack_bytes(struct span packed);
uint64_t symbol_unpack_fd_bytes(int packed_fd);

#endif
