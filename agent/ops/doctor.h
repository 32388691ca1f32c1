/*
 * doctor: checks permissions, kernel features, /proc, perf events and kernel symbols, and then
 * whether the agent can start. Prints a line per check, and for a failed check how to fix it.
 */
#ifndef AGENT_OPS_DOCTOR_H
#define AGENT_OPS_DOCTOR_H

#include <stdbool.h>

/* Prints to standard output. True when the agent can run. */
bool doctor_run(void);

#endif
