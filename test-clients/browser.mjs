// The user's browser, and every program that opens one (xdg-open, open): follows the redirects to the client's callback.
const address = process.argv.at(-1);
const response = await fetch(address);
await response.text();
// The sandbox has redirected by then; a page of its own is an error of the login.
if (new URL(response.url).origin === new URL(address).origin) {
  process.stderr.write(`the login ended at ${response.url}, status ${response.status}\n`);
  process.exitCode = 1;
}
