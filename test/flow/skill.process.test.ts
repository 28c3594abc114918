import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { shellWord } from "../../src/redact.js";
import { startSandbox } from "../../src/sandbox/index.js";
import { BIN, cleanEnv, collect, temporaryFolder, until } from "../helpers/cli.js";
import { commandsOf } from "./agent-pages-support.js";
import { startRefusingIssuer } from "./refusing-issuer.js";
import { callbackOf } from "./support.js";

const URL_OF_PAGE = "https://mcp.example/mcp";

interface Outcome {
  code: number | null;
  out: string;
  err: string;
}

/** What the page promises of a command, and what a user does after it. */
interface Step {
  line: string;
  code?: number;
  check?: (outcome: Outcome) => Promise<unknown> | unknown;
}

const json = ({ out }: Outcome) => JSON.parse(out);
const isJson: Step["check"] = (outcome) => json(outcome);

/** A shell in which `agentauth` is the built program. */
function startShell(env: NodeJS.ProcessEnv) {
  return (line: string) => {
    const script = `agentauth() { ${shellWord(process.execPath)} ${shellWord(BIN)} "$@"; }\n${line}`;
    const child = spawn("bash", ["-c", script], { env, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err] = [collect(child.stdout), collect(child.stderr)];
    const ended = once(child, "close") as Promise<[number | null]>;
    return { out, err, ended };
  };
}

it("does what the skill says, step by step", async () => {
  expect(existsSync(BIN)).toBe(true);
  const options = { accounts: 1, domains: 1, pools: 1, devices: 70, autoApprove: true, deviceFlow: true, iss: true };
  const sandbox = await startSandbox(options);
  const { account, domain, pool } = sandbox.ids;
  const values: Record<string, string> = {
    account_id: account,
    domain_id: domain,
    pool_id: pool,
    device_id: sandbox.data.device(pool, 0)?.id ?? "",
  };
  const env = cleanEnv({
    AGENTAUTH_HOME: temporaryFolder(),
    AGENTAUTH_BASE_URL: sandbox.baseUrl,
    AGENTAUTH_API_TOKEN: sandbox.apiToken,
    CLAUDECODE: "1",
  });
  const shell = startShell(env);
  const start = (line: string) =>
    shell(line.replaceAll(URL_OF_PAGE, sandbox.mcpUrl).replace(/<(\w+)>/g, (_, name) => values[name] ?? "?"));
  const begun = (flow: string) => (outcome: Outcome) => {
    const started = json(outcome);
    expect(started).toMatchObject({ flow, expires_at: expect.any(String), finish: expect.stringContaining("--wait") });
    values["login_id"] = started.login_id;
    return started;
  };
  const loggedIn = (outcome: Outcome) => expect(json(outcome)).toMatchObject({ logged_in: true, state: "valid" });
  const wait = `agentauth login ${URL_OF_PAGE} --wait <login_id>`;
  const next = ({ err }: Outcome) => JSON.parse(err.trim().split("\n").at(-1) ?? "").next;
  const steps: Step[] = [
    { line: "agentauth commands", check: (outcome) => expect(json(outcome).length).toBeGreaterThan(30) },
    { line: "agentauth commands devices list --json", check: (outcome) => expect(json(outcome).flags).toBeDefined() },
    { line: "agentauth schema login-begun", check: isJson },
    {
      line: `agentauth status ${URL_OF_PAGE} --json`,
      code: 4,
      check: (outcome) => expect(json(outcome)).toEqual([]),
    },
    {
      line: `agentauth login ${URL_OF_PAGE} --no-wait --json`,
      async check(outcome) {
        const started = begun("browser")(outcome);
        expect(started.listening).toBe(true);
        // The user opens the URL before the second command runs.
        expect(await (await fetch(started.url)).text()).toContain("Almost done");
      },
    },
    { line: wait, check: loggedIn },
    {
      line: `agentauth login ${URL_OF_PAGE} --no-wait --json --flow device`,
      async check(outcome) {
        const started = begun("device")(outcome);
        expect([started.user_code, started.verification_uri]).toEqual([expect.any(String), expect.any(String)]);
        await (await fetch(started.verification_uri_complete)).text();
      },
    },
    { line: wait, check: loggedIn },
    {
      line: `agentauth login ${URL_OF_PAGE} --no-wait --json --flow paste`,
      async check(outcome) {
        values["callback_url"] = await callbackOf(begun("paste")(outcome).url);
      },
    },
    { line: `${wait} --callback-url - <<< '<callback_url>'`, check: loggedIn },
    { line: `agentauth mcp tools ${URL_OF_PAGE} --json`, check: isJson },
    { line: `agentauth mcp call ${URL_OF_PAGE} echo --args '{"text":"hello"}' --json`, check: isJson },
    { line: `agentauth request ${URL_OF_PAGE} --data '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'` },
    {
      line: `agentauth exec ${URL_OF_PAGE} -- printenv AGENTAUTH_TOKEN`,
      check: ({ out }) => expect(out).toBe("********\n"),
    },
    {
      line: `agentauth token ${URL_OF_PAGE} --format header | curl -sS -H @- ${URL_OF_PAGE}`,
      // Without a token the server answers 401.
      check: ({ out }) => expect(out).toContain("Method not allowed"),
    },
    {
      line: `agentauth token ${URL_OF_PAGE} --format headers-json`,
      check: (outcome) => expect(json(outcome).Authorization).toMatch(/^Bearer \S+$/),
    },
    { line: `agentauth discover ${URL_OF_PAGE} --json`, check: isJson },
    { line: `agentauth mcp config claude-code ${URL_OF_PAGE}` },
    {
      line: "agentauth domains list --account <account_id>",
      check: (outcome) => expect([json(outcome).length, next(outcome)]).toEqual([1, null]),
    },
    {
      line: "agentauth pools list --domain <domain_id>",
      check: (outcome) => expect([json(outcome).length, next(outcome)]).toEqual([1, null]),
    },
    {
      line: "agentauth devices list --pool <pool_id> --sort last_seen:desc --limit 20 --json",
      check: (outcome) => expect(json(outcome)).toHaveLength(20),
    },
    { line: "agentauth devices list --pool <pool_id> --status revoked -o ndjson --columns id,title" },
    { line: "agentauth devices get <device_id> --pool <pool_id> --json", check: isJson },
    { line: "agentauth devices report --pool <pool_id> --json", check: isJson },
    { line: "agentauth doctor --json", check: isJson },
    { line: "agentauth help exit-codes" },
    { line: "agentauth sandbox start --auto-approve -o json" },
    {
      line: "agentauth devices list --profile sandbox --limit 5 --json",
      check: (outcome) => expect(json(outcome)).toHaveLength(5),
    },
    { line: "agentauth sandbox stop" },
  ];
  expect(commandsOf("skills/agentauth/SKILL.md")).toEqual(steps.map(({ line }) => line));
  let background: ReturnType<typeof start> | undefined;
  for (const { line, code: expected = 0, check } of steps) {
    const command = start(line);
    if (line.includes("sandbox start")) {
      background = command;
      await until(() => command.out().includes("\n"));
      expect(JSON.parse(command.out())).toMatchObject({ ready: true, mcp_url: expect.any(String) });
      continue;
    }
    const [code] = await command.ended;
    const outcome = { code, out: command.out(), err: command.err() };
    expect(code, `${line}\n${outcome.err}`).toBe(expected);
    await check?.(outcome);
  }
  await background?.ended;
  await sandbox.close();
}, 120_000);

it("does what the skill says where the issuer refuses a scope", async () => {
  const sentence =
    "If the second command exits with 4 and prints another `url`, the issuer refused a scope and the login has started again." +
    " Show the user that URL, and run the command in its `finish`.";
  expect(readFileSync("skills/agentauth/SKILL.md", "utf8").replace(/\s+/g, " ")).toContain(sentence);
  const { mcp } = await startRefusingIssuer();
  const shell = startShell(cleanEnv({ AGENTAUTH_HOME: temporaryFolder(), CLAUDECODE: "1" }));
  const first = shell(`agentauth login ${mcp.url} --no-wait --json`);
  expect(await first.ended, first.err()).toEqual([0, null]);
  const begun = JSON.parse(first.out());
  expect(begun).toMatchObject({ listening: true, finish: expect.stringContaining(`--wait ${begun.login_id}`) });
  await (await fetch(begun.url)).text();
  const second = shell(begun.finish);
  expect(await second.ended, second.err()).toEqual([4, null]);
  const again = JSON.parse(second.out());
  expect(again.url).not.toBe(begun.url);
  expect(new URL(again.url).searchParams.get("scope")).toBe("tools");
  const finish = shell(again.finish);
  // Without a listener, the command has to run before the user opens the URL.
  if (!again.listening) await until(() => finish.err().includes("Waiting for the login"));
  await (await fetch(again.url)).text();
  expect(await finish.ended, finish.err()).toEqual([0, null]);
  expect(JSON.parse(finish.out())).toMatchObject({ logged_in: true, state: "valid" });
}, 60_000);
