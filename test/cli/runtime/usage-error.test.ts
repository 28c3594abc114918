import type { CommanderError } from "commander";
import { describe, expect } from "vitest";
import { COMMANDS } from "../../../src/cli/commands/all.gen.js";
import { buildProgram } from "../../../src/cli/program.js";
import { hideSecretWords, secretFlagError, toUsageError } from "../../../src/cli/runtime/usage-error.js";
import { linesOf, runCli } from "../../helpers/cli.js";
import { testbedTest } from "../../helpers/testbed-test.js";
import { startRun } from "../run-support.js";

const it = testbedTest({ devices: 3 });

/** What is reported of a command line that cannot be parsed. */
async function reported(line: string): Promise<{ message: string; hint: string | undefined }> {
  const { context } = startRun();
  const { run } = buildProgram(context, { text: "", error: "" }, { commands: COMMANDS });
  const thrown = await run(line.split(" ")).then(
    () => undefined,
    (error: CommanderError) => error,
  );
  if (thrown === undefined) throw new Error(`the parser accepts ${line}`);
  const { message, hint } = toUsageError(thrown);
  return { message, hint };
}

it("names the way to an id that begins with a dash, and not for a mistyped flag", async () => {
  const see = "see agentauth devices get --help";
  expect(await reported("devices get -x1")).toEqual({
    message: "unknown option '-x1'",
    hint: `${see}; an argument that begins with - comes after --`,
  });
  expect((await reported("devices get --zzzzzz")).hint).toBe(see);
});

/** Command lines that the parser refuses, of each kind of complaint. */
const REFUSED = `
devices list --limit x
devices list --limit 0
devices list -o tabel
devices list --output zzzzzzzz
mcp config curser https://a.example/mcp
mcp config zzzzzzzz https://a.example/mcp
devices list --limit
devices get
device list
zzzzzzzz
devices lst
devices list --lmit 5
devices list --lmit=5
devices list --api-token x
auth
auth status
auth token https://a.example/mcp
auth login https://a.example/mcp?secret
auth logout
call https://a.example/mcp tool
curl https://a.example/mcp
devices show d
domains show d
pools show p
init
list
ls
refresh https://a.example/$x
token --json
token https://a.example/mcp --output json
token https://a.example/mcp -o json
tools
version
whoami
config show
mcp install cursor
devices revoke d
domains create
devices list --format csv
devices list --format=csv
login https://a.example/mcp --callback-port 3000
login https://a.example/mcp --device
login https://a.example/mcp --headless
token https://a.example/mcp --refresh
devices list --refresh
devices list -p work
devices list --columnz id
devices reports
constructor
-x
-xy
mcp tools https://mcp.example/mcp --allow-private-network
completion bsh
token https://mcp.example/mcp -o csv
auth logout https://mcp.example/mcp
tools https://mcp.example/mcp
tools https://mcp.example/mcp?key=k
devices list --zzzzzz
`;

it("has a hint for each kind of complaint", async () => {
  const lines = REFUSED.trim().split("\n");
  const complaints = await Promise.all(lines.map(reported));
  expect(lines.map((line, at) => `${line}: ${complaints[at]?.message}; ${complaints[at]?.hint}`)).toMatchSnapshot();
});

it.each([
  ["devices list -o tsv", "did you mean plain?"],
  ["devices list -o yaml", "did you mean json?"],
  ["devices list --format tsv", "did you mean -o plain?"],
  ["devices list --format xlsx", "did you mean -o csv?"],
  ["doctor -o tsv", "did you mean plain?"],
  ["devices report -o xlsx", "see agentauth devices report --help"],
])("reads a format of another program: %s", async (line, hint) => {
  expect((await reported(line)).hint).toBe(hint);
});

it("has the complaint of the parser as its cause, unless that repeats what was typed as a flag", () => {
  const of = (message: string) => toUsageError(Object.assign(new Error(message), { code: "x" }) as never);
  expect(of("error: something else\nmore")).toMatchObject({
    ...{ code: "usage", class: "usage", message: "something else", hint: "see agentauth --help" },
    cause: expect.objectContaining({ message: "error: something else\nmore" }),
  });
  expect(of("error: unknown option '--zzz=secret'").cause).toBeUndefined();
  expect(of("error: unknown option '--zzz=secret'").message).toBe("unknown option '--zzz'");
  expect(of("error: unknown command 'zzz'\n(Did you mean zz?)").hint).toBe("did you mean zz?");
});

it("a value is quoted in its complaint, and cut", async () => {
  const { message } = await reported(`devices list --limit ${"x".repeat(200)}`);
  expect(message).toBe(`--limit "${"x".repeat(80)}…" must be a whole number of at least 1`);
});

