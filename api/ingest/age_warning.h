/*
 * age_warning: what the sender of old profiles should know, for the field Perfolio-Warning: they
 * may repeat batches whose ids were forgotten, and a rule of retention may already exclude them
 * from queries although they were accepted. Threads: any.
 */
#ifndef API_INGEST_AGE_WARNING_H
#define API_INGEST_AGE_WARNING_H

struct request;

/* The warning for the profiles that the request stored (request->may_repeat, request->oldest_ns),
 * in the request's arena; NULL: none. Reads the team's rules if a profile is older than an hour;
 * without a database it leaves that part out. */
const char *age_warning_text(struct request *request);

#endif
