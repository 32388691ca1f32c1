/*
 * query_fields: the header fields that describe the result of a query.
 *
 *   Perfolio-Profile-Type   the type of the merged profile; its texts are escaped as in a URL
 *   Perfolio-Rule           sum, mean or difference
 *   Perfolio-Statistics     the blocks, rows and bytes that were read
 *   Perfolio-Warning        the stored data that the result lacks, or why it is empty
 */
#ifndef API_QUERY_QUERY_FIELDS_H
#define API_QUERY_QUERY_FIELDS_H

#include "api/http/request.h"

struct arena;
struct store_query;
struct store_result;
struct store_statistics;

/* Describes, in ASCII, the data that a result lacks; NULL if it is complete. In arena. */
const char *query_fields_describe_missing(struct arena *arena, const struct store_statistics *read);
/* Adds the header fields that describe the result. begin_ns: when the request began
 * (clock_monotonic_ns), for the elapsed time in Perfolio-Statistics. */
void query_fields_add(struct request *request, struct response *response,
                      const struct store_result *result, int64_t begin_ns);
/* Adds only Perfolio-Statistics and Perfolio-Warning, for results of the store that are not merged
 * profiles. */
void query_fields_add_statistics(struct request *request, struct response *response,
                                 const struct store_statistics *read, int64_t begin_ns);
/* Adds a Perfolio-Warning if the query found nothing and its selector requires a label that neither
 * a series nor a sample of the window has. */
void query_fields_explain_labels(struct request *request, struct response *response,
                                 const struct store_query *query,
                                 const struct store_statistics *read);
/* Sets err: the label that parameter names is not in the result, with possible reasons. Returns
 * ERR_INVALID. */
enum err_code query_fields_refuse_label(struct arena *arena, const char *parameter,
                                        const struct store_result *result, struct err *err);

#endif
