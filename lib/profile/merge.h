/*
 * merge: several profiles of one kind as one profile, the sum of all.
 *
 * Follows `go tool pprof`. Value types and period type must be equal, or differ only in units that
 * convert into each other (unit.h); values are converted to the finest unit. Samples with equal
 * stack and labels are added. Samples whose values are all 0 are left out, and so are table entries
 * that no sample uses, except the first mapping.
 *
 * Two mappings are the same if their size (in whole pages), offset and build id (or file, without a
 * build id) are equal. Addresses are relocated to the first of these mappings, so runs of one
 * binary with address space layout randomization have common stacks.
 *
 * time_ns is the earliest that is known, duration_ns the sum, period the largest, comments the
 * union. drop_frames and keep_frames are those of the first profile; default_sample_type and
 * doc_url are those of the first profile that has them. warning and cut_string_count are not
 * merged. Threads: any; the profiles are only read.
 */
#ifndef LIB_PROFILE_MERGE_H
#define LIB_PROFILE_MERGE_H

#include "lib/profile/profile.h"

/*
 * The caller destroys *ret_profile. limits may be NULL for the defaults. Errors: ERR_INVALID (no
 * profile, their types differ, or a value does not fit an int64 in the finest unit; the message
 * names the profile, counted from 1), ERR_TOO_LARGE (limits).
 */
enum err_code merge_profiles(const struct profile *const *profiles, size_t profile_count,
                             const struct profile_limits *limits, struct profile **ret_profile,
                             struct err *err) MUST_USE;

#endif
