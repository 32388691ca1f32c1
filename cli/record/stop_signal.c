#include "cli/record/stop_signal.h"

#include "cli/interrupt.h"
#include "lib/base/clock.h"

#include <stdint.h>

#define ONE_REQUEST_NS (CLOCK_NS_PER_S / 2)

static volatile sig_atomic_t is_interrupted;
static int64_t interrupted_ns; /* used by the handler only */

static void note_interrupt(int number)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (is_interrupted && number != SIGHUP && now_ns - interrupted_ns > ONE_REQUEST_NS)
        interrupt_end(number);
    if (!is_interrupted)
        interrupted_ns = now_ns;
    is_interrupted = 1;
}

void stop_signal_catch(struct stop_signal *ret_before)
{
    struct sigaction action = {.sa_handler = note_interrupt, .sa_flags = SA_RESTART}, before;
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGINT, &action, &ret_before->interrupt);
    sigaction(SIGTERM, &action, &ret_before->terminate);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* not under nohup */
        sigaction(SIGHUP, &action, NULL);
}

void stop_signal_release(const struct stop_signal *before)
{
    if (is_interrupted)
        return;
    sigaction(SIGINT, &before->interrupt, NULL);
    sigaction(SIGTERM, &before->terminate, NULL);
}

bool stop_signal_is_set(void)
{
    return is_interrupted;
}
