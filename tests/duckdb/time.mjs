// Runs SQL in DuckDB on one thread and prints, per statement, its rows and what the fastest of some
// runs cost: {"rows": …, "wall_ms": …, "cpu_ms": …}, a line of JSON each.
//   node time.mjs DATABASE RUNS STATEMENT…      DATABASE: a file, or :memory:
import { DuckDBInstance } from "@duckdb/node-api";

const [file, runs, ...statements] = process.argv.slice(2);
const instance = await DuckDBInstance.create(file, {
  threads: "1",
  memory_limit: "4GB",
});
const connection = await instance.connect();
for (const statement of statements) {
  let best;
  for (let i = 0; i < Number(runs); i++) {
    const cpu = process.cpuUsage();
    const start = performance.now();
    const reader = await connection.runAndReadAll(statement);
    const wall_ms = performance.now() - start;
    const used = process.cpuUsage(cpu);
    const cpu_ms = (used.user + used.system) / 1000;
    if (!best || cpu_ms < best.cpu_ms) best = { rows: reader.getRowsJson(), wall_ms, cpu_ms };
  }
  console.log(JSON.stringify(best));
}
instance.closeSync();
