#include "store/values/interleaving.h"

/* Two senders have a factor of 2. The bounds are lower, and few snapshots prove nothing, because
 * the first profile of a sender is often shorter or longer than the others. */
enum { COUNT_MIN = 6 };
#define EXCESS 1.4

void interleaving_add(struct interleaving *interleaving, int64_t duration_ns)
{
    interleaving->duration_ns += duration_ns > 0 ? (double)duration_ns : 0;
    interleaving->count++;
}

bool interleaving_is_found(const struct interleaving *interleaving, const int64_t *times_ns,
                           uint32_t count)
{
    if (count < COUNT_MIN)
        return false;
    const double mean_ns = interleaving->duration_ns / (double)interleaving->count;
    const double span_ns = (double)times_ns[count - 1] - (double)times_ns[0];
    return mean_ns * (count - 1) > EXCESS * span_ns;
}
