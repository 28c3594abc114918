import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ManagementClient } from "../../../api/client.js";
import type { HttpEvent } from "../../../http/buffered-response.js";
import { flagOf } from "../../../profile/login-settings.js";
import { MASK, shellWord } from "../../../redact.js";
import { type Sandbox, startSandbox } from "../../../sandbox/sandbox.js";
import type { ListFlags } from "../../flags/list.js";
import type { Io } from "../../io/io.js";
import { runList } from "../../listing/print-list.js";
import type { ListKind } from "../../listing/scope.js";
import { isJqInstalled } from "../../output/jq.js";
import type { CommandContext } from "../../runtime/context.js";
import { callWhoami, DEMO_CLIENT, type DemoAgent, demoAgent, runTogether } from "./agent.js";

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

const KINDS = {
  domains: { noun: "domains", scope: "account" },
  pools: { noun: "pools", scope: "domain" },
  devices: { noun: "devices", scope: "pool" },
} as const satisfies Record<string, ListKind>;

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
    await this.#list("The domains of an account", KINDS.domains, { account });
    await this.#list("The pools of a domain", KINDS.pools, { domain });
    await this.#list("A page of the devices of a pool", KINDS.devices, { pool, limit: 5 });
    await this.#list("Sorted by the service", KINDS.devices, { pool, sort: "last_seen:desc", limit: 5 });
    await this.#list("Filtered client-side", KINDS.devices, { pool, status: "revoked", sessionType: "mcp", limit: 5 });
    await this.#list("As a program reads it", KINDS.devices, {
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
    const words = Object.entries(flags).flatMap(([name, value]) => [
      name === "output" ? "-o" : flagOf(name),
      String(value),
    ]);
    const argv = [kind.noun, "list", ...words];
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
    if (program !== undefined) {
      return runTogether(PROCESSES, ["mcp", "call", mcpUrl, "whoami"], this.#home, { ...this.#context, program });
    }
    return Promise.all(Array.from({ length: PROCESSES }, () => callWhoami(sharing(), mcpUrl, signal)));
  }

  /** Finds the agent among the devices, and logs out. */
  async #logOut({ client }: DemoAgent, pool: string): Promise<void> {
    const { mcpUrl } = this.#sandbox;
    await this.#list("The agent itself is now a device of the pool", KINDS.devices, { pool, title: `${DEMO_CLIENT}*` });
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
