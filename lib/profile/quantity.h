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
 * Writes value in the largest unit that fits: "1.28 s", "3.40 MiB", "12,345". unit is pprof's
 * ("nanoseconds", "bytes", "count", …); an unknown unit is written after the number.
 */
const char *quantity_format(double value, struct span unit, char text[QUANTITY_TEXT_BYTES]);

/* Writes "56.3 %"; a value above 0 that would be rounded to 0 is "<0.01 %" (formatPercent). */
const char *quantity_format_percent(double percent, char text[QUANTITY_TEXT_BYTES]);

#endif
