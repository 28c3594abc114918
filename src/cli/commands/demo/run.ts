import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ManagementClient } from "../../../api/client.js";
import { abortedError } from "../../../errors.js";
import type { HttpEvent } from "../../../http/buffered-response.js";
import { VERSION } from "../../../http/version.js";
import { terminalLogin } from "../../../login/terminal.js";
import { openMcp } from "../../../mcp/session.js";
import { AgentClient } from "../../../oauth/agent.js";
import { flagFor } from "../../../profile/login-settings.js";
import { MASK, shellWord } from "../../../redact.js";
import { type Sandbox, startSandbox } from "../../../sandbox/sandbox.js";
import { fileStore } from "../../../store/file/file.js";
import { readText } from "../../clients/http-error.js";
import type { ListFlags } from "../../flags/list.js";
import type { Io } from "../../io/io.js";
import { runList } from "../../listing/print-list.js";
import { LIST_KINDS, type ListKind } from "../../listing/scope.js";
import { isJqInstalled } from "../../output/jq.js";
import type { CommandContext } from "../../runtime/context.js";

const DEVICES = 1200;
/** The processes that share one login. */
const PROCESSES = 8;
/** Longer than any access token of the sandbox lives. */
const EXPIRED_MS = 2 * 3_600_000;

/** `demo`: starts the sandbox in this process, runs the main commands against it, and shows each step. */
export async function runDemo(_options: object, context: CommandContext): Promise<undefined> {
  // Its clock is late until the token has to expire, so that nothing lies in the future then.
  const now = () => Date.now() - EXPIRED_MS;
  const sandbox = await startSandbox({ devices: DEVICES, autoApprove: true, now, signal: context.signal });
  const home = mkdtempSync(join(tmpdir(), "agentauth-demo-"));
  try {
    await new Demo(sandbox, home, context).play();
  } finally {
    rmSync(home, { recursive: true, force: true });
    await sandbox.close();
  }
}

class Demo {
  readonly #sandbox: Sandbox;
  readonly #home: string;
  readonly #context: CommandContext;

  constructor(sandbox: Sandbox, home: string, context: CommandContext) {
    this.#sandbox = sandbox;
    this.#home = home;
    const { io } = context;
    // Messages for stderr go to stdout here, so that they appear between the tables.
    const narrate = (text: string) => void io.stdout.write(`${text}\n`).catch(() => {});
    const env = {
      ...io.env,
      AGENTAUTH_BASE_URL: sandbox.baseUrl,
      AGENTAUTH_API_TOKEN: sandbox.apiToken,
      AGENTAUTH_PROFILE: undefined,
      // The demo neither reads nor writes the user's settings.
      AGENTAUTH_HOME: home,
    };
    const quiet: Io = { ...io, env, say: narrate, warn: narrate, progress: () => ({ update() {}, stop() {} }) };
    this.#context = context.with({ io: quiet });
  }

