/*
 * store_admin: `perfoliod store verify` compares all stored objects with their rows
 * (api/ops/object_verify.h), `perfoliod store stats` lists how much the store holds; the server may
 * run meanwhile. Standard output has the result, as text or as one JSON object; progress is for
 * terminals.
 */
#ifndef API_OPS_STORE_ADMIN_H
#define API_OPS_STORE_ADMIN_H

#include "lib/base/err.h"

#include <stdbool.h>

struct settings;

/* verb: "verify" or "stats". Handles: ERR_INVALID (another verb), ERR_CORRUPT (verify found
 * something, and has said what). */
enum err_code store_admin_run(struct settings *settings, const char *verb, bool is_json,
                              struct err *err) MUST_USE;

#endif
