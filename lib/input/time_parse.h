/*
 * time_parse: parses points in time and durations as people and clients write them in queries.
 *
 * A point in time is returned in nanoseconds since 1970 UTC. Accepted forms:
 *
 *   2026-01-02T03:04:05.678+01:00   RFC 3339; also with "t", "z" or a blank for the "T". Without a
 *                                   time it is midnight, without seconds 0, without an offset UTC
 *   14:30, 14:30:05                 that time of the current day
 *   today, yesterday, tomorrow      midnight of that day, or a time on it: yesterday 14:30
 *   2 hours ago, 1h 30min ago       relative to now_ns
 *   now, now-3h, now-1h30m, now+5m  relative to now_ns
 *   1767323045, 1767323045.678      seconds; an "@" may precede them
 *   13, 16 or 19 digits             milliseconds, microseconds, nanoseconds
 *   20260102                        8 digits that are a date (from 1901 on): its midnight, UTC
 *
 * Days are UTC days. A duration is a number of seconds ("15", "0.5") or numbers with units in any
 * order ("15s", "1h30m", "1.5h"): ns, us, ms, s, m or min, h, d (24 h), w (7 d), mon or M (30 d), y
 * (365 d). Digits below a nanosecond are dropped. Only "now-…" may be negative. Threads: any.
 */
#ifndef LIB_INPUT_TIME_PARSE_H
#define LIB_INPUT_TIME_PARSE_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

/* Blanks around text are ignored. Errors: ERR_INVALID (the message quotes the invalid part and
 * contains its position). */
enum err_code time_parse(struct span text, int64_t now_ns, int64_t *ret_ns,
                         struct err *err) MUST_USE;
enum err_code time_parse_duration(struct span text, int64_t *ret_ns, struct err *err) MUST_USE;

#endif
