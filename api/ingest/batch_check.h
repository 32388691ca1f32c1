/*
 * batch_check: whether the series and profiles of a batch are within the limits of their tenant:
 * the labels and the type of a series, and the time of a profile. Threads: any.
 *
 * All errors are ERR_INVALID; the message names the limit, its value and where it is set.
 */
#ifndef API_INGEST_BATCH_CHECK_H
#define API_INGEST_BATCH_CHECK_H

#include "lib/base/err_code.h"

#include <stddef.h>
#include <stdint.h>

struct batch;
struct batch_profile;
struct batch_series;
struct batch_text_label;
struct tenant_limits;

/* Checks the labels of a series, as received. */
enum err_code batch_check_labels(const struct tenant_limits *limits,
                                 const struct batch_text_label *labels, size_t count,
                                 struct err *err) MUST_USE;
/* Checks the labels of a series and its type. */
enum err_code batch_check_series(const struct tenant_limits *limits, const struct batch *batch,
                                 const struct batch_series *series, struct err *err) MUST_USE;
/* Checks that the profile does not begin too far in the future. now_ns: the wall clock. */
enum err_code batch_check_time(const struct tenant_limits *limits,
                               const struct batch_profile *profile, int64_t now_ns,
                               struct err *err) MUST_USE;
/* The same for all profiles of the batch. */
enum err_code batch_check_times(const struct tenant_limits *limits, const struct batch *batch,
                                struct err *err) MUST_USE;

#endif
