/*
 * suggest: finds the known name that is closest to a misspelt one ("did you mean").
 *
 * Closeness is the optimal string alignment distance (insertions, deletions, substitutions and
 * swaps of neighbours), ignoring the case of ASCII letters. A name is close when the distance is at
 * most a third of the typed name's length, but at least 1. A name that begins with the typed one is
 * close as well, and so is one that the typed one begins with. Threads: any.
 */
#ifndef LIB_INPUT_SUGGEST_H
#define LIB_INPUT_SUGGEST_H

#include <stddef.h>

struct option_table;

enum { SUGGEST_NAME_BYTES = 64, SUGGEST_NOT_CLOSE = 1000 };

/* The distance between typed and name, 0 if they are equal. SUGGEST_NOT_CLOSE if name is no
 * suggestion, also for names of more than SUGGEST_NAME_BYTES. */
int suggest_distance(const char *typed, const char *name);

/* The closest of the names, the first of several; NULL if none is close. */
const char *suggest_name(const char *typed, const char *const *names, size_t count);

/*
 * Finds the first long option of argv that neither the table nor its parts know and for which a
 * close one exists. Returns the known name; *ret_typed is the argument of argv. Returns NULL when
 * there is none; options_parse then reports the error. argv is not changed. Options behind the
 * first word of a table with take_words are not searched.
 */
const char *suggest_option(const struct option_table *options, int argc, char *const *argv,
                           const char **ret_typed);

#endif
