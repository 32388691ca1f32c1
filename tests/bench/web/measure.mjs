// CPU time, memory and bytes of a browser and of servers, read from /proc and from the browser.
import { readdirSync, readFileSync } from "node:fs";

const tickMs = 10; // USER_HZ is 100 on every Linux
/** The time without work after which the page is quiet, and the work that is ignored. */
const quietMs = 450;
const sampleMs = 25;
const idleShare = 0.06;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // the process or thread has ended
  }
}

function fieldsOf(pid) {
  const text = read(`/proc/${pid}/stat`);
  return text ? text.slice(text.lastIndexOf(")") + 2).split(" ") : null;
}

/** A process and its descendants. */
export class Processes {
  constructor(rootPid) {
    this.rootPid = rootPid;
  }

  pids() {
    const children = new Map();
    for (const name of readdirSync("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const parent = Number(fieldsOf(name)?.[1] ?? 0);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    }
    const all = [this.rootPid];
    for (let i = 0; i < all.length; i++) all.push(...(children.get(all[i]) ?? []));
    return all;
  }

  /** User and system time since their start, including children that have ended. */
  cpuSeconds() {
    let ms = 0;
    for (const pid of this.pids()) {
      const fields = fieldsOf(pid);
      if (fields) for (const i of [11, 12, 13, 14]) ms += Number(fields[i]) * tickMs;
    }
    return ms / 1000;
  }

  /** Fixes the set of processes for fine(), so that reading is cheap. */
  hold() {
    this.held = this.pids();
    return this;
  }

  /**
   * The time in ms that their threads ran and waited for a CPU; exact, but ended threads are
   * missing.
   */
  fine() {
    const sum = { ran: 0, waited: 0 };
    for (const pid of this.held) {
      let threads = [];
      try {
        threads = readdirSync(`/proc/${pid}/task`);
      } catch {
        continue;
      }
      for (const thread of threads) {
        const [ran, waited] = read(`/proc/${pid}/task/${thread}/schedstat`).split(" ");
        sum.ran += Number(ran || 0) / 1e6;
        sum.waited += Number(waited || 0) / 1e6;
      }
    }
    return sum;
  }

  /** For the largest renderer, in MiB. */
  rendererMemory() {
    const renderers = this.pids().filter((pid) =>
      read(`/proc/${pid}/cmdline`).includes("--type=renderer"),
    );
    const value = (pid, key) =>
      Number(
        new RegExp(`^${key}:\\s+(\\d+)`, "m").exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0,
      ) / 1024;
    const all = renderers.map((pid) => ({
      pss: value(pid, "Pss"),
      rss: value(pid, "Rss"),
    }));
    return all.sort((a, b) => b.rss - a.rss)[0];
  }
}

/** The cost of `act` until everything is quiet: CPU of all processes and wall time, in ms. */
export async function costUntilQuiet(processes, act, limitMs) {
  processes.hold();
  const before = processes.fine();
  const begun = performance.now();
  await act();
  let [last, lastAt] = [processes.fine(), performance.now()];
  let [busyUntil, ran] = [lastAt, last.ran - before.ran];
  while (performance.now() - busyUntil < quietMs) {
    if (performance.now() - begun > limitMs) throw new Error(`not done after ${limitMs / 1000} s`);
    await pause(sampleMs);
    const [now, at] = [processes.fine(), performance.now()];
    // A thread that constantly waits for a CPU is not idle; on a busy host every thread waits a
    // little.
    if (
      now.ran - last.ran > idleShare * (at - lastAt) ||
      now.waited - last.waited > 0.9 * (at - lastAt)
    ) {
      busyUntil = at;
      ran = now.ran - before.ran;
    }
    [last, lastAt] = [now, at];
  }
  return { cpuMs: ran, wallMs: busyUntil - begun };
}

export const twoFrames = (page) =>
  page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  );

/** If frames are slow, as many as fit into this time are enough. */
const framesWallMs = 12_000;

/** CPU in ms of each step until two frames later, minus the cost of two frames without a step. */
export async function frameCosts(page, processes, steps, step) {
  processes.hold();
  const costs = async (count, act) => {
    const all = [];
    const begun = performance.now();
    for (let i = 0; i < count && (i < 5 || performance.now() - begun < framesWallMs); i++) {
      const before = processes.fine().ran;
      await act(i);
      await twoFrames(page);
      all.push(processes.fine().ran - before);
    }
    return all.sort((a, b) => a - b);
  };
  await twoFrames(page);
  const idle = percentile(await costs(15, async () => undefined), 0.5);
  return (await costs(steps, step)).map((cost) => Math.max(0, cost - idle));
}

export function percentile(sorted, share) {
  return sorted.length
    ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
    : NaN;
}

export function median(values) {
  const known = values.filter((value) => Number.isFinite(value)).sort((a, b) => a - b);
  if (!known.length) return NaN;
  const middle = known.length >> 1;
  return known.length % 2 ? known[middle] : (known[middle - 1] + known[middle]) / 2;
}

/** Counts the bytes on the wire from now on. */
export async function countBytes(session) {
  const counted = { bytes: 0 };
  await session.send("Network.enable", {
    maxTotalBufferSize: 0,
    maxResourceBufferSize: 0,
  });
  session.on("Network.loadingFinished", (event) => (counted.bytes += event.encodedDataLength));
  return counted;
}

/** MiB in use on the page's heap, and in buffers outside it. */
export async function heapMemory(session) {
  await session.send("HeapProfiler.enable");
  await session.send("HeapProfiler.collectGarbage");
  const usage = await session.send("Runtime.getHeapUsage");
  await session.send("HeapProfiler.disable");
  const mib = (bytes) => (bytes ?? 0) / 1048576;
  return { heap: mib(usage.usedSize), buffers: mib(usage.backingStorageSize) };
}
