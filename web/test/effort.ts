/* effort: what work costs beside a loop that is measured in the same run, so that neither a slow machine nor a busy one changes the answer. */

/** Processor time of a call in ms: wall time would measure the machine's other work. */
function cpuMs(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const median = (all: readonly number[]) => [...all].sort((a, b) => a - b)[all.length >> 1];

const table = Uint32Array.from({ length: 1 << 20 }, (_, i) => (Math.imul(i, 2654435761) ^ (i << 7)) >>> 0);
let kept = 0;

/** A walk over a table that is larger than what is nearest to the processor, as a tree's columns are. */
function walk(): void {
  let at = 1;
  for (let i = 0; i < 1 << 20; i++) at = (table[at & 0xfffff] + at) >>> 0;
  kept ^= at;
}

/** What a call of run costs in walks, the median of count calls; one walk takes 3.4 ms where the limits were measured. Other work only ever adds to it, so what is above the limit is measured again, up to five times. */
export function effort(count: number, limit: number, run: (i: number) => void): number {
  let least = Infinity;
  for (let round = 0; round < 5 && least >= limit; round++) {
    walk();
    const costs = Array.from({ length: count }, (_, i) => {
      const reference = cpuMs(walk);
      return cpuMs(() => run(i)) / reference;
    });
    least = Math.min(least, median(costs));
  }
  return least;
}
