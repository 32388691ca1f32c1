/*
 * merge: several profiles of one kind as one profile, the sum of all.
 *
 * As `go tool pprof` merges: value types and period type must be the same, or differ only in units
 * that convert into each other (unit.h); values are then those of the finest unit. Equal samples
 * (stack and labels) are added up, samples that are 0 everywhere are left out, and so are tables'
 * entries that no sample uses; mappings are the same when size, offset and build id (else file)
 * agree, and addresses are moved to the first one's place, so that runs of one binary under address
 * randomisation meet. time_ns is the earliest, duration_ns the sum, period the largest, comments
 * the union, the other fields those of the first profile that has them. Threads: any; the profiles
 * are only read.
 */
#ifndef LIB_PROFILE_MERGE_H
#define LIB_PROFILE_MERGE_H

#include "lib/profile/profile.h"

/*
 * The caller destroys *ret_profile. limits may be NULL for the defaults. Handles: ERR_INVALID (no
 * profile, their types differ, or a value does not fit an int64 in the finest unit: the message
 * says which profile, counted from 1, and how), ERR_TOO_LARGE (limits).
 */
enum err_code merge_profiles(const struct profile *const *profiles, size_t profile_count,
                             const struct profile_limits *limits, struct profile **ret_profile,
                             struct err *err) MUST_USE;

#endif
