/*
 * symbol_needs: what symbol_tables_need noted and has not written yet; for api/symbol_*.c.
 */
#ifndef API_DEBUGINFO_MISSING_SYMBOLS_H
#define API_DEBUGINFO_MISSING_SYMBOLS_H

struct symbol_needs;
struct symbol_tables;

struct symbol_needs *symbol_needs_create(void);
void symbol_needs_destroy(struct symbol_needs *needs); /* NULL is a no-op */

struct symbol_needs *symbol_tables_needs(struct symbol_tables *tables);

#endif
