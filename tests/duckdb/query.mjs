// Runs SQL in DuckDB and prints each response as a line of JSON: rows of arrays, whole numbers as
// texts. Statements are the arguments.
import { DuckDBInstance } from "@duckdb/node-api";

const instance = await DuckDBInstance.create(":memory:", { threads: "2" });
const connection = await instance.connect();
for (const statement of process.argv.slice(2)) {
  const reader = await connection.runAndReadAll(statement);
  console.log(JSON.stringify(reader.getRowsJson()));
}
