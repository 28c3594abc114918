import { readFileSync } from "node:fs";
import { AgentAuthError, errorMessage, usageError } from "../../../errors.js";
import { HttpRequest } from "../../../http/http-message.js";
import { isJsonObject, parseStrictJson } from "../../../http/strict-json.js";
import { createTransport } from "../../../http/transport.js";
import {
  forgetSandboxState,
  readSandboxState,
  removeSandboxState,
  type SandboxState,
  writeSandboxState,
} from "../../../profile/settings-file.js";
import { quote, shellWord } from "../../../redact.js";
import type { GlobalFlags } from "../../flags/global.js";
import { escapeJson } from "../../output/value.js";
import type { CommandContext } from "../../runtime/context.js";
import type { CommandRun } from "../../runtime/declaration.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";

type SandboxOptions = import("../../../sandbox/sandbox-settings.js").SandboxOptions;

/** The flags of `sandbox start`, which the sandbox has options of the same names for; a file has all others. */
const OPTIONS = [
  "port",
  "publicUrl",
  "devices",
  "seed",
  "autoApprove",
  "deviceFlow",
  "machineGrants",
] as const satisfies readonly (keyof SandboxOptions)[];

export interface SandboxCommandOptions
  extends Omit<GlobalFlags, "output">,
    Pick<SandboxOptions, (typeof OPTIONS)[number]> {
  output?: "text" | "json";
  json?: boolean;
  options?: string;
  faults: string[];
  clear?: boolean;
  change?: string;
}

/** The output of `sandbox start` (`ready`) and `sandbox status` (`running`) with `-o json`. */
interface PrintedSandbox extends Partial<Omit<SandboxState, "control_token" | "public_url">> {
  /** Printed by `sandbox start`. */
  ready?: true;
  /** Whether a sandbox is running; printed by `sandbox status`. All other fields are absent if none is. */
  running?: boolean;
}

/** The output of `sandbox machine`. */
interface MachineCredentials {
  /** The issuer that the clients are registered with, for --issuer. */
  issuer: string;
  /** A client for --grant client-credentials. */
  client_id: string;
  /** Its secret. */
  client_secret: string;
  /** A client that authenticates with a key instead of a secret. */
  key_client_id: string;
  /** Its private key, PEM. */
  private_key: string;
  /** The id of that key. */
  key_id: string;
  /** The client that the assertion is about. */
  workload_client_id: string;
  /** An assertion for --grant jwt-bearer. */
  assertion: string;
  /** The issuer of the sample identity provider, for login --idp. */
  idp_issuer: string;
  /** A public client of that provider, which is the workload client at the issuer. */
  idp_native_client_id: string;
  /** The token endpoint of the provider, for --grant id-jag. */
  idp_token_endpoint: string;
  /** A client of that provider. */
  idp_client_id: string;
  /** Its secret. */
  idp_client_secret: string;
  /** An ID token of that provider. */
  id_token: string;
}

export const SANDBOX_RUNS: Readonly<
  Record<"start" | "status" | "stop" | "fault" | "clock" | "machine", CommandRun<SandboxCommandOptions>>
> = {
  async start(options, context) {
    const home = context.home();
    const running = readSandboxState(home);
    // Another process may have the process ID of a killed sandbox.
    if (running && (await isHealthy(running, context)))
      throw usageError(
        `a sandbox is already running, at ${running.base_url} (process ${running.pid})`,
        "agentauth sandbox stop, or set another AGENTAUTH_HOME for a second one",
      );
    const { startSandbox } = await import("../../../sandbox/sandbox.js");
    const sandbox = await startSandbox({ ...(await givenOptions(options)), signal: context.signal });
    const state: SandboxState = {
      pid: process.pid,
      base_url: sandbox.origin,
      ...(sandbox.baseUrl !== sandbox.origin && { public_url: sandbox.baseUrl }),
      api_token: sandbox.apiToken,
      control_token: sandbox.controlToken,
      account_id: sandbox.ids.account,
      domain_id: sandbox.ids.domain,
      pool_id: sandbox.ids.pool,
      mcp_url: sandbox.mcpUrl,
    };
    try {
      writeSandboxState(home, state);
      await context.io.stdout.write(readyLine(state, options));
      context.io.say("in another terminal: agentauth devices list --profile sandbox (Ctrl-C stops the sandbox)");
      context.io.say(`or a token for its MCP server: agentauth token ${shellWord(sandbox.mcpUrl)} --profile sandbox`);
      await sandbox.closed;
    } finally {
      await sandbox.close();
      removeSandboxState(home, process.pid);
    }
    return undefined;
  },

  async status(options, context) {
    const state = readSandboxState(context.home());
    const healthy = state !== undefined && (await isHealthy(state, context));
    const printed: PrintedSandbox = { running: healthy, ...(healthy && toPrinted(state)) };
    if (wantsJson(options)) await context.io.stdout.write(`${JSON.stringify(printed)}\n`);
    else await context.io.stdout.write(healthy ? readyLine(state, options) : "no sandbox is running\n");
    return healthy ? EXIT_CODES.ok : EXIT_CODES.unavailable;
  },

  async stop(_options, context) {
    const home = context.home();
    const state = readSandboxState(home);
    if (!state || !(await isHealthy(state, context))) {
      forgetSandboxState(home);
      context.io.say("no sandbox is running");
      return undefined;
    }
    await control(state, "POST", "/_sandbox/shutdown", undefined, context);
    // Waits for the exit, so that the next sandbox can start on the same port.
    for (let waited = 0; waited < 3000 && readSandboxState(home) !== undefined; waited += 25)
      await new Promise((resolve) => setTimeout(resolve, 25));
    context.io.say("the sandbox has stopped");
    return undefined;
  },

  async clock(options, context) {
    const state = readSandboxState(context.home());
    if (!state) throw usageError("no sandbox is running", "agentauth sandbox start");
    const { change } = options;
    const body = change === undefined ? undefined : { advance_ms: parseAdvance(change) };
    const { now } = (await control(state, body ? "POST" : "GET", "/_sandbox/clock", body, context)) as { now: number };
    await context.io.stdout.write(`${new Date(now).toISOString()}\n`);
    return undefined;
  },

  async machine(_options, context) {
    const state = readSandboxState(context.home());
    const reply = state ? await control(state, "GET", "/_sandbox/machine", undefined, context) : {};
    const { machine } = reply as { machine?: MachineCredentials | null };
    if (!machine)
      throw usageError("no sandbox with machine grants is running", "agentauth sandbox start --machine-grants");
    await context.io.stdout.write(`${JSON.stringify(machine)}\n`);
    return undefined;
  },

  async fault(options, context) {
    const { FAULT_KINDS } = await import("../../../sandbox/faults/faults.js");
    const { parseFault } = await import("../../../sandbox/faults/check-fault.js");
    const faults = options.faults.map(parseFault);
    const state = readSandboxState(context.home());
    const kinds = () => {
      const rows = Object.entries(FAULT_KINDS).map(([kind, description]) => `  ${kind.padEnd(18)} ${description}`);
      return context.io.stdout.write(`Kinds of faults:\n${rows.join("\n")}\n`);
    };
    if (!state) {
      if (faults.length === 0 && !options.clear) return void (await kinds());
      throw usageError("no sandbox is running", "agentauth sandbox start");
    }
    if (options.clear) await control(state, "DELETE", "/_sandbox/faults", undefined, context);
    if (faults.length > 0) await control(state, "POST", "/_sandbox/faults", faults, context);
    if (faults.length === 0 && !options.clear) await kinds();
    const { faults: set } = (await control(state, "GET", "/_sandbox/faults", undefined, context)) as {
      faults: unknown[];
    };
    for (const fault of set) await context.io.stdout.write(`${escapeJson(JSON.stringify(fault))}\n`);
    return undefined;
  },
};

