// The user's browser, and every program that opens one (xdg-open, open): follows the redirects to the client's callback.
import { setTimeout as sleep } from "node:timers/promises";

const address = process.argv.at(-1);
const response = await open(100);
await response.text();
// The sandbox has redirected by then; a page of its own is an error of the login.
if (new URL(response.url).origin === new URL(address).origin) {
  process.stderr.write(`the login ended at ${response.url}, status ${response.status}\n`);
  process.exitCode = 1;
}

/** Tries again while the connection is refused: some clients listen for the callback only after they open the browser. */
async function open(attempts) {
  try {
    return await fetch(address);
  } catch (error) {
    if (error.cause?.code !== "ECONNREFUSED" || attempts === 1) throw error;
    await sleep(100);
    return open(attempts - 1);
  }
}
