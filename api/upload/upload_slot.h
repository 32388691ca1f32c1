/*
 * upload_slot: how many uploads are decoded at a time.
 *
 * Decoding a profile or a symbol table takes seconds of processor time and much memory for a small
 * body that expands well, and the rate of uploads does not limit that. So it needs a concurrency
 * slot (api/http/concurrency_limit.h): clients without credentials share a quarter of the workers,
 * one upload of an address at a time, and each tenant has a quarter. Other requests wait without a
 * worker. Threads: any.
 */
#ifndef API_UPLOAD_UPLOAD_SLOT_H
#define API_UPLOAD_UPLOAD_SLOT_H

#include "lib/base/err_code.h"

struct request;

/* Call it before anything is changed: without a slot the request is put aside and handled again
 * from the start. Handles: ERR_BUSY. */
enum err_code upload_slot_take(struct request *request, struct err *err) MUST_USE;

#endif