describe("an unexpected argument", () => {
  it.each([
    ["devices list extra", "did you mean --pool extra?"],
    ["pools list extra", "did you mean --domain extra?"],
    ["domains list extra", "did you mean --account extra?"],
    ["devices list --pool p extra", "see agentauth devices list --help"],
    ["devices get d extra", "see agentauth devices get --help"],
    ["devices get d --pool p extra", "see agentauth devices get --help"],
    ["profile list extra", "see agentauth profile list --help"],
  ])("in %s: %s", async (line, hint) => {
    expect(await reported(line)).toEqual({ message: 'unexpected argument "extra"', hint });
  });

  it("is quoted in the suggestion for a shell", async () => {
    expect((await reported("devices list a;b")).hint).toBe("did you mean --pool 'a;b'?");
  });
});

const TYPED = "hunter2-hunter2";
const JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2lnbmF0dXJl";
const SANDBOX_TOKEN = `sandbox_${"a1".repeat(16)}`;

describe("a secret on the command line", () => {
  it.each<[string, string[], RegExp]>([
    ["--api-token", ["devices", "list", "--api-token", TYPED], /AGENTAUTH_API_TOKEN.*config set api_token -/],
    ["--api-token", ["devices", "list", `--api-token=${TYPED}`], /AGENTAUTH_API_TOKEN/],
    ["--token", [`--token=${TYPED}`, "pools", "list"], /AGENTAUTH_API_TOKEN/],
    ["--apiKey", ["pools", "list", "--apiKey", TYPED], /AGENTAUTH_API_TOKEN/],
    ["--client-secret", ["token", "https://x.example/mcp", "--client-secret", TYPED], /--client-secret-file/],
    ["--client_secret", ["login", "https://x.example/mcp", `--client_secret=a\n${TYPED}`], /--client-secret-file/],
    [
      "--password",
      ["login", "https://x.example/mcp", "--password", TYPED],
      /environment, on stdin or in a private file/,
    ],
    ["--id-token", ["token", "https://x.example/mcp", "--id-token", TYPED], /AGENTAUTH_ID_TOKEN, also to file:/],
    [
      "--subject-token",
      ["exchange", "https://x.example/mcp", "--subject-token", TYPED],
      /AGENTAUTH_SUBJECT_TOKEN, or give --subject-token-file/,
    ],
    [
      "--client-assertion",
      ["token", "https://x.example/mcp", "--grant", "jwt-bearer", "--client-assertion", TYPED],
      /--assertion <source>/,
    ],
    ["--refresh-token", ["token", "https://x.example/mcp", "--refresh-token", TYPED], /agentauth login/],
    ["--code", ["login", "https://x.example/mcp", "--code", TYPED], /--flow paste/],
  ])("is refused as %s, with the way that is safe, and is not repeated", async (flag, args, hint) => {
    for (const more of [[], ["--debug"]]) {
      const { code, stdout, stderr } = await runCli([...args, ...more]);
      expect([code, stdout]).toEqual([2, ""]);
      const [error = "", help = ""] = linesOf(stderr);
      expect(error).toBe(
        `error: ${flag}: a secret must not be on the command line, where other programs can read it and the shell stores it`,
      );
      expect(help).toMatch(hint);
      expect(help).toContain("revoke the one that was typed here");
      expect(stderr).not.toContain(TYPED);
    }
  });

  it("is not repeated by a complaint about any other flag, or as JSON", async () => {
    const other = await runCli(["devices", "list", `--pol=${TYPED}`]);
    expect([other.code, other.stderr]).toEqual([
      2,
      "error: unknown option '--pol'\nhint: see agentauth devices list --help\n",
    ]);
    const json = await runCli(["devices", "list", "--api-token", TYPED, "--json"]);
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: "usage", exit_code: 2 } });
    expect(json.stderr).not.toContain(TYPED);
  });

  it.each([JWT, SANDBOX_TOKEN, `Bearer ${JWT}`])("is masked wherever it is by mistake: %s", async (word) => {
    for (const args of [
      [word],
      ["token", word],
      ["token", "https://x.example/mcp", word],
      ["config", "set", "api_token", word],
      ["config", "set", word, "x"],
      ["config", "get", word],
      ["devices", "list", "--sort", word],
      ["devices", "list", "--output", word],
      ["help", word],
      ["--profile", word, "config", "list"],
    ]) {
      const { code, stdout, stderr } = await runCli([...args, "--debug"]);
      expect([args, code, stdout]).toEqual([args, 2, ""]);
      expect(stderr).not.toContain(word);
    }
  });
});

