/*
 * otlp_encode: a profile as an ExportProfilesServiceRequest of OpenTelemetry, layout 1.10, for
 * senders. lib/profile/otlp/otlp.h has the sources of the format.
 *
 * One profile may be of many resources: each sample names its own by a numeric label of the name
 * OTLP_RESOURCE_LABEL, an index of the resources given, and is sent below that; the dictionary is
 * one for all. Each value type of the profile is one of OTLP's profiles, with the samples that have
 * a value of it; the period is that of the first. Other labels become attributes of samples, build
 * ids the attribute process.executable.build_id.gnu of mappings, and what runs a location's frames
 * its attribute profile.frame.type, where its mapping tells. Strings are made UTF-8, as one byte
 * that is not has the whole batch refused; those of resources are the caller's to be. Threads: any.
 */
#ifndef LIB_PROFILE_OTLP_OTLP_ENCODE_H
#define LIB_PROFILE_OTLP_OTLP_ENCODE_H

#include "lib/profile/batch/batch_labels.h"
#include "lib/profile/profile.h"

#define OTLP_RESOURCE_LABEL "perfolio.resource"

struct otlp_resource {
    const struct batch_text_label *attributes; /* names of OpenTelemetry's */
    size_t attribute_count;
    /* So that the receiver can tell idle time from time in which nobody looked, profiles without
     * samples: of each value type with a bit here, where no sample of the resource has a value of
     * it; and of all types for a time before, where idle_duration_ns is above 0. */
    uint32_t idle_types;
    int64_t idle_time_ns;
    int64_t idle_duration_ns;
};

/*
 * Appends the message. Samples without the label are left out, and so are resources of which there
 * is no profile. Handles: ERR_TOO_LARGE (output's maximum), ERR_INVALID (a label names no
 * resource).
 */
enum err_code otlp_encode(const struct profile *profile, const struct otlp_resource *resources,
                          uint32_t resource_count, struct buf *output, struct err *err) MUST_USE;

#endif
