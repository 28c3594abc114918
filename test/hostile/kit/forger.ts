import { connect } from "node:net";
import { type Person, signsIn } from "./person.js";

/** The listener that waits for a callback, as the address to sign in at gives it away. */
export interface Target {
  readonly host: string;
  readonly port: number;
  /** What the right callback must carry. */
  readonly state: string;
}

export function targetOf(url: URL): Target {
  const redirect = new URL(url.searchParams.get("redirect_uri") ?? "");
  return { host: redirect.host, port: Number(redirect.port), state: url.searchParams.get("state") ?? "" };
}

/** Sends bytes to the listener and gives all that comes back. */
export function sendRaw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes, "latin1"));
    const parts: Buffer[] = [];
    socket.setTimeout(8000, () => socket.destroy());
    socket.on("data", (part) => parts.push(part));
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(Buffer.concat(parts).toString("latin1")));
  });
}

/** A request as a browser writes it, with whatever a case adds. */
export function request({ host }: Target, target: string, headers: readonly string[] = [], method = "GET"): string {
  return [`${method} ${target} HTTP/1.1`, `Host: ${host}`, ...headers, "", ""].join("\r\n");
}

/** Something that tries to slip a callback in, and then the user, whose login must still work. */
export function forged(attempts: (target: Target) => readonly string[]): Person {
  return async (url, kit) => {
    const target = targetOf(url);
    for (const bytes of attempts(target)) kit.pages.push(await sendRaw(target.port, bytes));
    await signsIn(url, kit);
  };
}
