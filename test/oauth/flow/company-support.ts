import { decodeJwt } from "jose";
import { test } from "vitest";
import { AgentClient, type AgentClientOptions } from "../../../src/oauth/agent.js";
import { type Sandbox, type SandboxMachine, startSandbox } from "../../../src/sandbox/index.js";
import { memoryStore } from "../../../src/store/memory.js";
import { TestLogin } from "../../helpers/login.js";

export const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
export const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";

/** The sandbox's clock, for a client. */
const clockOf = ({ clock }: Sandbox) => ({
  now: () => clock.now(),
  epoch: () => clock.now(),
  sleep: (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, Math.min(ms, 5))),
});

/** `fetch` with changed answers of token endpoints. */
export function altering(alter: (body: Record<string, unknown>, form: URLSearchParams) => Record<string, unknown>) {
  return async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const form = new URLSearchParams(await request.clone().text());
    const response = await fetch(request);
    if (!request.url.endsWith("/token") || !response.ok) return response;
    const body = alter((await response.json()) as Record<string, unknown>, form);
    return Response.json(body, { headers: { date: response.headers.get("date") ?? "" } });
  };
}

/** A JWT with other claims, whose signature is no longer right. */
export function forged(jwt: unknown, over: object): string {
  const [head = "", , signature = ""] = String(jwt).split(".");
  const body = Buffer.from(JSON.stringify({ ...decodeJwt(String(jwt)), ...over })).toString("base64url");
  return `${head}.${body}.${signature}`;
}

/** A company's identity provider and its two MCP servers in a sandbox, and a store. */
export const companySandboxTest = test
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("sandbox", async ({}, { onCleanup }) => {
    const sandbox = await startSandbox({ autoApprove: true, machineGrants: true, devices: 1 });
    onCleanup(() => sandbox.close());
    return sandbox;
  })
  .extend("machine", ({ sandbox }) => sandbox.machine as SandboxMachine)
  .extend("store", () => memoryStore());

/** The same with clients of one user. */
export const companyTest = companySandboxTest
  .extend("user", () => new TestLogin())
  .extend("agentWith", ({ sandbox, machine, store, user }) => {
    const { idp, workloadClient, issuer } = machine;
    return (options: Partial<AgentClientOptions> = {}) =>
      new AgentClient({
        store,
        clock: clockOf(sandbox),
        login: user,
        idp: { issuer: idp.issuer, clientId: idp.nativeClient.clientId },
        client: { clientId: workloadClient.clientId, issuer },
        ...options,
      });
  })
  .extend("agent", ({ agentWith }) => agentWith())
  /** The two MCP servers of the first pool. */
  .extend("servers", ({ sandbox }) => [sandbox.mcpUrl, `${sandbox.mcpUrl}/${sandbox.ids.pool}`] as const)
  /** The requests to the token endpoints: whose it is, the grant type, and the status. */
  .extend("tokenRequests", ({ sandbox }) => {
    return () =>
      sandbox.requests
        .filter(({ path }) => path.endsWith("/token"))
        .map(({ path, operation, status }) => `${path === "/idp/token" ? "idp" : "server"} ${operation} ${status}`);
  });
