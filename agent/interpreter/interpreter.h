/*
 * interpreter: programs that are run by another program: frames of their functions, read in the
 * kernel (bpf/interpreter.bpf.h) and named here.
 *
 * A kind of interpreter says of a mapped file whether it is one (detect), of a process how its
 * frames lie in memory (attach), and of a frame what function it is (find_name). The kinds are
 * cpython and ruby (agent/interpreter/cpython.h, agent/interpreter/ruby.h); others come beside
 * them. A process is noted when its mappings change; an interpreter that is still starting is tried
 * again, more and more seldom. What is refused has a reason, counted by kind: its stacks are those
 * of the machine alone.
 *
 * Everything in the memory of a process is a stranger's words: it is checked, and bounded.
 * Threads: one.
 */
#ifndef AGENT_INTERPRETER_INTERPRETER_H
#define AGENT_INTERPRETER_INTERPRETER_H

#include "agent/interpreter/code_budget.h"
#include "bpf/interpreter_format.h"
#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct binaries;
struct elf_exports;
struct interpreter;
struct interpreters;
struct process;

enum interpreter_outcome {
    INTERPRETER_READY,
    INTERPRETER_NOT_YET,         /* it starts, or runs no function; to be tried again */
    INTERPRETER_REFUSED_VERSION, /* its layout is not known here */
    INTERPRETER_REFUSED_BUILD,   /* of a kind that lies in memory in another way */
    INTERPRETER_REFUSED_LAYOUT,  /* its memory is not as its version says */
    INTERPRETER_REFUSED_THREADS, /* where its threads keep their state is not known (musl) */
    INTERPRETER_OUTCOME_COUNT
};

/* What a kind knows of a file; addresses as the file has them. */
struct interpreter_file {
    const struct interpreter_kind *kind; /* NULL: no interpreter */
    uint32_t version;                    /* major << 8 | minor; 0: not known */
    uint64_t runtime;                    /* the state of all, or what points to it */
    uint64_t shared_state; /* what points to the state of the thread that runs; 0: it has none */
    uint64_t code_type;    /* what every code object points to; 0: not asked */
    uint64_t call_start;   /* the C function that runs frames */
    uint64_t call_bytes;
};

/* A process that has it, at address - bias. */
struct interpreter_target {
    const struct interpreter_file *file;
    uint64_t bias;
    uint32_t process_id;
    struct code_share share; /* for what is known of its functions */
};

/* Borrowed until the next call. */
struct interpreter_name {
    struct span function;
    struct span file;
    uint32_t first_line; /* 0: not known */
    uint32_t line;
};

struct interpreter_kind {
    const char *name; /* also as profile.frame.type of OpenTelemetry */
    const char *mapping;
    /* path: of the file. */
    bool (*detect)(const struct elf_exports *symbols, const char *path,
                   struct interpreter_file *ret_file);
    /* *ret_own is for the two below; on INTERPRETER_READY only. */
    enum interpreter_outcome (*attach)(const struct interpreter_target *target,
                                       struct interpreter_process *ret_process, void **ret_own);
    /* For a child, too, which has the same in its memory; destroyed as often as it was shared. */
    void *(*share)(void *own);
    /* False: to be left out. */
    bool (*find_name)(void *own, uint32_t process_id, const struct interpreted_frame *frame,
                      struct interpreter_name *ret_name);
    void (*destroy)(void *own);
};

struct interpreters_options {
    const struct binaries *binaries;
    uint64_t max_code_bytes; /* of memory, for what is known of functions; 0: 64 MiB */
    /* Its frames can be read from now on. */
    void (*on_ready)(void *context, struct process *process);
    void *context;
};

struct interpreters *interpreters_create(const struct interpreters_options *options);
void interpreters_destroy(struct interpreters *interpreters); /* NULL; after all processes */

/* A process has other mappings: is there an interpreter among them? */
void interpreters_note(struct interpreters *interpreters, struct process *process);
/* Tries those that wait. */
void interpreters_poll(struct interpreters *interpreters, int64_t now_ns);
/* timeout_ms, or less where one is to be tried before. */
int interpreters_timeout_ms(const struct interpreters *interpreters, int64_t now_ns,
                            int timeout_ms);

/* What a child has of its parent's at a fork; NULL: nothing yet. A child may end before anybody
 * could look at it: what its functions are called is then known from its parent. */
struct interpreter *interpreter_inherit(const struct interpreter *parent, struct process *child);
/* NULL is a no-op: the process ends or executes something else. */
void interpreter_destroy(struct interpreter *interpreter);
/* For the kernel program; zeros while there is nothing to read. NULL: none. */
struct interpreter_process interpreter_get(const struct interpreter *interpreter);
/* Of a program's life with its children's, never given again; 0 for NULL. */
uint64_t interpreter_serial(const struct interpreter *interpreter);
const char *interpreter_mapping(const struct interpreter *interpreter);
/* Does the C function that runs frames have this address? */
bool interpreter_is_call(const struct interpreter *interpreter, uint64_t address);
/* Can its frames be named? One that is still starting is tried again, where it is time for that: a
 * child has its parent's frames from its first moment on. False for NULL. */
bool interpreter_is_ready(struct interpreter *interpreter);
/* Of one that is ready. False: the frame is none of a function, and is left out. A function that is
 * gone has a name that says so. */
bool interpreter_find_name(struct interpreter *interpreter, const struct interpreted_frame *frame,
                           struct interpreter_name *ret_name);

enum { INTERPRETER_KINDS = 2 };

/* By kind and outcome; READY and NOT_YET: those that are so now, the others since the start. */
struct interpreter_counts {
    uint64_t outcomes[INTERPRETER_KINDS][INTERPRETER_OUTCOME_COUNT];
};
void interpreters_count(const struct interpreters *interpreters,
                        struct interpreter_counts *ret_counts);
const char *interpreter_kind_name(uint32_t kind);
/* "ready", "starting", "version", "build", "layout", "threads" */
const char *interpreter_outcome_name(enum interpreter_outcome outcome);
/* "2 cpython ready, 1 cpython refused: version"; empty when there is none. */
void interpreter_counts_append(const struct interpreter_counts *counts, struct buf *text);

#endif
