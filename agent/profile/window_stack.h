/*
 * window_stack: converts the addresses of a sample to locations of a window's profile.
 *
 * A stack consists of, leaf first:
 *   - kernel frames: named here, without address. An off-CPU sample begins at __schedule, because
 *     the frames above it are those of our own BPF program.
 *   - user frames: in a binary by ELF address; in the vDSO and in JIT code by name.
 *   - interpreted frames, instead of the native frames that run them (stack_merge.h).
 * Example: kernel [ep_poll, do_syscall_64], native [epoll_wait, _PyEval_EvalFrameDefault, main],
 * interpreted [poll, run] in one group that the second native frame runs. The stack is ep_poll,
 * do_syscall_64, epoll_wait, poll, run, main.
 *
 * Locations that were found once are kept until the window ends. Threads: one.
 */
#ifndef AGENT_PROFILE_WINDOW_STACK_H
#define AGENT_PROFILE_WINDOW_STACK_H

#include <stdint.h>

struct process;
struct process_mapping;
struct sample_event;
struct window_builder;
struct window_code;
struct window_options;
struct window_stack;

/* All arguments are borrowed and outlive the object. */
struct window_stack *window_stack_create(const struct window_options *options,
                                         struct window_builder *builder, struct window_code *code);
void window_stack_destroy(struct window_stack *stack); /* NULL is a no-op */
/* The next window begins: forgets all locations and adds the kernel's mapping. */
void window_stack_begin(struct window_stack *stack);

/* The locations of a sample, leaf first, and their number, at least 1; good until the next call.
 * Sets the builder's owner, to whom the caller charges them (window_builder_charge). */
const uint32_t *window_stack_find(struct window_stack *stack, struct process *process,
                                  const struct sample_event *event, uint32_t *ret_depth);

/* The profile's mapping of the kernel; it is the first one. */
uint32_t window_stack_kernel_mapping(const struct window_stack *stack);
/* The profile's mapping for a mapping of a file. */
uint32_t window_stack_mapping(struct window_stack *stack, const struct process_mapping *mapping);

#endif
