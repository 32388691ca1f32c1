/*
 * pprof: the protobuf format of github.com/google/pprof (proto/profile.proto), uncompressed.
 *
 * The decoder makes the checks of google/pprof's Profile.CheckValid (ids present, unique and
 * resolvable, as many values as value types), checks every string index, and refuses what the
 * official reader refuses. Unknown fields are skipped. Ids become indexes in file order. Strings
 * that are not UTF-8 are kept unchanged; longer ones than limits.string_bytes are truncated
 * (long_string.h). Everything else is kept except the ids themselves, duplicates of strings and
 * unknown fields.
 *
 * Two deviations preserve data: a label without text, number and unit, which the official reader
 * drops, is kept as the number 0; and functions and locations may have the id 0, which the official
 * reader refuses but .NET's writers use.
 *
 * Decoding takes two passes over the bytes (count, then fill arrays of the exact size);
 * tests/bench/bench_pprof.c measures it. Threads: any.
 */
#ifndef LIB_PROFILE_PPROF_PPROF_H
#define LIB_PROFILE_PPROF_PPROF_H

#include "lib/profile/profile.h"

struct buf;

/*
 * Whether bytes may be a pprof message. Checks only the top-level fields: the last one must end at
 * the end of the bytes, each field of profile.proto must be length-delimited or a number as there,
 * and at least one such field must exist. Fields with other numbers are skipped. False for empty
 * bytes.
 */
bool pprof_sniff(struct span bytes);

/*
 * Whether bytes should be decoded as pprof: pprof_sniff accepts them, or they begin with field 1,
 * which every writer writes first. So a file that is cut short is detected too, and pprof_decode
 * reports where it ends.
 */
bool pprof_detect(struct span bytes);

/*
 * Decodes raw, which is needed only during the call. limits may be NULL for the defaults. The
 * caller destroys *ret_profile. Errors: ERR_INVALID (malformed or inconsistent; the message states
 * what and where), ERR_TOO_LARGE (a limit; the message names it).
 */
enum err_code pprof_decode(struct span raw, const struct profile_limits *limits,
                           struct profile **ret_profile, struct err *err) MUST_USE;

/*
 * Appends the message to output, with packed numbers and ids from 1 in order. Decoding it yields
 * the same profile, except for the members that pprof lacks: sent_locations, is_named_later,
 * warning and cut_string_count. Equal profiles yield equal bytes. Every line must have a function.
 * Errors: ERR_TOO_LARGE (output's maximum).
 */
enum err_code pprof_encode(const struct profile *profile, struct buf *output,
                           struct err *err) MUST_USE;

#endif
