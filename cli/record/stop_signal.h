/*
 * stop_signal: Ctrl-C and other signals that end a recording, so that its profile is still written.
 *
 * The first request ends the recording, a second one the process. Two signals within half a second
 * are one request: timeout(1) signals this process and then its process group, and the end of a
 * session sends SIGTERM and SIGHUP. SIGHUP alone never ends the process; the terminal is gone, but
 * the profile is still written. Threads: one; the state is that of the process.
 */
#ifndef CLI_RECORD_STOP_SIGNAL_H
#define CLI_RECORD_STOP_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/* The handlers of SIGINT and SIGTERM before stop_signal_catch. */
struct stop_signal {
    struct sigaction interrupt;
    struct sigaction terminate;
};

void stop_signal_catch(struct stop_signal *ret_before);
/* Restores the handlers of SIGINT and SIGTERM, unless a signal ended the recording: the second
 * signal of the same request may still arrive. SIGHUP stays caught, so that it does not
 * end the process while the profile is written. */
void stop_signal_release(const struct stop_signal *before);
/* Whether a signal has arrived. */
bool stop_signal_is_set(void);

#endif
