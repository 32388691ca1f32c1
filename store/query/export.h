/*
 * export: the samples of a window as one Parquet file, a row for each.
 *
 *   time           when its profile began, UTC, nanoseconds
 *   duration_ns    of its profile
 *   period         of its profile, in units of the profile type's last part
 *   profile_type   process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta
 *   sample_type    cpu
 *   sample_unit    nanoseconds
 *   label_NAME     of its series; one column for each name that any series has, else null
 *   value
 *   stack          list of function names, the leaf first, inlined calls too; what has no name is
 *                  "libc.so.6+0x2a10", "0x7f32a0" or "<unknown>": as in reports
 *   frames         the same as a list of (function, file, line, address, build_id, binary); empty
 * and 0 where it is not known; addresses are offsets in the binary where that is known trace_id
 * hexadecimal, or null span_id sample_labels  a map: labels of its own, numbers with their unit
 * ("4096 bytes") seen_at        list of the moments when it was seen, where they came with it
 *
 * Labels of series are columns since that is what is grouped by: they need no quotes, have
 * statistics by which readers skip what a filter leaves out, and are plain columns in DuckDB and in
 * pandas, where a map is a column of lists that nothing groups by. Labels of samples are not known
 * before all rows are read, so they are a map. A name that is not of letters, digits and "_" has
 * "_" in place of the others; names that are then equal but for case, which DuckDB does not tell
 * apart, are numbered: _2.
 *
 * Rows stand by block, series, hour and stack. Private to the room; store/store.h tells the rest.
 */
#ifndef STORE_QUERY_EXPORT_H
#define STORE_QUERY_EXPORT_H

#include "store/store.h"

struct scan_source;

enum err_code export_write(const struct scan_source *source, struct arena *arena,
                           const struct store_query *query, const struct store_export_sink *sink,
                           struct store_statistics *ret_statistics, struct err *err) MUST_USE;

#endif
