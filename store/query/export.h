/*
 * export: writes the samples of a window as one Parquet file, a row for each.
 *
 *   time           start of its profile, UTC, nanoseconds
 *   duration_ns    of its profile
 *   period         of its profile, in the unit of the profile type's fifth part
 *   profile_type   process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta
 *   sample_type    cpu
 *   sample_unit    nanoseconds
 *   label_NAME     of its series; one column for each name that any series has, else null
 *   value
 *   stack          list of function names, the leaf first, with inlined calls; without a
 *                  name it is "libc.so.6+0x2a10", "0x7f32a0" or "<unknown>", as in reports
 *   frames         the same as a list of (function, file, line, address, build_id, binary);
 *                  empty or 0 where unknown; addresses are offsets in the binary where known
 *   trace_id       hexadecimal, or null
 *   span_id        hexadecimal, or null
 *   sample_labels  a map of its own labels, numbers with their unit ("4096 bytes")
 *   seen_at        list of the sample's timestamps, where it came with any
 *
 * Labels of series are columns since queries group by them: they need no quotes, have statistics by
 * which readers skip data, and are plain columns in DuckDB and pandas, where a map is a column of
 * lists that cannot be grouped by. Labels of samples are not known before all rows are read, so
 * they are a map. In a column name each character other than letters, digits and "_" becomes "_";
 * names that are then equal except for case, which DuckDB does not distinguish, are numbered: _2.
 *
 * Rows are ordered by block, series, hour and stack. Private to store/; store/store.h describes the
 * interface.
 */
#ifndef STORE_QUERY_EXPORT_H
#define STORE_QUERY_EXPORT_H

#include "store/types.h"

struct scan_source;

enum err_code export_write(const struct scan_source *source, struct arena *arena,
                           const struct store_query *query, const struct store_export_sink *sink,
                           struct store_statistics *ret_statistics, struct err *err) MUST_USE;

#endif
