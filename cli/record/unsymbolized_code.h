/*
 * unsymbolized_code: prints which programs of a recording run JIT-compiled code without names, its
 * share of the samples, and how to get names. Threads: one.
 */
#ifndef CLI_RECORD_UNSYMBOLIZED_CODE_H
#define CLI_RECORD_UNSYMBOLIZED_CODE_H

struct profile;
struct terminal;

/* Prints a note for each program with more than 1 % of all samples in such code. profile has the
 * readable form of agent/profile/window.h. */
void unsymbolized_code_print(struct terminal *terminal, const struct profile *profile);

#endif
