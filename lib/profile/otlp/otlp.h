/*
 * otlp: what OpenTelemetry senders post to /v1development/profiles, as a batch, and the answers.
 *
 * An ExportProfilesServiceRequest (github.com/open-telemetry/opentelemetry-proto, package
 * opentelemetry.proto.profiles.v1development), in protobuf or JSON. Two layouts are in use that
 * number the fields of Sample differently, 1.8 and 1.9 against 1.10 and 1.11; a request does not
 * say which one it has. In JSON the names tell; in protobuf the wire types do, once for the whole
 * request: field 4 as bytes is 1.10's values; field 3 as bytes is 1.9's
 * attributes; what only 1.8 has (a profile id in field 8, a temporality) tells, too. Where
 * nothing does, as in requests of senders that pack no lists (async-profiler 4.6), the layout is
 * taken in which all indexes are of existing entries and all samples have values or timestamps; if
 * both are possible, 1.9 where packed field 2 comes with field 4, else 1.10.
 *
 * Series: labels are the attributes of resource and scope (text, integers, booleans and doubles,
 * not bytes or lists) and, of a sample's, those that the options name (text and booleans). Of one
 * attribute that several give, the sample's is taken before the profile's, the resource's and the
 * scope's. Labels have the names of lib/profile/batch/batch_labels.h, and go by its rule where one
 * resource, scope or sample has several that come to one name; names are cut at their limit,
 * values too: then they end in "#" and 16 digits of their SHA-256, so that those that begin alike
 * differ. Senders are not told of a value that is cut: a long command line is in every request of
 * its process, nobody can send it otherwise, and no series becomes another's. service_name is
 * always there, and no other attribute takes its place: the sample's service.name, else the
 * resource's, else "unknown_service", with ":" and the resource's process.executable.name where it
 * has one. All other attributes of samples stay with them.
 *
 * Types: "samples:count" with a period of "cpu:nanoseconds" becomes
 * process_cpu:cpu:nanoseconds:cpu:nanoseconds, values times period. All others keep their type; the
 * name is off_cpu for "off_cpu:nanoseconds", else by the rules of lib/profile/batch/batch_type.h,
 * and so is what may be added up over time. Values of one sample are added, and where there are
 * none each timestamp counts 1. Samples whose value is 0 are left out.
 *
 * A profile that is wrong in itself (an index to nothing, a message cut short, sums past 2^63, a
 * label's name or value that is no UTF-8, an attribute that is given twice) is dropped, counted and
 * named in the result, and so is one that uses a wrong entry of the dictionary; the others stay.
 * Decoding is two passes over the bytes, of which the first counts, so that arrays have their size
 * before they are filled. Threads: any; see tests/bench/bench_otlp.c for what it costs.
 */
#ifndef LIB_PROFILE_OTLP_OTLP_H
#define LIB_PROFILE_OTLP_OTLP_H

#include "lib/profile/batch/batch.h"
#include "lib/profile/batch/batch_labels.h"

enum otlp_encoding { OTLP_PROTOBUF, OTLP_JSON };

struct otlp_options {
    /* Attributes of samples that become labels of series, besides service.name; numbers never do,
     * nor those of levels and counters. Clean names (lib/profile/batch/batch_labels.h). */
    const struct span *series_attributes;
    size_t series_attribute_count;
    const struct profile_limits *limits;      /* NULL: all defaults */
    const struct batch_limits *series_limits; /* as above; its types and profiles are not used */
    int64_t now_ns;                           /* profiles that have no time ended then */
    bool is_raw_kept; /* raw in protobuf lives as long as the batch, which borrows its strings */
};

enum {
    OTLP_MESSAGE_BYTES = 2048,
    OTLP_REJECTED_SERVICES = 16,
    OTLP_SERVICE_BYTES = 256,
    OTLP_REASON_BYTES = 512
};

/* A service of which profiles were dropped; both texts may be cut short. */
struct otlp_rejected_service {
    char name[OTLP_SERVICE_BYTES];
    char reason[OTLP_REASON_BYTES]; /* of the first of them */
};

struct otlp_result {
    uint32_t profile_count; /* that were taken */
    uint32_t rejected_profiles;
    char message[OTLP_MESSAGE_BYTES]; /* what was dropped or left out, and why; "": nothing */
    /* The first ones. */
    struct otlp_rejected_service rejected_services[OTLP_REJECTED_SERVICES];
    uint32_t rejected_service_count;
};

/*
 * raw is needed until the return only, unless the options say that it is kept. options may be NULL.
 * The batch may be empty, when the request is or when all of it was dropped. *ret_result is set on
 * success only. Handles: ERR_INVALID (no such message), ERR_TOO_LARGE (limits; nothing was taken).
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

/* For senders: what a response or a Status in protobuf says. message has OTLP_MESSAGE_BYTES bytes
 * and is cut where it is longer. False when they are malformed. */
bool otlp_read_response(struct span body, uint64_t *ret_rejected, char *ret_message);
bool otlp_read_status(struct span body, char *ret_message);

#endif
