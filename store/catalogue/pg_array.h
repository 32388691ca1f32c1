/*
 * catalogue_lists: arrays as PostgreSQL reads them: "{1,2}". Private to store/catalogue*.c.
 */
#ifndef STORE_CATALOGUE_PG_ARRAY_H
#define STORE_CATALOGUE_PG_ARRAY_H

#include "lib/base/buf.h"

#include <stdint.h>

struct arena;

void catalogue_append_number(struct buf *list, int64_t number);
/* The whole list, in arena; an empty one where nothing was appended. */
const char *catalogue_end_list(struct arena *arena, struct buf *list);

#endif
