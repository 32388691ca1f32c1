/*
 * process_attachments: frees and inherits the data that modules above agent/process keep in struct
 * process for the program that it executes: labels, JIT symbols, interpreter.
 *
 * agent/process may not call these modules, so these two functions are the callbacks on_program_end
 * and on_fork of processes_options. context is not used. One thread.
 */
#ifndef AGENT_PROCESS_ATTACHMENTS_H
#define AGENT_PROCESS_ATTACHMENTS_H

struct process;

/* Frees the attachments: the process executes another program, or is about to be freed. */
void process_attachments_release(void *context, struct process *process);
/* Gives a forked child the interpreter of its parent. */
void process_attachments_inherit(void *context, struct process *child,
                                 const struct process *parent);

#endif
