/*
 * value: formats numbers and times for people. Each function writes to its parameter text and
 * returns it.
 */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include "lib/base/buf.h"

enum { VALUE_TEXT_BYTES = 64 };

/*
 * A sample value in the largest unit that fits: "1.28 s", "3.40 MiB", "12,345". unit is pprof's
 * ("nanoseconds", "bytes", "count", …); an unknown unit is written after the number.
 */
const char *value_format(double value, struct span unit, char text[VALUE_TEXT_BYTES]);
/* The same with a sign, also for positive values: "+1.28 s". */
const char *value_format_delta(double value, struct span unit, char text[VALUE_TEXT_BYTES]);
/* "3.40 MiB" */
const char *value_bytes(uint64_t bytes, char text[VALUE_TEXT_BYTES]);
/* "12,345" */
const char *value_count(int64_t count, char text[VALUE_TEXT_BYTES]);
/* "1 sample", "12345 samples" */
const char *value_counted(uint64_t count, const char *one, const char *many,
                          char text[VALUE_TEXT_BYTES]);
/* RFC 3339 UTC as "2026-12-01 14:05 UTC"; other texts stay unchanged. */
const char *value_time(const char *rfc3339, char text[VALUE_TEXT_BYTES]);
/* The distance from now: "in 29 days", "3 h ago"; "" for a text that is not a time. */
const char *value_distance(const char *rfc3339, int64_t now_s, char text[VALUE_TEXT_BYTES]);

#endif
