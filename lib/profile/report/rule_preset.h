/*
 * rule_preset: what is not the reader's own code, by language, as links name it ("only:go").
 *
 * The same as in web/src/model/presets.ts, which web/test/presets.test.ts sees to. Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_RULE_PRESET_H
#define LIB_PROFILE_REPORT_RULE_PRESET_H

#include "lib/base/buf.h"

#include <stdbool.h>

struct rule_preset {
    const char *name;
    const char *const *hides; /* expressions of names, files and binaries; NULL-terminated */
    bool hides_kernel;        /* frames that the profile says are the kernel's go, too */
};

/* NULL: there is none of that name. */
const struct rule_preset *rule_preset_find(struct span name);

#endif
