/*
 * series_hash: a hash of a series' type and labels, the same in every block and process.
 *
 * Threads: any. Private to store/.
 */
#ifndef STORE_QUERY_SERIES_HASH_H
#define STORE_QUERY_SERIES_HASH_H

#include "lib/base/buf.h"

#include <stddef.h>
#include <stdint.h>

struct batch;
struct dictionary;

/* Appends the type's whole name, a zero, then each label's name and value with their sizes: bytes
 * that no other series has. Returns the size of the type's name. */
size_t series_hash_append_text(const struct dictionary *dictionary, uint32_t series,
                               struct buf *text);
/* The hash of that text. */
uint64_t series_hash_of(struct span text);
/* The hash of a series of a batch. */
uint64_t series_hash_of_batch(const struct batch *batch, uint32_t series);

#endif
