/*
 * relative_cost: the cost of work as a multiple of a reference loop that is measured in the same
 * run. The ratio depends little on the machine's speed and load. Benchmarks use it. Tests assert at
 * most a CPU time that only an algorithm of the wrong order reaches.
 */

/** CPU time of a call in ms. Wall time would include other processes' work. */
export function cpuMs(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const median = (all: readonly number[]) => [...all].sort((a, b) => a - b)[all.length >> 1];

const table = Uint32Array.from(
  { length: 1 << 20 },
  (_, i) => (Math.imul(i, 2654435761) ^ (i << 7)) >>> 0,
);
let kept = 0;

/**
 * The reference loop: dependent reads of a 4 MiB table, larger than the first-level caches, as the
 * columns of a large tree are. It takes 3.4 ms on the machine where the goals were set.
 */
function referenceLoop(): void {
  let at = 1;
  for (let i = 0; i < 1 << 20; i++) at = (table[at & 0xfffff] + at) >>> 0;
  kept ^= at;
}

/** The median cost of count calls of run, in reference loops. */
export function relativeCost(count: number, run: (i: number) => void): number {
  referenceLoop();
  const costs = Array.from({ length: count }, (_, i) => {
    const reference = cpuMs(referenceLoop);
    return cpuMs(() => run(i)) / reference;
  });
  return median(costs);
}

/**
 * Prints one row: the cost, the goal, and whether it is met. A missed goal does not fail: machines
 * differ.
 */
export function printCost(name: string, cost: number, goal: number): void {
  console.log(
    `${name.padEnd(64)} ${cost.toFixed(2).padStart(8)} ${goal.toFixed(0).padStart(6)}  ` +
      (cost < goal ? "met" : "MISSED"),
  );
}
