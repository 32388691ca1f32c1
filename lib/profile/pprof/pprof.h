/*
 * pprof: the protobuf format of github.com/google/pprof (proto/profile.proto), uncompressed.
 *
 * Decoding checks what google/pprof's Profile.CheckValid checks (ids given, unique and resolvable,
 * as many values as value types) and that every string index is in range, and refuses what the
 * official reader refuses. Fields that the format does not have are skipped. Ids are turned into
 * indexes in file order. Strings that are no UTF-8 are kept as they are. Nothing is dropped but
 * the ids themselves, unreferenced duplicates of strings and unknown fields.
 *
 * One difference in favour of the file: a label with neither text nor number nor unit, which the
 * official reader forgets, stays as the number 0.
 *
 * Decoding costs two passes over the bytes (count, then fill into arrays of the exact size); see
 * tests/bench/bench_pprof.c for figures. Threads: any.
 */
#ifndef LIB_PROFILE_PPROF_PPROF_H
#define LIB_PROFILE_PPROF_PPROF_H

#include "lib/profile/profile.h"

/*
 * Could bytes be a pprof message? Looks at the top-level fields only: known numbers and wire types,
 * lengths that end where the bytes end. False for empty bytes.
 */
bool pprof_sniff(struct span bytes);

/*
 * Decodes raw, which needs to live only for the call. limits may be NULL for the defaults. The
 * caller destroys *ret_profile. Handles: ERR_INVALID (malformed or inconsistent; the message says
 * what and where), ERR_TOO_LARGE (a limit; the message names it).
 */
enum err_code pprof_decode(struct span raw, const struct profile_limits *limits,
                           struct profile **ret_profile, struct err *err) MUST_USE;

/*
 * Appends the message to output, with packed numbers and ids from 1 in order. Decoding it gives the
 * same profile again, and equal profiles give equal bytes. Handles: ERR_TOO_LARGE (output's
 * maximum).
 */
enum err_code pprof_encode(const struct profile *profile, struct buf *output,
                           struct err *err) MUST_USE;

#endif
