/*
 * catalogue_places: rows of the catalogue as places. Private to store/catalogue*.c.
 */
#ifndef STORE_CATALOGUE_CATALOGUE_PLACES_H
#define STORE_CATALOGUE_CATALOGUE_PLACES_H

#include "store/catalogue/catalogue.h"

struct arena;
struct pg_result;

/*
 * The places of all rows, in arena. Columns first … are object key, first byte, lengths (NULL: the
 * whole object, one place; else as many as the array has numbers), level, ids of deletions. Row i
 * has those from ret_starts[i] to before ret_starts[i + 1].
 */
struct catalogue_place *catalogue_read_places(struct arena *arena, const struct pg_result *result,
                                              int first, const uint32_t **ret_starts);
/* An array of numbers. */
void catalogue_read_ids(struct arena *arena, const struct pg_result *result, int row, int column,
                        struct deletion_set_ids *ret_ids);

#endif
