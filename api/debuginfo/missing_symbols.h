/*
 * missing_symbols: binaries that lack a symbol table and whose names a client needs.
 *
 * They are noted in memory and become rows of the table symbol_need, from which debuginfo_fetch
 * reads them. Binaries that were not noted in the last minutes are written soon, by background
 * work. Threads: any.
 */
#ifndef API_DEBUGINFO_MISSING_SYMBOLS_H
#define API_DEBUGINFO_MISSING_SYMBOLS_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct build_id_binary;
struct missing_symbols;
struct server;

struct missing_symbols *missing_symbols_create(void);
void missing_symbols_destroy(struct missing_symbols *needs); /* NULL is a no-op */

/* Notes these binaries. Those for which there is no space are dropped: the next request notes them
 * again. Returns how many were noted now. */
uint32_t missing_symbols_note(struct server *server, int64_t tenant_id,
                              const struct build_id_binary *binaries, uint32_t count);

/* Writes the noted binaries. Called often, by background work. Errors: ERR_DATABASE. */
enum err_code missing_symbols_write(struct server *server, struct err *err) MUST_USE;

#endif
