// A small program that keeps a CPU and the heap busy under Pyroscope's agent for Node, until it has
// sent its profiles: node profiled.mjs SERVER TOKEN SERVICE bearer|basic
import Pyroscope from "@pyroscope/nodejs";

const [serverAddress, token, appName, credentials] = process.argv.slice(2);
const kept = [];

function burnTime(milliseconds) {
  const end = performance.now() + milliseconds;
  let sum = 0;
  while (performance.now() < end) {
    for (let i = 0; i < 1e5; i++) sum += Math.sqrt(i);
  }
  return sum;
}

function keepMemory(count) {
  for (let i = 0; i < count; i++) kept.push(new Array(1000).fill(i));
}

Pyroscope.init({
  serverAddress,
  appName,
  tags: { region: "eu" },
  flushIntervalMs: 100, // stop() sends the last CPU profile, but no heap
  wall: { collectCpuTime: true, samplingIntervalMicros: 1000 },
  heap: { samplingIntervalBytes: 1 << 15 },
  ...(credentials === "basic"
    ? { basicAuthUser: "anyone", basicAuthPassword: token }
    : { authToken: token }),
});
Pyroscope.start();
keepMemory(2000);
for (let i = 0; i < 6; i++) {
  burnTime(60);
  await new Promise((resolve) => setTimeout(resolve));
}
await Pyroscope.stop();
console.log(kept.length);
