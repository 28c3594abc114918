import { vi } from "vitest";
import { type VaultOptions, type VaultUser, vaultHandler } from "../../src/vault/vault-handler.js";
import { FakeClock } from "../helpers/clock.js";
import { type Scene, startScene } from "../helpers/issuer.js";
import { consent, cookieHeader } from "../oauth/login/web-support.js";

export const ORIGIN = "https://app.example";
export const BASE_URL = `${ORIGIN}/vault`;
/** The headers that a browser sends with a request of a page of the platform. */
export const OWN_PAGE = { "sec-fetch-site": "same-origin", origin: ORIGIN };

/** Sends a request to a vault. */
export type Send = (path: string, init?: RequestInit) => Promise<Response>;

/** A vault with an MCP server to connect; the headers `user` and `tenant` name who sent a request. */
export interface VaultScene extends Scene {
  vault: ReturnType<typeof vaultHandler>;
  onError: ReturnType<typeof vi.fn>;
  send: Send;
  /** Sends JSON as a page of the platform does, by default for the user `ann`. */
  post(path: string, body: object, headers?: Record<string, string>): Promise<Response>;
  /** Connects the MCP server up to the request of the callback, which it sends. */
  connect(headers?: Record<string, string>, body?: object): Promise<Response>;
}

export async function startVault(
  options: Partial<VaultOptions> = {},
  agentOptions: Parameters<Scene["agent"]>[0] = {},
): Promise<VaultScene> {
  const scene = await startScene();
  const onError = vi.fn();
  const authenticate = ({ headers }: Request): VaultUser | undefined => {
    const [user, tenant] = [headers.get("user"), headers.get("tenant") ?? undefined];
    return user === null ? undefined : { user, tenant };
  };
  const { mcp } = scene;
  // The store says by the clock of the machine what is valid.
  const clock = new FakeClock(Date.now());
  const fixed = { authenticate, baseUrl: BASE_URL, servers: [mcp.url], onError, clock };
  // No user is at the computer of a platform.
  const vault = vaultHandler(scene.agent({ login: undefined, clock, ...agentOptions }), { ...fixed, ...options });
  const send: Send = (path, init = {}) => {
    const headers = { user: "ann", ...OWN_PAGE, ...(init.headers as Record<string, string>) };
    return vault.fetch(new Request(`${BASE_URL}${path}`, { ...init, headers }));
  };
  const post: VaultScene["post"] = (path, body, headers = {}) =>
    send(path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  return {
    ...scene,
    clock,
    vault,
    onError,
    send,
    post,
    connect: async (headers = {}, body = {}) => {
      const started = await post("/connect", { server: mcp.url, ...body }, headers);
      if (started.status !== 200) return started;
      const { url } = (await started.json()) as { url: string };
      const cookie = cookieHeader(...started.headers.getSetCookie());
      const callback = await consent(url);
      return send(`/callback${callback.search}`, {
        headers: { ...headers, cookie, "sec-fetch-site": "cross-site", origin: "" },
      });
    },
  };
}

/** The status and the code of a problem. */
export async function problemOf(response: Response): Promise<[status: number, code: unknown]> {
  const { code } = (await response.json()) as { code: unknown };
  return [response.status, code];
}
