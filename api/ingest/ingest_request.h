/*
 * ingest_request: the transaction in which a request adds its profiles to the store, within the
 * limits of their tenant. A receiver opens it, puts batches into it and commits it: either all
 * batches are added or none.
 *
 * The limits of samples and series are compared with counts in memory (api/ingest/ingest_counts.h),
 * where a profile without samples counts as one sample; those of labels and times with each batch
 * (api/ingest/batch_check.h). The bytes that the tenant has stored are read with its limits
 * (api/ingest/ingest_storage.h). The error of a request over a limit states the limit's name, its
 * value and where it is set. struct request records which service sent how much, for
 * api/ingest/sources.h.
 *
 * Threads: a struct ingest_request belongs to one thread.
 */
#ifndef API_INGEST_INGEST_REQUEST_H
#define API_INGEST_INGEST_REQUEST_H

#include "api/identity/tenant_limits.h"
#include "lib/base/buf.h"
#include "lib/base/err_code.h"
#include "lib/profile/batch/batch_labels.h"

#include <stddef.h>
#include <stdint.h>

struct ingest_request;
struct batch;
struct otlp_result;
struct profile_limits;
struct request;
struct store_receipt;

/* Opens a transaction of the request's tenant. The caller calls ingest_request_close. Errors:
 * ERR_RATE_LIMITED (the rate is exceeded), ERR_QUOTA (the stored profiles exceed their limit),
 * ERR_DATABASE, ERR_BUSY. */
enum err_code ingest_request_open(struct request *request,
                                  struct ingest_request **ret_ingest_request,
                                  struct err *err) MUST_USE;
/* Drops the batches that were not committed, and frees ingest_request. NULL is a no-op. */
void ingest_request_close(struct ingest_request *ingest_request);
/* Drops all batches that were put, because the caller will put them again. */
void ingest_request_restart(struct ingest_request *ingest_request);

/* Sets the limits of one profile: the tenant's limits of its size and of its strings, and the
 * setting max-expansion-ratio for compressed bytes. */
void ingest_request_set_limits(const struct ingest_request *ingest_request,
                               struct profile_limits *limits);
/* Call it with the code of decoding a profile. If it is ERR_TOO_LARGE and one of the tenant's
 * limits may be the reason, puts the name of that limit before the message. Returns code. */
enum err_code ingest_request_explain(const struct ingest_request *ingest_request,
                                     const struct profile_limits *limits, enum err_code code,
                                     struct err *err) MUST_USE;
/* Checks the labels of a series, as received. Errors: ERR_INVALID. */
enum err_code ingest_request_check_labels(const struct ingest_request *ingest_request,
                                          const struct batch_text_label *labels, size_t count,
                                          struct err *err) MUST_USE;

/* The limits of the labels of a series. */
struct batch_limits ingest_request_label_limits(const struct ingest_request *ingest_request);

/* The labels of samples that become labels of series; borrowed from ingest_request. Returns their
 * number. */
uint32_t ingest_request_series_labels(const struct ingest_request *ingest_request,
                                      struct span ret_names[SAMPLE_LABELS_MAX]);

/* Puts a batch; batch_id as in store_append. Errors: ERR_INVALID (a label), ERR_QUOTA (too many
 * series), ERR_TOO_LARGE (also profiles of more days than the setting max-request-days: the store
 * writes an object for each day, so a small request could cause work for minutes). */
enum err_code ingest_request_put(struct ingest_request *ingest_request, const struct batch *batch,
                                 const uint8_t *batch_id, struct err *err) MUST_USE;
/* As ingest_request_put, but leaves out the profiles of series that exceed a limit, and counts and
 * describes these in result. The caller still owns batch and its profiles. */
enum err_code ingest_request_put_allowed(struct ingest_request *ingest_request, struct batch *batch,
                                         const uint8_t *batch_id, struct otlp_result *result,
                                         struct err *err) MUST_USE;

/* Adds all batches to the store, or none; they are durable when this returns. Errors: those of
 * store_append, ERR_RATE_LIMITED, ERR_TOO_LARGE (more samples than are ever allowed at once). */
enum err_code ingest_request_commit(struct ingest_request *ingest_request,
                                    struct store_receipt *ret_receipt, struct err *err) MUST_USE;

#endif
