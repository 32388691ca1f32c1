/*
 * otlp: decodes OpenTelemetry requests to /v1development/profiles to a batch, and encodes the
 * responses.
 *
 * A request is an ExportProfilesServiceRequest (github.com/open-telemetry/opentelemetry-proto,
 * package opentelemetry.proto.profiles.v1development), in protobuf or JSON. Two layouts are in use
 * that number the fields of Sample differently: 1.8 and 1.9 against 1.10 and 1.11. A request does
 * not state its layout. In JSON the fields have names, so the numbers do not matter. In protobuf
 * the decoder determines the layout once for the whole request, first by wire types: field 4 as
 * bytes is 1.10's values; field 3 as bytes is 1.9's attributes; so are fields that only 1.8 has (a
 * profile id in field 8, a temporality). Requests of senders that pack no lists
 * (async-profiler 4.6) have none of these. Then the decoder uses the layout in which all indexes
 * refer to existing entries, no sample has two links and all samples have values or timestamps. If
 * both layouts are possible, it uses 1.9 if a sample has a field 4 and field 2 is always packed,
 * else 1.10.
 *
 * Series: labels are the attributes of resource and scope (text, integers, booleans and doubles,
 * not bytes or lists), and the attributes of samples that the options name (text and booleans). If
 * several sources give one attribute, the sample's takes precedence over the profile's, the
 * resource's and the scope's. Labels are named by lib/profile/batch/batch_labels.h, whose rule also
 * applies if one resource, scope or sample has several attributes with the same label name. Names
 * and values are truncated at their limit; a truncated value ends in "#" and 16 digits of its
 * SHA-256, so that different values stay different. Truncated values are not reported: a long
 * command line is in every request of its process, the sender cannot change it, and no series
 * becomes another's. service_name is always present, and no other attribute replaces it: its value
 * is the sample's service.name, else the profile's, the resource's or the scope's, else
 * "unknown_service", with ":" and process.executable.name if the resource or scope has one. All
 * other attributes of samples stay with the samples, except empty ones, bytes and lists.
 *
 * Types: "samples:count" with a period of "cpu:nanoseconds" becomes
 * process_cpu:cpu:nanoseconds:cpu:nanoseconds, values times period, unless the request has a
 * profile of cpu:nanoseconds of the same resource, time and duration: both count the same samples.
 * All other profiles keep their type. The name is off_cpu for the type "off_cpu"; all other names,
 * and the kind of values, follow lib/profile/batch/batch_type.h. The values of one sample are
 * added; without values each timestamp counts 1. Samples whose value is 0 are dropped.
 *
 * A profile with an error of its own (an index out of range, a truncated message, sums past 2^63, a
 * label name or value that is not UTF-8, an attribute that its resource or scope gives twice, or
 * that one of its samples gives twice if it becomes a label of the series) is dropped, counted and
 * named in the result, and so is one that uses an invalid entry of the dictionary; the others are
 * kept. If a sample gives another attribute twice, the first one is used. Decoding takes two passes
 * over the bytes; the first counts, so that arrays are allocated once. Threads: any;
 * tests/bench/bench_otlp.c measures the cost.
 */
#ifndef LIB_PROFILE_OTLP_OTLP_H
#define LIB_PROFILE_OTLP_OTLP_H

#include "lib/profile/batch/batch.h"
#include "lib/profile/batch/batch_labels.h"

struct buf;

enum otlp_encoding { OTLP_PROTOBUF, OTLP_JSON };

struct otlp_options {
    /* Attributes of samples that become labels of series, besides service.name: normalized names
     * (lib/profile/batch/batch_labels.h). Numbers never become labels of series, nor do attributes
     * of gauges and counters. */
    const struct span *series_attributes;
    size_t series_attribute_count;
    const struct profile_limits *limits;      /* NULL: all defaults */
    const struct batch_limits *series_limits; /* likewise; types and profiles are not used */
    int64_t now_ns; /* end of profiles that have neither a time nor timestamps */
    /* The caller keeps raw as long as the batch, which then borrows its strings. Ignored for JSON.
     */
    bool is_raw_kept;
};

enum {
    OTLP_MESSAGE_BYTES = 2048,
    OTLP_REJECTED_SERVICES = 16,
    OTLP_SERVICE_BYTES = 256,
    OTLP_REASON_BYTES = 512
};

/* A service of which profiles were dropped; both texts may be truncated. */
struct otlp_rejected_service {
    char name[OTLP_SERVICE_BYTES];
    char reason[OTLP_REASON_BYTES]; /* why the first of these profiles was dropped */
};

struct otlp_result {
    uint32_t profile_count; /* accepted profiles */
    uint32_t rejected_profiles;
    char message[OTLP_MESSAGE_BYTES]; /* what was dropped or left out, and why; "": nothing */
    /* Distinct by name; services after the first OTLP_REJECTED_SERVICES are left out. */
    struct otlp_rejected_service rejected_services[OTLP_REJECTED_SERVICES];
    uint32_t rejected_service_count;
};

/*
 * Decodes a request. raw is needed only during the call, unless is_raw_kept is set. options may be
 * NULL. The caller destroys *ret_batch, which has no profiles if the request has none or all were
 * dropped. *ret_result is set on success only. Errors: ERR_INVALID (not such a message),
 * ERR_TOO_LARGE (limits; nothing was accepted).
 */
enum err_code otlp_decode(struct span raw, enum otlp_encoding encoding,
                          const struct otlp_options *options, struct batch **ret_batch,
                          struct otlp_result *ret_result, struct err *err) MUST_USE;

/* Appends an ExportProfilesServiceResponse, the body of status 200. */
void otlp_write_response(enum otlp_encoding encoding, const struct otlp_result *result,
                         struct buf *body);

/* Appends a google.rpc.Status, the body of all other statuses. */
void otlp_write_status(enum otlp_encoding encoding, enum err_code code, const char *message,
                       struct buf *body);

/* For senders: parse the body of a response, or a Status, in protobuf. ret_message has
 * OTLP_MESSAGE_BYTES bytes; a longer text is truncated, an absent one is "". *ret_rejected is 0 if
 * nothing was rejected. Both return false if the body is malformed. */
bool otlp_read_response(struct span body, uint64_t *ret_rejected, char *ret_message);
bool otlp_read_status(struct span body, char *ret_message);

#endif