describe("the way that is safe", () => {
  const apiToken = "set AGENTAUTH_API_TOKEN, or keep it: agentauth config set api_token - < token.txt";
  const secret = "set AGENTAUTH_CLIENT_SECRET, or give --client-secret-file <file> (- reads stdin)";
  const elsewhere = "give it in the environment, on stdin or in a private file: agentauth help environment";

  it.each<[string, string | undefined]>([
    ...["token", "api-key", "apikey", "bearer", "authorization", "auth", "apiKey", "API_KEY", "my-token"].map(
      (flag): [string, string] => [flag, apiToken],
    ),
    ...["password", "passwd", "pass", "passphrase", "credential", "credentials", "verifier", "jwt"].map(
      (flag): [string, string] => [flag, elsewhere],
    ),
    ...["client-secret", "secret", "clientSecret", "client_secret=x", "myOwn2Secret"].map((flag): [string, string] => [
      flag,
      secret,
    ]),
    ["id-token", "set AGENTAUTH_ID_TOKEN, also to file:<path>"],
    ["idp-client-secret", "set AGENTAUTH_IDP_CLIENT_SECRET, also to file:<path>"],
    ["subject-token", "set AGENTAUTH_SUBJECT_TOKEN, or give --subject-token-file <file> (- reads stdin)"],
    ["refresh-token", "agentauth login stores it, and nothing else needs it"],
    ["store-url", "set AGENTAUTH_STORE_URL, or keep it: agentauth config set store_url file:<path>"],
    ["store-keys", "set AGENTAUTH_STORE_KEYS, or keep them: agentauth config set store_keys file:<path>"],
    ["client-assertion", "give --assertion <source>, such as file:<path>"],
    ["code", "agentauth login <mcp_url> --flow paste reads it without showing it"],
    ["client-id", undefined],
    ["tokens", undefined],
    ["to-string", undefined],
    ["constructor", undefined],
    ["token-file", undefined],
  ])("instead of --%s is named", (flag, hint) => {
    expect(secretFlagError(`--${flag}`)?.hint).toBe(hint && `${hint}; and revoke the one that was typed here`);
    expect(secretFlagError(`-${flag}`)).toBeUndefined();
  });
});

describe("what is masked of a command line", () => {
  const CALLBACK = "http://127.0.0.1:1/callback?code=code-1&state=state-1";

  it.each<[string, string[], string[]]>([
    ["nothing of other words", ["devices", "list", "--pool", "pool_1", "-o", "json"], []],
    ["a token", [JWT, SANDBOX_TOKEN, `Bearer ${JWT}`, `x${JWT}`], [JWT, SANDBOX_TOKEN, `Bearer ${JWT}`]],
    ["a value behind its flag", ["--api-token=one", "--password", "two", "x"], ["one", "", "two"]],
    ["no flag behind a flag", ["--api-token", "-o", "json"], [""]],
    ["no value of an unknown flag", ["--tokens", "x", "-token", "y", "token", "z"], []],
    ["no value behind the end", ["--token"], [""]],
    ["a callback, and the code in it", ["--callback-url", CALLBACK], [CALLBACK, "code-1"]],
    ["a callback behind its flag", [`--callback-url=${CALLBACK}`], [CALLBACK, "code-1"]],
    ["the query of a callback alone", ["--callback-url", "code=code-1&state=s"], ["code=code-1&state=s", "code-1"]],
    ["a callback without a code", ["--callback-url", "-"], ["-", ""]],
    ["no callback behind the end", ["--callback-url"], ["", ""]],
  ])("is %s", (_what, argv, masked) => {
    const added: string[] = [];
    hideSecretWords(argv, { add: (value) => added.push(value) });
    expect(added).toEqual(masked);
  });
});

describe("--show-secrets", () => {
  const ask = ["--columns", "dynamic_client_details.client_secret", "--limit", "1", "--show-secrets"];

  it("is refused in the log of a CI job until --yes is given", async ({ testbed }) => {
    const refused = await testbed.run([...testbed.devices, ...ask], { env: { CI: "true" } });
    expect([refused.code, refused.stdout]).toEqual([2, ""]);
    expect(linesOf(refused.stderr)).toEqual([
      "error: --show-secrets would print secrets into the log of a CI job (CI is set)",
      "hint: leave --show-secrets out; if no log records the output, add --yes",
    ]);
    const given = await testbed.run([...testbed.devices, ...ask, "--yes"], { env: { CI: "true" } });
    expect([given.code, given.stdout]).toEqual([0, expect.stringContaining("<CLIENT_SECRET>")]);
  });

  it.for(["false", "0", ""])("is taken where CI is %j", async (ci, { testbed }) => {
    const { code, stdout } = await testbed.run([...testbed.devices, ...ask], { env: { CI: ci } });
    expect([code, stdout]).toEqual([0, expect.stringContaining("<CLIENT_SECRET>")]);
  });
});
