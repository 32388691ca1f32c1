/*
 * catalogue_places: rows of the catalogue as places. Private to store/catalogue*.c.
 */
#ifndef STORE_CATALOGUE_PLACES_H
#define STORE_CATALOGUE_PLACES_H

#include "store/catalogue.h"

struct arena;
struct pg_result;

/* How many places the row has: one, or as many as the array in column `lengths` has numbers. */
uint32_t catalogue_count_places(const struct pg_result *result, int row, int lengths);

/* Columns first … are object key, first byte, lengths (NULL: the whole object), level, ids of
 * deletions, which go to arena. The count. */
uint32_t catalogue_read_places(struct arena *arena, const struct pg_result *result, int row,
                               int first, struct catalogue_place *places);
/* An array of numbers. */
void catalogue_read_ids(struct arena *arena, const struct pg_result *result, int row, int column,
                        struct deleted_ids *ret_ids);

#endif
