/*
 * verify: all that is stored, read byte by byte and compared with the catalogue; and how much there
 * is. Private to the room: store.h tells what it is for.
 *
 * Memory is of the catalogue's rows and one open block.
 */
#ifndef STORE_VERIFY_H
#define STORE_VERIFY_H

#include "store/store.h"

enum err_code verify_run(const struct store_check *check, struct store_check_result *ret_result,
                         struct err *err) MUST_USE;

#endif
