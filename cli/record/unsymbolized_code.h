/*
 * nameless_code: says of a recording which programs run code that was made at run time and has no
 * names, how much of the samples that is, and what gives it names. Threads: one.
 */
#ifndef CLI_RECORD_UNSYMBOLIZED_CODE_H
#define CLI_RECORD_UNSYMBOLIZED_CODE_H

struct profile;
struct terminal;

/* As a note for each program of which that is at least one of 100 samples; of a profile as
 * agent/profile/window.h makes it for people. */
void unsymbolized_code_say(struct terminal *terminal, const struct profile *profile);

#endif
