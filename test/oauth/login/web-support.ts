import type { AgentClient } from "../../../src/oauth/agent.js";
import type { StartedLogin } from "../../../src/oauth/login/web-app.js";

export const REDIRECT_URI = "https://app.example/oauth/callback";
export const SECRET = "0123456789abcdef0123456789abcdef";

/** The `Cookie` header of a browser that got `Set-Cookie` headers. */
export function cookieHeader(...set: readonly string[]): string {
  return set.map((one) => one.split(";")[0]).join("; ");
}

/** Sends the browser to the issuer, and returns the address that it redirects to. */
export async function consent(url: string): Promise<URL> {
  const response = await fetch(url, { redirect: "manual" });
  return new URL(response.headers.get("location") ?? "");
}

/** A login that was started, with the callback that the browser is redirected to. */
export interface Callback extends StartedLogin {
  /** The address of the callback. */
  address: URL;
  /** The request of the browser. */
  request: Request;
}

/** Starts a login and sends the browser through it. */
export async function browse(
  agent: AgentClient,
  server: string,
  options: Partial<Parameters<AgentClient["startLogin"]>[1]> = {},
): Promise<Callback> {
  return visit(await agent.startLogin(server, { redirectUri: REDIRECT_URI, ...options }));
}

/** Sends the browser through a login that was started. */
export async function visit(login: StartedLogin): Promise<Callback> {
  const address = await consent(login.url);
  return { ...login, address, request: new Request(address, { headers: { cookie: cookieHeader(login.cookie) } }) };
}