  async play(): Promise<void> {
    const { ids, origin } = this.#sandbox;
    const { account, domain, pool } = ids;
    await this.#say(`A sandbox of the whole service now runs in this process, at ${origin}.`);
    await this.#say("Its data is sample data; nothing leaves this machine.");
    const agent = demoAgent(this.#home);
    await this.#logIn(agent);
    await this.#shareLogin(agent);
    await this.#list("The domains of an account", LIST_KINDS.domains, { account });
    await this.#list("The pools of a domain", LIST_KINDS.pools, { domain });
    await this.#list("A page of the devices of a pool", LIST_KINDS.devices, { pool, limit: 5 });
    await this.#list("Sorted by the service", LIST_KINDS.devices, { pool, sort: "last_seen:desc", limit: 5 });
    await this.#list("Filtered client-side", LIST_KINDS.devices, {
      pool,
      status: "revoked",
      sessionType: "mcp",
      limit: 5,
    });
    await this.#list("As a program reads it", LIST_KINDS.devices, {
      pool,
      limit: 2,
      output: "ndjson",
      ...(isJqInstalled() && { jq: "{id, title, at: .last_seen.at}" }),
    });
    await this.#surviveFaults(pool);
    await this.#logOut(agent, pool);
    await this.#showRequests();
    await this.#say(
      "\nThe sandbox has stopped. To continue with a sandbox of your own:\n  agentauth sandbox start\n  agentauth --help",
    );
  }

  async #say(text: string): Promise<void> {
    await this.#context.io.stdout.write(`${text}\n`);
  }

  async #title(title: string, command: string): Promise<void> {
    const { colors } = this.#context.io.stdout;
    await this.#say(`\n${colors.bold(`# ${title}`)}\n${colors.dim(`$ ${command}`)}`);
  }

  async #list(title: string, kind: ListKind, flags: ListFlags): Promise<void> {
    const args = Object.entries(flags).flatMap(([name, value]) => [
      name === "output" ? "-o" : flagFor(name),
      String(value),
    ]);
    const argv = [kind.noun, "list", ...args];
    await this.#title(title, `agentauth ${argv.map(shellWord).join(" ")}`);
    const options: ListFlags = { output: "table", ...flags };
    await runList(kind, options, this.#context.with({ argv, flags: options }));
  }

  /** Reads every device while the service fails in four ways, and counts those that are where the data has them. */
  async #surviveFaults(pool_id: string): Promise<void> {
    const { faults, data, baseUrl, apiToken } = this.#sandbox;
    await this.#say(`\n${this.#context.io.stdout.colors.bold("# Every device, while the service fails")}`);
    faults.add([
      { kind: "status", status: 503, path: "device", after: 2 },
      { kind: "status", status: 429, retryAfter: "1", path: "device", after: 5 },
      { kind: "reset-mid-body", path: "device", after: 9 },
      { kind: "truncated-json", path: "device", after: 13 },
    ]);
    const retries: HttpEvent[] = [];
    const service = new ManagementClient({
      baseUrl,
      token: apiToken,
      onEvent: (event) => event.type === "retry" && retries.push(event),
    });
    const { signal } = this.#context;
    let count = 0;
    let inOrder = 0;
    for await (const { id } of service.devices.list({ pool_id }, { concurrency: 4, signal }))
      if (id === data.device(pool_id, count++)?.id) inOrder++;
    const reasons = retries.map((event) => (event.type === "retry" ? event.reason : "")).join(", ");
    await this.#say(`Survived: ${reasons}.`);
    const all = data.deviceCount(pool_id);
    if (count !== all || inOrder !== all)
      throw new Error(`of ${all} devices, ${count} arrived, and ${inOrder} of them in order`);
    await this.#say(`${inOrder} of ${all} devices arrived in order, none twice, with four pages in flight.`);
  }

  /** Logs in at the sandbox's MCP server. */
  async #logIn({ client }: DemoAgent): Promise<void> {
    const { mcpUrl } = this.#sandbox;
    await this.#title("A token for a protected MCP server", `agentauth token ${shellWord(mcpUrl)}`);
    await this.#say("(a user would now log in with a browser; this sandbox approves the login itself)");
    const token = await client.token(mcpUrl, { signal: this.#context.signal });
    await this.#say(
      `${MASK}  for ${token.resource}, until ${token.expiresAt?.toISOString() ?? "the server refuses it"}`,
    );
  }

  /** Has several processes find the token expired at the same moment, and counts the refreshes. */
  async #shareLogin(agent: DemoAgent): Promise<void> {
    const { mcpUrl, clock, requests } = this.#sandbox;
    // Tests run the demo in a process that is not this program.
    const sharers = this.#context.program === undefined ? "clients" : "processes";
    await this.#title(
      `One login, ${PROCESSES} ${sharers}, and the token expires`,
      `agentauth mcp call ${shellWord(mcpUrl)} whoami`,
    );
    clock.advance(EXPIRED_MS);
    const tokenRequests = () => [...requests].filter(({ path }) => path.endsWith("/token")).length;
    const before = tokenRequests();
    const answers = await this.#callTogether(agent);
    const refreshes = tokenRequests() - before;
    await this.#say(answers[0] ?? "");
    if (refreshes !== 1) throw new Error(`${PROCESSES} ${sharers} sent ${refreshes} refreshes`);
    await this.#say(
      `${answers.length} of ${PROCESSES} ${sharers}, which share the login, were answered after 1 refresh.`,
    );
  }

  /** Calls a tool from processes, or from clients where no program is known to start. */
  #callTogether({ sharing }: DemoAgent): Promise<string[]> {
    const { mcpUrl } = this.#sandbox;
    const { program, signal } = this.#context;
    if (program !== undefined)
      return runTogether(PROCESSES, ["mcp", "call", mcpUrl, "whoami"], this.#home, { ...this.#context, program });
    return Promise.all(Array.from({ length: PROCESSES }, () => callWhoami(sharing(), mcpUrl, signal)));
  }

  /** Finds the agent among the devices, and logs out. */
  async #logOut({ client }: DemoAgent, pool: string): Promise<void> {
    const { mcpUrl } = this.#sandbox;
    await this.#list("The agent itself is now a device of the pool", LIST_KINDS.devices, {
      pool,
      title: `${DEMO_CLIENT}*`,
    });
    await this.#title("Logged out", `agentauth logout ${shellWord(mcpUrl)}`);
    const { revoked, expiresAt } = await client.disconnect(mcpUrl, { signal: this.#context.signal });
    await this.#say("The stored login is deleted.");
    if (revoked !== null) return;
    const until = expiresAt === undefined ? "" : `, at ${expiresAt.toISOString()}`;
    await this.#say(
      `The service has no endpoint to revoke tokens: the access token stays valid until it expires${until}.`,
    );
  }

  async #showRequests(): Promise<void> {
    const { requests } = this.#sandbox;
    await this.#say(`\n${this.#context.io.stdout.colors.bold("# What was requested")}`);
    const counts = new Map<string, number>();
    for (const { method, path, status } of requests) {
      const line = `${method} ${path}  ${status === 0 ? "reset" : status}`;
      counts.set(line, (counts.get(line) ?? 0) + 1);
    }
    for (const [line, times] of counts) await this.#say(`${String(times).padStart(4)}  ${line}`);
    await this.#say(`${String(requests.total).padStart(4)}  in total`);
  }
}

