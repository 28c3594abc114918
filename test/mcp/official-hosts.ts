import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { Client as NewClient } from "@modelcontextprotocol/client";
import { StdioClientTransport as NewTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { BIN, collect } from "../helpers/cli.js";

/** What a host does for the server, and what it has received. */
const ANSWERS = {
  sample: { role: "assistant" as const, model: "none", content: { type: "text" as const, text: "sampled" } },
  elicit: { action: "accept" as const, content: { name: "bob" } },
  roots: { roots: [{ uri: "file:///work" }] },
};

const IDENTITY = { name: "host", version: "1" };
const CAPABILITIES = { sampling: {}, elicitation: {}, roots: { listChanged: true } };

/** An official client whose stdio transport has started `agentauth mcp proxy`. */
export interface OfficialHost {
  readonly client: Pick<
    NewClient,
    | "listTools"
    | "listResources"
    | "readResource"
    | "listResourceTemplates"
    | "subscribeResource"
    | "listPrompts"
    | "getPrompt"
    | "complete"
    | "setLoggingLevel"
    | "ping"
    | "getServerVersion"
    | "close"
  >;
  /** Calls a tool. */
  call(params: { name: string; arguments: Record<string, unknown> }, options: object): Promise<unknown>;
  /** Methods of the notifications that it has received. */
  readonly notified: string[];
  /** Messages for the user. */
  stderr(): string;
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>;
}

/** Starts a proxy from the official client of a generation. */
export type StartHost = (url: string, env: Record<string, string>) => Promise<OfficialHost>;

const parametersOf = (url: string, env: Record<string, string>) => ({
  command: process.execPath,
  args: [BIN, "mcp", "proxy", url],
  env,
  stderr: "pipe" as const,
});

const startOld: StartHost = async (url, env) => {
  const transport = new OldTransport(parametersOf(url, env));
  const client = new OldClient(IDENTITY, { capabilities: CAPABILITIES });
  const notified: string[] = [];
  client.setRequestHandler(CreateMessageRequestSchema, () => ANSWERS.sample);
  client.setRequestHandler(ElicitRequestSchema, () => ANSWERS.elicit);
  client.setRequestHandler(ListRootsRequestSchema, () => ANSWERS.roots);
  for (const schema of [
    LoggingMessageNotificationSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema,
  ]) {
    client.setNotificationHandler(schema, ({ method }) => void notified.push(method));
  }
  const connected = client.connect(transport as unknown as Parameters<OldClient["connect"]>[0]);
  const call: OfficialHost["call"] = (params, options) => client.callTool(params, undefined, options);
  return hostOf(client as unknown as OfficialHost["client"], { transport, notified, connected, call });
};

const startNew: StartHost = async (url, env) => {
  const transport = new NewTransport(parametersOf(url, env));
  const client = new NewClient(IDENTITY, { capabilities: CAPABILITIES });
  const notified: string[] = [];
  client.setRequestHandler("sampling/createMessage", () => ANSWERS.sample);
  client.setRequestHandler("elicitation/create", () => ANSWERS.elicit);
  client.setRequestHandler("roots/list", () => ANSWERS.roots);
  for (const method of [
    "notifications/message",
    "notifications/resources/updated",
    "notifications/tools/list_changed",
  ] as const) {
    client.setNotificationHandler(method, () => void notified.push(method));
  }
  const connected = client.connect(transport as unknown as Parameters<NewClient["connect"]>[0]);
  const call: OfficialHost["call"] = (params, options) => client.callTool(params, options);
  return hostOf(client, { transport, notified, connected, call });
};

interface Parts {
  transport: OldTransport | NewTransport;
  notified: string[];
  connected: Promise<void>;
  call: OfficialHost["call"];
}

async function hostOf(
  client: OfficialHost["client"],
  { transport, notified, connected, call }: Parts,
): Promise<OfficialHost> {
  const stderr = collect(transport.stderr as Readable);
  // The transport has no member for the exit code.
  const { _process: child } = transport as unknown as { _process: ChildProcess };
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  await connected;
  return { client, call, notified, stderr, exited };
}

/** The official clients of both generations. */
export const OFFICIAL_HOSTS: readonly [string, StartHost][] = [
  ["@modelcontextprotocol/sdk 1.x", startOld],
  ["@modelcontextprotocol/client 2.x", startNew],
];
