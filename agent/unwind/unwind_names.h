/*
 * unwind_names: texts for unwind rules and for the reasons why a stack ended. Threads: any.
 */
#ifndef AGENT_UNWIND_UNWIND_NAMES_H
#define AGENT_UNWIND_UNWIND_NAMES_H

#include "agent/unwind/cfi_state.h"

enum { UNWIND_RULE_TEXT_BYTES = 96 };

/* "root", "frame-pointer", …; "unknown" for any other number. Also values of a metric's label. */
const char *unwind_stop_name(enum unwind_stop stop);

/* Whether the stack is complete: it was unwound to the start of its thread. */
static inline bool unwind_stop_is_complete(enum unwind_stop stop)
{
    return stop == UNWIND_STOP_ROOT || stop == UNWIND_STOP_ROOT_ZERO;
}

/* "cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]" */
void unwind_rule_text(const struct cfi_rule *rule, bool is_arm64,
                      char text[UNWIND_RULE_TEXT_BYTES]);

#endif
