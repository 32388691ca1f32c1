/*
 * missing_symbols: binaries without a table that symbol_tables_need has noted in memory and that
 * are not yet rows of the table symbol_need. For symbol_tables.c.
 */
#ifndef API_DEBUGINFO_MISSING_SYMBOLS_H
#define API_DEBUGINFO_MISSING_SYMBOLS_H

struct missing_symbols;
struct symbol_tables;

struct missing_symbols *missing_symbols_create(void);
void missing_symbols_destroy(struct missing_symbols *needs); /* NULL is a no-op */

struct missing_symbols *symbol_tables_needs(struct symbol_tables *tables);

#endif