const DEMO_CLIENT = "agentauth demo";

/** A client whose user logs in through a "browser" that follows the redirects. */
interface DemoAgent {
  client: AgentClient;
  /** Another client with the same store. */
  sharing: () => AgentClient;
}

/** The demo's agent. @param home the folder of its login */
function demoAgent(home: string): DemoAgent {
  const login = terminalLogin({
    say: () => {},
    env: {},
    browser: "demo",
    openBrowser: async (url) => {
      await (await fetch(url)).text();
      return "opened";
    },
  });
  const store = fileStore(home);
  const sharing = () => new AgentClient({ store, login, clientName: DEMO_CLIENT });
  return { client: sharing(), sharing };
}

/** The answer of the MCP server's tool `whoami` for the agent's token. */
async function callWhoami(agent: AgentClient, mcpUrl: string, signal: AbortSignal): Promise<string> {
  const fetch: typeof globalThis.fetch = (input, init) => agent.fetch(input as string | URL | Request, init);
  const session = await openMcp(mcpUrl, { fetch, name: "agentauth", version: VERSION, signal });
  try {
    return readText(await session.call("whoami", {}, signal)).trimEnd();
  } finally {
    await session.close();
  }
}

/** What Node itself may need to start. */
const OF_NODE = /^(?:NODE_\w+|PATH|LD_LIBRARY_PATH|SystemRoot|windir|TEMP|TMP|TMPDIR)$/i;

/**
 * Runs the same command of this program in several processes at once.
 *
 * @param home the folder with the logins that they share; they get no settings and no proxy of the environment
 * @throws Error for a process that fails
 */
async function runTogether(
  count: number,
  args: readonly string[],
  home: string,
  { program, io, signal }: Pick<CommandContext, "io" | "signal"> & { program: readonly [string, string] },
): Promise<string[]> {
  const env = {
    ...Object.fromEntries(Object.entries(io.env).filter(([name]) => OF_NODE.test(name))),
    AGENTAUTH_HOME: home,
  };
  const run = async () => {
    const [node, script] = program;
    const child = spawn(node, [script, ...args], { env, signal, windowsHide: true, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    // It also closes where it could not be started, or was ended by the signal.
    child.on("error", ({ message }) => err.push(Buffer.from(message)));
    const code = await new Promise((resolve) => child.once("close", resolve));
    if (signal.aborted) throw abortedError(signal);
    if (code !== 0) throw new Error(`a process ended with ${String(code)}: ${Buffer.concat(err).toString("utf8")}`);
    return Buffer.concat(out).toString("utf8").trimEnd();
  };
  // All of them have ended before the folder that they share is removed.
  const results = await Promise.allSettled(Array.from({ length: count }, run));
  return results.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}
