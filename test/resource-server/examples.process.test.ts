import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";
import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { build } from "esbuild";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { AgentClient } from "../../src/index.js";
import { memoryStore } from "../../src/store/index.js";
import { compileExample } from "../helpers/example.js";
import { TestLogin } from "../helpers/login.js";
import { memoryProvider } from "../helpers/official-client.js";
import { createService } from "./introspection-service.js";
import { listening } from "./listening.js";
import { type Signer, startSigner } from "./support.js";

const folder = fileURLToPath(new URL("../../examples/", import.meta.url));
let signer: Signer;
let resource: string;
/** What a login at the issuer may do; every scope that is asked for is given. */
const granted: string[] = [];

beforeEach(async () => {
  granted.length = 0;
  signer = await startSigner();
  resource = await freeAddress();
  const { issuer, sign } = signer;
  // Where the official clients look, who do not know the service's own form.
  issuer.routes["/.well-known/oauth-authorization-server/pool"] = () => ({ json: issuer.metadata });
  let requested = new URLSearchParams();
  const authorize = issuer.routes["/pool/authorize"];
  issuer.routes["/pool/authorize"] = (request, nth) => {
    requested = new URL(request.url, issuer.origin).searchParams;
    if (typeof authorize !== "function") throw new Error("no route to authorize");
    return authorize(request, nth);
  };
  issuer.routes["/pool/token"] = async ({ body }) => {
    const aud = new URLSearchParams(body).get("resource");
    const scope = requested.get("scope") ?? "mcp";
    granted.push(scope);
    const iat = Math.floor(Date.now() / 1000);
    const token = await sign({ aud, scope, iat, exp: iat + 300 });
    return { json: { access_token: token, token_type: "Bearer", expires_in: 300, scope } };
  };
});

/** The address of an MCP server that is still to be started. */
async function freeAddress(): Promise<string> {
  const server = createServer();
  const origin = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return `${origin}/mcp`;
}

/** Starts an example, and waits until it listens. @returns everything that it says on stderr, so far */
async function start(name: string, env: Record<string, string> = {}): Promise<() => string> {
  const child = spawn(process.execPath, [await compileExample(name)], {
    cwd: folder,
    env: { PATH: process.env["PATH"], RESOURCE: resource, ISSUER: signer.issuer.issuer, ...env },
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill();
    await ended;
  });
  const [said] = await Promise.race([once(child.stdout.setEncoding("utf8"), "data"), ended.then(() => [errors])]);
  expect(said).toBe(`listening at ${resource}\n`);
  return () => errors;
}

