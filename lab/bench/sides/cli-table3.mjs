// A table of all rows by cli-table3, rendered at once as in its documentation.
import Table from "cli-table3";
import { deviceOf } from "../devices.mjs";

const table = new Table({ head: ["id", "title", "status", "session_type", "last_seen", "city"] });
for (let index = 0; index < Number(process.argv[2]); index++) {
  const { id, title, status, session_type, last_seen } = deviceOf(index);
  table.push([id, title, status, session_type, new Date(last_seen.at * 1000).toISOString(), last_seen.city]);
}
process.stdout.write(`${table.toString()}\n`);