/** The options of the file, and in place of them those of the flags. */
async function givenOptions({ options: path, ...flags }: SandboxCommandOptions): Promise<SandboxOptions> {
  const parsedFlags = Object.fromEntries(
    OPTIONS.flatMap((name) => (flags[name] === undefined ? [] : [[name, flags[name]]])),
  );
  if (path === undefined) return parsedFlags;
  const { checkFileOptions } = await import("../../../sandbox/sandbox-settings.js");
  const from = `the file ${quote(path)}`;
  let content: unknown;
  try {
    content = parseStrictJson(readFileSync(path, "utf8"));
  } catch (error) {
    throw usageError(`${from} cannot be read: ${errorMessage(error)}`, "agentauth schema sandbox-options", error);
  }
  if (!isJsonObject(content)) throw usageError(`${from} is not a JSON object`, "agentauth schema sandbox-options");
  try {
    return { ...checkFileOptions(content, from), ...parsedFlags };
  } catch (error) {
    throw error instanceof TypeError ? usageError(error.message, "agentauth schema sandbox-options", error) : error;
  }
}

/** What is printed of a sandbox: its public address, where it has one. */
function toPrinted({ control_token: _, public_url: publicUrl, ...shown }: SandboxState): PrintedSandbox {
  return { ...shown, base_url: publicUrl ?? shown.base_url };
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `+1h`, `+30m`, `+90s` or `+2d`; the clock only moves forward. */
function parseAdvance(text: string): number {
  const found = /^\+(\d{1,6})([smhd])$/.exec(text);
  const unit = UNITS_MS[found?.[2] ?? ""];
  if (found && unit !== undefined) return Number(found[1]) * unit;
  throw usageError(
    `${quote(text)} is not a valid time step`,
    "use a time such as +90s, +30m, +1h or +2d; the clock only moves forward",
  );
}

function wantsJson(options: SandboxCommandOptions): boolean {
  return options.json === true || options.output === "json";
}

function readyLine(state: SandboxState, options: SandboxCommandOptions): string {
  const shown = toPrinted(state);
  if (wantsJson(options)) return `${JSON.stringify({ ready: true, ...shown } satisfies PrintedSandbox)}\n`;
  return `sandbox ready at ${shown.base_url} (account ${state.account_id}, domain ${state.domain_id}, pool ${state.pool_id}, MCP server ${state.mcp_url})\n`;
}

async function isHealthy(state: SandboxState, context: CommandContext): Promise<boolean> {
  const transport = createTransport({ maxRetries: 0, timeoutMs: 2000 });
  try {
    return (await transport(new HttpRequest(`${state.base_url}/health`), context.signal)).status === 200;
  } catch {
    return false;
  }
}

async function control(
  state: SandboxState,
  method: string,
  path: string,
  body: unknown,
  context: CommandContext,
): Promise<unknown> {
  context.redactor.add(state.control_token);
  const transport = createTransport({ maxRetries: 0, timeoutMs: 5000 });
  const reply = await transport(
    new HttpRequest(`${state.base_url}${path}`, {
      method,
      headers: { authorization: `Bearer ${state.control_token}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
    context.signal,
  );
  if (reply.response.ok) return parseStrictJson(reply.text);
  const reason = (reply.json as { message?: unknown } | undefined)?.message ?? `HTTP ${reply.status}`;
  throw new AgentAuthError("usage", `the sandbox rejected the request: ${quote(reason)}`, {
    class: "usage",
    status: reply.status,
  });
}