/** Both official clients call each of these tools. @returns what the tools said */
async function callTools(fetch: AgentClient["fetch"], ...names: string[]): Promise<unknown[]> {
  const said: unknown[] = [];
  const url = new URL(resource);
  const newer = new NewClient({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await newer.connect(new NewTransport(url, { fetch }) as Parameters<NewClient["connect"]>[0]);
  for (const name of names) said.push((await newer.callTool({ name, arguments: {} })).content);
  await newer.close();
  const older = new OldClient({ name: "test", version: "1" });
  await older.connect(new OldTransport(url, { fetch }) as Parameters<OldClient["connect"]>[0]);
  for (const name of names) said.push((await older.callTool({ name, arguments: {} }))["content"]);
  await older.close();
  return said;
}

const text = (said: string) => [{ type: "text", text: said }];

/** A client that finds out by itself who issues tokens, and logs in. */
function newAgent(): AgentClient {
  return new AgentClient({ store: memoryStore(), login: new TestLogin() });
}

const EXAMPLES: Record<string, (name: string) => Promise<void>> = {
  async "resource-server-express.ts"(name) {
    const errors = await start(name);
    const agent = newAgent();
    const [whoami, report] = [text("alice by agent"), text("12 pools")];
    // The method itself, as it stands in the documentation of the transports.
    expect(await callTools(agent.fetch, "whoami", "report")).toEqual([whoami, report, whoami, report]);
    // The first login asked for what the challenge wanted, the second for what the tool wanted beside it.
    expect(granted).toEqual(["mcp", "mcp reports:read"]);
    const [missing, scope] = ["missing no Authorization header", 'scope the token lacks "reports:read"'];
    expect(errors()).toBe(`refused: ${missing}\nrefused: ${scope}\n`);
    const few = await signer.sign({ aud: resource, ...lasting() });
    const poor: typeof globalThis.fetch = (input, init) => fetch(input, withToken(init, few));
    await expect(callTools(poor, "report")).rejects.toThrow('Insufficient scope: required "mcp reports:read"');
    const bodies = ["{", JSON.stringify("x".repeat(200_000))];
    const sendBody = (body: string, token?: string) => {
      const init = { method: "POST", headers: { "content-type": "application/json" }, body };
      return fetch(resource, token === undefined ? init : withToken(init, token));
    };
    for (const [at, body] of bodies.entries()) {
      // The token is asked for before the body is parsed.
      expect((await sendBody(body)).status).toBe(401);
      const broken = await sendBody(body, few);
      expect([broken.status, await broken.json()]).toEqual([[400, 413][at], { error: "invalid_request" }]);
    }
    expect(errors()).toContain('failed: "request entity too large"\n');
  },

  async "resource-server-hono.ts"(name) {
    const lastingClaims = signer.claims({ aud: resource, ...lasting() });
    createService(signer, { "an-opaque-token": lastingClaims });
    const errors = await start(name, { CLIENT_ID: "rs", CLIENT_SECRET: "secret" });
    const send: typeof globalThis.fetch = (input, init) => fetch(input, withToken(init, "an-opaque-token"));
    expect(await callTools(send, "whoami")).toEqual([text("alice by agent"), text("alice by agent")]);
    expect(signer.issuer.to("/pool/introspect")).toHaveLength(1);
    expect((await fetch(resource, withToken({ method: "POST" }, "another"))).status).toBe(401);
    expect(errors()).toBe("");
  },

  async "resource-server-node.ts"(name) {
    const errors = await start(name);
    const claims = lasting();
    const response = await fetch(resource, withToken({}, await signer.sign({ aud: resource, ...claims })));
    expect(await response.json()).toEqual({
      subject: "alice",
      clientId: "agent",
      scopes: ["mcp"],
      expiresAt: claims.exp,
    });
    expect((await fetch(resource)).status).toBe(401);
    expect(errors()).toBe("");
  },

  async "resource-server-worker.ts"(name) {
    const worker = await loadWorker(`${folder}${name}`);
    const bindings = { RESOURCE: resource, ISSUER: signer.issuer.issuer };
    const send = (async (input: string | URL | Request, init?: RequestInit) =>
      worker.fetch(new Request(input, init), bindings)) as typeof globalThis.fetch;
    const token = await signer.sign({ aud: resource, ...lasting() });
    const allowed: typeof globalThis.fetch = (input, init) => send(input, withToken(init, token));
    expect(await callTools(allowed, "whoami")).toEqual([text("alice by agent"), text("alice by agent")]);
    expect((await send(resource, { method: "POST" })).status).toBe(401);
    const metadata = await send(new URL("/.well-known/oauth-protected-resource/mcp", resource));
    expect(await metadata.json()).toMatchObject({ resource, authorization_servers: [signer.issuer.issuer] });
  },
};

/** Claims by the clock of the machine, which the examples go by. */
function lasting(): { iat: number; exp: number } {
  const iat = Math.floor(Date.now() / 1000);
  return { iat, exp: iat + 300 };
}

function withToken(init: RequestInit | undefined, token: string): RequestInit {
  const headers = new Headers(init?.headers);
  headers.set("authorization", `Bearer ${token}`);
  return { ...init, headers };
}

const OF_THE_WEB = [
  ...[
    "AbortController",
    "AbortSignal",
    "Blob",
    "CryptoKey",
    "DOMException",
    "Event",
    "EventTarget",
    "FormData",
    "Headers",
  ],
  ...["ReadableStream", "Request", "Response", "TextDecoder", "TextDecoderStream", "TextEncoder", "TransformStream"],
  ...["URL", "URLSearchParams", "Uint8Array", "WritableStream", "atob", "btoa", "clearInterval", "clearTimeout"],
  ...["console", "crypto", "fetch", "performance", "queueMicrotask", "setInterval", "setTimeout", "structuredClone"],
];

interface Worker {
  fetch(request: Request, bindings: Record<string, string>): Promise<Response>;
}

/** Bundles a worker as one for no platform in particular, and runs it where there is nothing but what the web has. */
async function loadWorker(path: string): Promise<Worker> {
  const { outputFiles } = await build({
    entryPoints: [path],
    bundle: true,
    write: false,
    platform: "browser",
    conditions: ["worker"],
    format: "iife",
    globalName: "worker",
    logLevel: "silent",
  });
  const context = createContext(Object.fromEntries(OF_THE_WEB.map((name) => [name, Reflect.get(globalThis, name)])));
  runInContext(outputFiles[0]?.text ?? "", context);
  return runInContext("worker.default", context) as Worker;
}

describe("the official clients, left to themselves,", () => {
  /** Connects, logs in as the client wants it, and connects again. */
  async function logIn<T extends { finishAuth(code: string): Promise<void> }>(
    makeTransport: (authProvider: ReturnType<typeof memoryProvider>) => T,
    connect: (transport: T) => Promise<void>,
  ): Promise<void> {
    const provider = memoryProvider();
    const first = makeTransport(provider);
    await expect(connect(first)).rejects.toThrow(/Unauthorized/);
    const response = await fetch(provider.authorizationUrl ?? "", { redirect: "manual" });
    await first.finishAuth(new URL(response.headers.get("location") ?? "").searchParams.get("code") ?? "");
    await connect(makeTransport(provider));
  }

  it("find their way from the challenge of the Express example to its tools", async () => {
    await start("resource-server-express.ts");
    const url = new URL(resource);
    const newer = () => new NewClient({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
    let client = newer();
    await logIn(
      (authProvider) => new NewTransport(url, { authProvider: authProvider as never }),
      (transport) => {
        client = newer();
        return client.connect(transport as Parameters<NewClient["connect"]>[0]);
      },
    );
    expect((await client.callTool({ name: "whoami", arguments: {} })).content).toEqual(text("alice by agent"));
    await client.close();
    let older = new OldClient({ name: "test", version: "1" });
    await logIn(
      (authProvider) => new OldTransport(url, { authProvider }),
      (transport) => {
        older = new OldClient({ name: "test", version: "1" });
        return older.connect(transport as Parameters<OldClient["connect"]>[0]);
      },
    );
    expect((await older.callTool({ name: "whoami", arguments: {} }))["content"]).toEqual(text("alice by agent"));
    await older.close();
    expect(granted).toEqual(["mcp", "mcp"]);
  });
});

describe("the examples of resource servers", () => {
  it("are all run here", async () => {
    const names = (await readdir(folder)).filter((name) => name.startsWith("resource-server-"));
    expect(names.toSorted()).toEqual(Object.keys(EXAMPLES).toSorted());
  });

  it.each(Object.entries(EXAMPLES))("%s does what it says", (name, check) => check(name));
});
