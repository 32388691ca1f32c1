/*
 * when: moments and durations as people and clients write them in queries.
 *
 * A moment is nanoseconds since 1970 UTC and may be written as
 *
 *   2026-01-02T03:04:05.678+01:00   RFC 3339; "t", "z" and a blank for the "T" are taken, too;
 * time, seconds and offset may be missing: midnight, 0, UTC 14:30, 14:30:05                 that
 * time of today today, yesterday, tomorrow      its midnight, or with a time behind it: yesterday
 * 14:30 2 hours ago, 1h 30min ago       before the time that the caller gives 1767323045,
 * 1767323045.678      seconds; an "@" may stand before it 13, 16 or 19 digits milliseconds,
 * microseconds, nanoseconds 20260102                        8 digits that are a date (from 1901
 * on): its midnight, UTC now, now-3h, now-1h30m, now+5m  relative to the time that the caller gives
 *
 * Days are those of UTC. A duration is a number of seconds ("15", "0.5") or numbers with units,
 * biggest first or not
 * ("15s", "1h30m", "1.5h"): ns, us, ms, s, m or min, h, d (24 h), w (7 d), mon or M (30 d),
 * y (365 d). Decimal places below a nanosecond are cut off. Nothing is negative but "now-…".
 * Threads: any.
 */
#ifndef LIB_BASE_TIME_PARSE_H
#define LIB_BASE_TIME_PARSE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Blanks around text are ignored. Handles: ERR_INVALID (the message quotes what is wrong and says
 * where). */
enum err_code time_parse(struct span text, int64_t now_ns, int64_t *ret_ns,
                         struct err *err) MUST_USE;
enum err_code time_parse_duration(struct span text, int64_t *ret_ns, struct err *err) MUST_USE;

#endif
