/*
 * execute: a question answered from blocks: which series, which granules, by totals or by rows.
 *
 * Private to the room; store/store.h describes what it does (store_merge).
 */
#ifndef STORE_EXECUTE_H
#define STORE_EXECUTE_H

#include "store/store.h"

struct open_blocks;

enum err_code execute_merge(struct open_blocks *blocks, struct pg_pool *database,
                            struct arena *arena, const struct store_query *query,
                            struct store_answer *ret_answer, struct err *err) MUST_USE;

#endif
