/*
 * source_link_matcher: finds the labels and binaries of a profile that rules of source links
 * select.
 *
 * A client chooses the patterns, the build ids and the number of mappings, so the work is counted
 * in steps: one for each byte that is compared and for each string, label and mapping that is read.
 * A build id is compared once with each pattern, however many mappings have it, and only if
 * build_id_normalize accepts it. A matcher belongs to one thread.
 */
#ifndef API_SHARE_SOURCE_LINK_MATCHER_H
#define API_SHARE_SOURCE_LINK_MATCHER_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct profile;
struct source_link_matcher;

/* About a second of CPU time. 100 rules of 40 characters and 10,000 binaries with ids of 20 bytes
 * take 0.05e9 steps. */
#define SOURCE_LINK_MATCHER_MAX_STEPS UINT64_C(500000000)

/* In the arena; borrows the profile. The functions below end when they have taken max_steps
 * together, or soon after *is_cancelled is set (NULL: never). */
struct source_link_matcher *source_link_matcher_create(struct arena *arena,
                                                       const struct profile *profile,
                                                       uint64_t max_steps,
                                                       const atomic_bool *is_cancelled);

/* Sets ret_has[i] for each i of count: whether samples have labels[i], of the form key=value. Takes
 * one pass over the profile's labels, whatever count is. Errors: ERR_TOO_LARGE (max_steps),
 * ERR_CANCELLED. */
enum err_code source_link_matcher_find_labels(struct source_link_matcher *matcher,
                                              const struct span *labels, uint32_t count,
                                              bool *ret_has, struct err *err) MUST_USE;

/* Selects the files of the binaries whose build id matches pattern: the text in the profile, or the
 * key of its symbol table. Errors: ERR_TOO_LARGE (max_steps), ERR_CANCELLED. */
enum err_code source_link_matcher_find_files(struct source_link_matcher *matcher,
                                             struct span pattern, bool *ret_has_any,
                                             struct err *err) MUST_USE;
/* The next selected file, each once, in the order of the mappings; false after the last one. */
bool source_link_matcher_next_file(struct source_link_matcher *matcher, struct span *ret_file);

/* Whether all of text matches a pattern in which * matches any text and ? one byte. Adds the number
 * of compared bytes, which is at most slightly more than the product of both lengths, to *steps. */
bool source_link_matcher_is_match(struct span pattern, struct span text, uint64_t *steps);

#endif
