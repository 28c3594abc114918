// The user's browser: browser.mjs <file of the peer> <row> <address>. Follows redirects with the cookies of each origin, up to
// the client's callback; a peer with a page of its own says what the user does there (`browse`).
import { once } from "node:events";
import { request } from "node:http";
import { request as requestByTls } from "node:https";
import { pathToFileURL } from "node:url";

/** A browser without pages. */
class Browser {
  #cookies = new Map();

  /** Opens an address, or submits a form there, and follows redirects. Returns the last address and its body. */
  async open(address, { method = "GET", headers = {}, body } = {}) {
    const url = new URL(address);
    const jar = this.#cookies.get(url.host) ?? new Map();
    this.#cookies.set(url.host, jar);
    const cookie = [...jar].map((pair) => pair.join("=")).join("; ");
    // Not by `fetch`, which says that a script sends it: servers answer a page with a redirect.
    const page = { accept: "text/html", "sec-fetch-mode": "navigate", "user-agent": "Mozilla/5.0" };
    // A host of this lab is on this machine, and its certificate is not this browser's matter.
    const lookup = (_host, { all }, done) =>
      all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);
    const send = url.protocol === "https:" ? requestByTls : request;
    const options = { method, lookup, rejectUnauthorized: false };
    const sent = send(url, { ...options, headers: { ...page, ...(cookie && { cookie }), ...headers } }).end(body);
    const [response] = await once(sent, "response");
    const text = (await response.setEncoding("utf8").toArray()).join("");
    for (const line of response.headers["set-cookie"] ?? []) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      jar.set(name, value);
    }
    console.log(`${method} ${url.href}: ${response.statusCode} ${text.slice(0, 300)}`);
    const { location } = response.headers;
    return location === undefined ? { url, text } : this.open(new URL(location, url));
  }
}

const [file, name, address] = process.argv.slice(2);
const { rows } = await import(pathToFileURL(file).href);
const { browse = (browser, url) => browser.open(url) } = rows.find((row) => row.name === name);
await browse(new Browser(), address);
