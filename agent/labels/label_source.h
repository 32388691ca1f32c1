/*
 * label_source: what the labels of all processes are made from: the settings, the names of the
 * host, and facts about the programs, each of which is read once.
 *
 * process_labels reads the members; other folders only create and destroy a source. Threads: one.
 */
#ifndef AGENT_LABELS_LABEL_SOURCE_H
#define AGENT_LABELS_LABEL_SOURCE_H

#include "agent/labels/program_info.h"
#include "lib/base/buf.h"
#include "lib/profile/batch/batch_labels.h"

#include <stdint.h>
#include <sys/utsname.h>

struct arena;
struct binaries;
struct known_program;
struct pods;
struct process;
struct relabel_rules;

/* Settings for all processes; borrowed as long as the source lives. */
struct label_settings {
    const struct batch_text_label *external; /* override labels that were found */
    size_t external_count;
    const struct span *environment; /* names of environment variables */
    size_t environment_count;
    const struct relabel_rules *rules; /* NULL: none */
    struct pods *pods;                 /* NULL: pods are not read */
    const char *host_root;             /* NULL: the root of process 1 */
};

struct label_source {
    struct label_settings settings;
    const struct binaries *binaries;
    struct arena *arena;
    struct utsname host;
    struct span cpu_model;
    struct known_program *programs; /* indexed by the number of the binary */
    uint32_t program_count;
};

/* Creates a source, which contains the labels of the host and the program_info of each program.
 * settings NULL: none. */
struct label_source *label_source_create(const struct label_settings *settings,
                                         const struct binaries *binaries);
void label_source_destroy(struct label_source *source); /* NULL is a no-op */

/* Facts about the program that the process executes; it must have one. Valid until the next call.
 */
const struct program_info *label_source_program(struct label_source *source,
                                                const struct process *process);

#endif
