/*
 * otlp_encode: encodes a profile as an OpenTelemetry ExportProfilesServiceRequest, layout 1.10, for
 * senders. lib/profile/otlp/otlp.h lists the sources of the format.
 *
 * One profile may cover many resources: the numeric label OTLP_RESOURCE_LABEL of a sample is the
 * index of its resource; the dictionary is shared. For each resource, each value type of the
 * profile becomes a profile of OTLP, with the samples whose value of this type is not 0; only the
 * profile of the first type has the period. Other labels become attributes of samples, build ids
 * the attribute process.executable.build_id.gnu of mappings. The attribute profile.frame.type of a
 * location is the runtime of its frames, if the location's mapping identifies that. Strings of the
 * profile are converted to UTF-8, since one invalid byte would make a receiver refuse the whole
 * request; the strings of resources must be UTF-8. Threads: any.
 */
#ifndef LIB_PROFILE_OTLP_OTLP_ENCODE_H
#define LIB_PROFILE_OTLP_OTLP_ENCODE_H

#include "lib/profile/batch/batch_labels.h"
#include "lib/profile/profile.h"

struct buf;

#define OTLP_RESOURCE_LABEL "perfolio.resource"

struct otlp_resource {
    const struct batch_text_label *attributes; /* names of OpenTelemetry */
    size_t attribute_count;
    /* Profiles without samples let the receiver distinguish idle time from time without sampling.
     * Bit i of idle_types: send a profile of value type i also if no sample of the resource has a
     * value of this type. */
    uint32_t idle_types;
    /* If idle_duration_ns is above 0, each value type also gets a profile without samples that
     * begins at idle_time_ns (since 1970) and has this duration: an idle time before this profile.
     */
    int64_t idle_time_ns;
    int64_t idle_duration_ns;
};

/*
 * Appends the message. Samples without the label are left out, and so are resources without a
 * profile. Errors: ERR_TOO_LARGE (output's maximum), ERR_INVALID (a label is not the index of a
 * resource).
 */
enum err_code otlp_encode(const struct profile *profile, const struct otlp_resource *resources,
                          uint32_t resource_count, struct buf *output, struct err *err) MUST_USE;

#endif
