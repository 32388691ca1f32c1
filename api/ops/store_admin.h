/*
 * store_admin: `perfoliod store verify` compares all stored objects with their rows
 * (api/ops/object_verify.h), `perfoliod store stats` lists how much the store contains; the server
 * may run meanwhile. The result goes to standard output, as text or as one JSON object; progress is
 * shown on terminals only.
 */
#ifndef API_OPS_STORE_ADMIN_H
#define API_OPS_STORE_ADMIN_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct settings;

/* verb: "verify" or "stats". Errors: ERR_INVALID (another verb), ERR_CORRUPT (verify found
 * problems, and has printed them). */
enum err_code store_admin_run(struct settings *settings, const char *verb, bool is_json,
                              struct err *err) MUST_USE;

#endif
