/*
 * doctor: reports what this machine allows the agent to do, one line each, and how to fix the rest.
 */
#ifndef AGENT_OPS_DOCTOR_H
#define AGENT_OPS_DOCTOR_H

#include <stdbool.h>

/* Prints to standard output. True when the agent can run. */
bool doctor_run(void);

#endif
