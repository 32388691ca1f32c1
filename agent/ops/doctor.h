/*
 * doctor: says what this machine lets the agent do, one line each, and what to do where it does
 * not.
 */
#ifndef AGENT_OPS_DOCTOR_H
#define AGENT_OPS_DOCTOR_H

#include <stdbool.h>

/* Prints to standard output. True when the agent can run. */
bool doctor_run(void);

#endif
