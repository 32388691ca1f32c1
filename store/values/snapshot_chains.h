/*
 * snapshot_chains: which earlier snapshot each snapshot of a counter continues.
 *
 * A counter never decreases while its process runs. Nevertheless a snapshot may have less than the
 * one before it in time without a restart: when the sender's clock is set back, the time of some
 * snapshots occurs twice, and two processes may send under the same labels. If each such decrease
 * were a restart, the whole counter would be added again and again. A chain is a sequence of
 * snapshots of one process and one setting of its clock.
 *
 * A snapshot continues the one before it if no stack has less. Otherwise it continues another one
 * of the SNAPSHOT_CHAINS_REACH snapshots before it, if two things are true; if there is none, the
 * process has restarted.
 *   - The counter grows steadily: no stack has less, the total grows by at most a quarter, and the
 *     same is true from the predecessor of that snapshot to it, or from this one to a later one.
 *   - The snapshots are too close for one sender: there are more of them than the interval of the
 *     chain, from that predecessor or to that later snapshot, allows. Without a predecessor, their
 *     distances must differ, too, as those of two senders do, unless the snapshot before this one
 *     is known to be of another chain.
 *
 * Example, totals of one stack; the clock is set back by 15 s after the third snapshot:
 *   time       90   100   105   110   115   125
 *   total     990  1000  1020  1010  1030  1040
 *   continues   -    90     -   100   105   115
 *
 * The second condition keeps crash loops apart, where each run begins with about the same number
 * (1000 1010 1020, 1003 1013 1023): each snapshot comes an interval after the one before. Processes
 * that begin under the same labels at once count as restarts until they grow steadily.
 *
 * Private to store/.
 */
#ifndef STORE_VALUES_SNAPSHOT_CHAINS_H
#define STORE_VALUES_SNAPSHOT_CHAINS_H

#include <stdbool.h>
#include <stdint.h>

struct counter_row;

enum { SNAPSHOT_CHAINS_REACH = 3 };

#define SNAPSHOT_CHAINS_NONE UINT32_MAX

struct snapshot_link {
    uint32_t before; /* the snapshot that this one continues, or SNAPSHOT_CHAINS_NONE */
    uint32_t after;  /* the snapshot that continues this one, or SNAPSHOT_CHAINS_NONE */
    bool restarted;  /* the process began after the snapshot before this one in time */
};

/*
 * Sets links[i] for each snapshot i < snapshot_count; times_ns are ascending and distinct. The
 * first snapshot of a chain has neither `before` nor `restarted`. Sorts the rows. Cost: sorting,
 * twice if anything decreases; a snapshot near a decrease costs a few passes over its rows.
 */
void snapshot_chains_find(struct counter_row *rows, uint64_t row_count, const int64_t *times_ns,
                          uint32_t snapshot_count, struct snapshot_link *links);

/* Bytes per snapshot that snapshot_chains_find uses, without links. */
enum { SNAPSHOT_CHAINS_BYTES = sizeof(uint64_t) + sizeof(int64_t) };

#endif
