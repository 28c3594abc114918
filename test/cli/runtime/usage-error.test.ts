import type { CommanderError } from "commander";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../../src/cli/commands/all.gen.js";
import { buildProgram } from "../../../src/cli/program.js";
import { toUsageError } from "../../../src/cli/runtime/usage-error.js";
import { startRun } from "../run-support.js";

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
