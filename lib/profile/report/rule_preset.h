/*
 * rule_preset: the functions that are not a reader's own code, by language, as links name them
 * ("only:go").
 *
 * Equal to web/src/model/rules/presets.ts; web/test/model/rules/presets.test.ts compares them.
 * Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_RULE_PRESET_H
#define LIB_PROFILE_REPORT_RULE_PRESET_H

#include "lib/base/span.h"

#include <stdbool.h>

struct rule_preset {
    const char *name;
    const char *const *hides; /* expressions for names, files and binaries; NULL-terminated */
    bool hides_kernel;        /* also hides frames that the profile marks as the kernel's */
};

/* Finds a preset by its name, which is static; NULL: there is none. */
const struct rule_preset *rule_preset_find(struct span name);

#endif
