import { connect } from "node:net";
import { it as base } from "vitest";
import type { ListEnvelope, SandboxDevice } from "../../src/sandbox/data/sample-device.js";
import type { ErrorEnvelope } from "../../src/sandbox/http/requests.js";
import { type Fault, type Sandbox, type SandboxOptions, startSandbox } from "../../src/sandbox/index.js";

interface SandboxFixtures {
  options: SandboxOptions;
  sandbox: Sandbox;
  start: (more?: SandboxOptions) => Promise<Sandbox>;
}

/** Tests with a sandbox each. */
export const it = base.extend<SandboxFixtures>({
  /** The options of the sandbox. */
  options: {},
  sandbox: async ({ options }, use) => {
    await using sandbox = await startSandbox(options);
    await use(sandbox);
  },
  /** Starts a sandbox with more options. */
  start: async ({ options }, use) => {
    const started: Sandbox[] = [];
    await use(async (more) => {
      const sandbox = await startSandbox({ ...options, ...more });
      started.push(sandbox);
      return sandbox;
    });
    await Promise.all(started.map((sandbox) => sandbox.close()));
  },
});

export interface ListParams {
  offset?: number | string;
  size?: number | string;
  field?: string;
  direction?: string;
}

/** The address of a list, deep objects as the service encodes them. */
export function listUrl(
  sandbox: Sandbox,
  path: string,
  scope: Record<string, string>,
  params: ListParams = {},
): string {
  const query = new URLSearchParams(scope);
  if (params.offset !== undefined) query.set("pagination[offset]", String(params.offset));
  if (params.size !== undefined) query.set("pagination[page_size]", String(params.size));
  if (params.field !== undefined) query.set("sorting[field]", params.field);
  if (params.direction !== undefined) query.set("sorting[direction]", params.direction);
  return `${sandbox.baseUrl}/api/v1/${path}?${query}`;
}

export function devicesUrl(sandbox: Sandbox, params: ListParams = {}): string {
  return listUrl(sandbox, "device", { pool_id: sandbox.ids.pool }, params);
}

export function ask(sandbox: Sandbox, url: string, init: RequestInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${sandbox.apiToken}`, ...(init.headers as Record<string, string>) };
  return fetch(url, { redirect: "manual", ...init, headers });
}

export async function devices(sandbox: Sandbox, params: ListParams = {}): Promise<ListEnvelope<SandboxDevice>> {
  const response = await ask(sandbox, devicesUrl(sandbox, params));
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as ListEnvelope<SandboxDevice>;
}

/** Status and error code of an answer. */
export async function failureOf(response: Response): Promise<[number, string]> {
  const body = (await response.json()) as ErrorEnvelope;
  if (body.status !== "error" || typeof body.message !== "string") throw new Error("not the service's error body");
  return [response.status, body.code];
}

/** Follows next_page_offset from the start; also the offsets that were asked for. */
export async function readAll(
  sandbox: Sandbox,
  params: ListParams = {},
): Promise<{ ids: string[]; offsets: number[] }> {
  const ids: string[] = [];
  const offsets: number[] = [];
  for (let offset: number | null = 0; offset !== null && offsets.length < 1000; ) {
    offsets.push(offset);
    const page: ListEnvelope<SandboxDevice> = await devices(sandbox, { ...params, offset });
    ids.push(...page.summaries.map(({ id }) => id));
    offset = page.pagination.next_page_offset;
  }
  return { ids, offsets };
}

/** Sends text over a socket of its own and returns all that comes back until the server ends it. */
export async function raw(sandbox: Sandbox, text: string): Promise<string> {
  const socket = connect(Number(new URL(sandbox.origin).port), "127.0.0.1");
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {});
  socket.write(text);
  await new Promise((resolve) => socket.once("close", resolve));
  return Buffer.concat(chunks).toString("utf8");
}

export async function withFault(sandbox: Sandbox, fault: Fault, params: ListParams = {}): Promise<Response> {
  sandbox.faults.clear();
  sandbox.faults.add(fault);
  return ask(sandbox, devicesUrl(sandbox, params));
}
