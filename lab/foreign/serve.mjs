// Runs one row of a peer in a process of its own, with the Node of this lab: serve.mjs <file> <row>. Prints where it is, as
// JSON, and ends with its standard input.
import { pathToFileURL } from "node:url";
import { NotHere } from "./peer.mjs";

// What a peer prints is for a person; the runner reads one line.
const print = (found) => process.stdout.write(`${JSON.stringify(found)}\n`);
console.log = console.error;
console.info = console.error;

const [file, name] = process.argv.slice(2);
const { rows } = await import(pathToFileURL(file).href);
const row = rows.find((one) => one.name === name);
try {
  const { close, ...peer } = await row.start();
  print(peer);
  process.stdin.resume().on("end", async () => {
    await close();
    process.exit();
  });
} catch (error) {
  if (!(error instanceof NotHere)) throw error;
  print({ notHere: error.message });
}
