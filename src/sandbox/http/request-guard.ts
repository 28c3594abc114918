import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { Refusal } from "./round-trip.js";

/** Whether a host to bind to can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/**
 * Makes the check that keeps web pages out: a page of any site can make a browser send requests to loopback, and with
 * DNS rebinding read the answers too, but it can neither choose the Host header nor hide its Origin.
 *
 * Bound to more than loopback, any numeric address is a good host: rebinding needs a name.
 */
export function hostGuard(host: string, port: number): (request: IncomingMessage) => void {
  const names = new Set(["localhost", isIP(host) === 6 ? `[${host}]` : host]);
  const suffix = port === 80 ? "" : `:${port}`;
  const isOurs = (authority: string) => {
    const written = authority.toLowerCase();
    const name = written.endsWith(`:${port}`)
      ? written.slice(0, -`:${port}`.length)
      : suffix === ""
        ? written
        : undefined;
    if (name === undefined) return false;
    return names.has(name) || (!isLoopback(host) && isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0);
  };
  return (request) => {
    const hosts = request.headersDistinct["host"] ?? [];
    if (hosts.length !== 1 || !isOurs(hosts[0] ?? "")) {
      throw new Refusal(403, "not_permitted", "the Host header does not name this sandbox");
    }
    for (const origin of request.headersDistinct["origin"] ?? []) {
      if (!origin.startsWith("http://") || !isOurs(origin.slice("http://".length))) {
        throw new Refusal(403, "not_permitted", "requests from other origins are refused");
      }
    }
  };
}

const CHALLENGE = { "www-authenticate": 'Bearer realm="sandbox"' } as const;

/** Checks the bearer token of a request. */
export function tokenGuard(token: string): (request: IncomingMessage) => void {
  const expected = digest(token);
  return (request) => {
    const values = request.headersDistinct["authorization"] ?? [];
    const [, given] = /^bearer +(\S+) *$/i.exec(values[0] ?? "") ?? [];
    if (values.length !== 1 || given === undefined) {
      throw new Refusal(401, "not_authenticated", "send one header Authorization: Bearer <API token>", CHALLENGE);
    }
    if (!timingSafeEqual(digest(given), expected)) {
      throw new Refusal(401, "bad_authtoken", "the token is not the one of this sandbox", CHALLENGE);
    }
  };
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
