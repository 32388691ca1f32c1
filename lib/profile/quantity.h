/*
 * quantity: formats a value with its unit, or a percentage, as the pages and pictures show it.
 *
 * A percentage has the digits of formatPercent in web/src/model/text/units.ts, so that a picture
 * and the page beside it state the same number. Both functions write at most QUANTITY_TEXT_BYTES
 * with the final NUL and return text. Threads: any.
 */
#ifndef LIB_PROFILE_QUANTITY_H
#define LIB_PROFILE_QUANTITY_H

#include "lib/base/span.h"

enum { QUANTITY_TEXT_BYTES = 48 };

/*
 * Writes value in the largest unit in which it is at least 1: "1.28 s", "3.40 MiB". unit is pprof's
 * word: "nanoseconds" to "seconds", "bytes", "count" or "count/10" …, which unit.h defines. Counts
 * are written as "12,345" and, from a million on, as "1.23 M". So are values of any other unit,
 * with the first 20 bytes of the unit after the number if it is UTF-8.
 */
const char *quantity_format(double value, struct span unit, char text[QUANTITY_TEXT_BYTES]);

/* Writes "56.3 %"; a value between 0 and 0.01 is "<0.01 %" (formatPercent). */
const char *quantity_format_percent(double percent, char text[QUANTITY_TEXT_BYTES]);

#endif
