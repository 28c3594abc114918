import { connect } from "node:net";
import { logsIn, type User } from "./user.js";

/** The listener for the callback, as the login URL reveals it. */
export interface Target {
  readonly host: string;
  readonly port: number;
  /** The state of the valid callback. */
  readonly state: string;
}

export function targetOf(url: URL): Target {
  const redirect = new URL(url.searchParams.get("redirect_uri") ?? "");
  return { host: redirect.host, port: Number(redirect.port), state: url.searchParams.get("state") ?? "" };
}

/** Sends bytes to the listener and returns the response. */
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

/** A request as a browser sends it, with the headers of a case. */
export function request({ host }: Target, target: string, headers: readonly string[] = [], method = "GET"): string {
  return [`${method} ${target} HTTP/1.1`, `Host: ${host}`, ...headers, "", ""].join("\r\n");
}

/** Sends forged callbacks, then logs in as the user, which must succeed. */
export function forged(attempts: (target: Target) => readonly string[]): User {
  return async (url, kit) => {
    const target = targetOf(url);
    for (const bytes of attempts(target)) kit.pages.push(await sendRaw(target.port, bytes));
    await logsIn(url, kit);
  };
}
