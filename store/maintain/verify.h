/*
 * verify: reads all objects, or a copy of them, byte by byte and compares them with the catalogue.
 * Private to store/; store/store.h describes the interface.
 *
 * Memory: the catalogue's rows and one open block.
 */
#ifndef STORE_MAINTAIN_VERIFY_H
#define STORE_MAINTAIN_VERIFY_H

#include "store/types.h"

enum err_code verify_run(const struct store_check *check, struct store_check_result *ret_result,
                         struct err *err) MUST_USE;
enum err_code verify_read_catalogue(struct pg_pool *database, struct arena *arena,
                                    const struct store_catalogue **ret_catalogue,
                                    struct err *err) MUST_USE;
enum err_code verify_copy(const struct store_check *check, const struct store_catalogue *catalogue,
                          struct store_check_result *ret_result, struct err *err) MUST_USE;

#endif
