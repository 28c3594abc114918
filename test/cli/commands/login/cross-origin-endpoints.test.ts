import { beforeEach, describe, expect, it } from "vitest";
import { runLogin } from "../../../../src/cli/commands/login/run.js";
import { runToken } from "../../../../src/cli/commands/token/run.js";
import type { TokenFlags } from "../../../../src/cli/flags/agent.js";
import { FETCH_BROWSER } from "../../../flow/support.js";
import { temporaryFolder } from "../../../helpers/folder.js";
import { type Scene, startScene, type TestIssuer } from "../../../helpers/issuer.js";
import type { MemoryIoOptions } from "../../../helpers/memory-io.js";
import { remedy } from "../../../helpers/remedy.js";
import { startRun } from "../../run-support.js";

const REFUSAL = { class: "refused", remedy: remedy({ action: "allow", option: "allowCrossOriginEndpoints" }) };

let scene: Scene;
let other: TestIssuer;
let home: string;

beforeEach(async () => {
  scene = await startScene();
  other = await scene.another("other");
  scene.issuer.metadata["token_endpoint"] = `${other.issuer}/token`;
  home = temporaryFolder();
});

/** Runs a command at an issuer that has the code sent elsewhere; what it asked on stderr. */
async function run(command: typeof runLogin, flags: Partial<TokenFlags>, { env, ...options }: MemoryIoOptions) {
  const given = { url: scene.mcp.url, browser: FETCH_BROWSER, ...flags } as TokenFlags;
  const { context, io } = startRun({ ...options, env: { AGENTAUTH_HOME: home, AGENTAUTH_AGENT: "0", ...env } }, given);
  const work = command(given, context);
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return { error, prompted: io.err().includes("[y/N]"), err: io.err(), out: io.out() };
}

const posted = () => scene.log.filter((line) => line.includes("POST /pool"));

describe("a login that is handed over to another origin", () => {
  it("names both origins on a terminal, and asks once", async () => {
    const first = await run(runLogin, {}, { tty: true, stdin: "y\n" });
    expect(first).toMatchObject({ error: undefined, prompted: true });
    const question = first.err.replace(/\s+/g, " ");
    expect(question).toContain(`begins at ${scene.issuer.origin} and is handed to ${other.origin}, which issues`);
    expect(first.err.indexOf("[y/N]")).toBeLessThan(first.err.indexOf("open this address"));
    for (const command of [runLogin, runToken]) {
      expect(await run(command, {}, { tty: true })).toMatchObject({ error: undefined, prompted: false });
    }
    expect(await run(runLogin, {}, {})).toMatchObject({ error: undefined, prompted: false });
  });

  it("is asked for by any command that logs in on a terminal, and in the first of two steps", async () => {
    expect(await run(runToken, {}, { tty: true, stdin: "y\n" })).toMatchObject({
      prompted: true,
      out: "access-other-1\n",
    });
    home = temporaryFolder();
    const { error, prompted, out } = await run(runLogin, { wait: false }, { tty: true, stdin: "y\n" });
    expect([error, prompted, out]).toEqual([
      undefined,
      true,
      expect.stringContaining(`${scene.issuer.origin}/pool/authorize`),
    ]);
  });

  it.each(["n\n", ""])("is refused after the answer %j, before anything is sent", async (stdin) => {
    const { error, prompted, err } = await run(runLogin, {}, { tty: true, stdin });
    expect([error, prompted, err.includes("open this address"), posted()]).toEqual([
      expect.objectContaining(REFUSAL),
      true,
      false,
      [],
    ]);
  });

  it.each<[string, typeof runLogin, Partial<TokenFlags>, MemoryIoOptions]>([
    ["without a terminal", runLogin, {}, { stdin: "y\n" }],
    ["where stdin is no terminal", runLogin, {}, { tty: { stderr: true }, stdin: "y\n" }],
    ["where stderr is no terminal", runLogin, {}, { tty: { stdin: true }, stdin: "y\n" }],
    ["with --no-input", runLogin, { input: false, wait: false }, { tty: true, stdin: "y\n" }],
    [
      "with AGENTAUTH_NO_INPUT",
      runLogin,
      { wait: false },
      { tty: true, stdin: "y\n", env: { AGENTAUTH_NO_INPUT: "1" } },
    ],
    ["for an AI agent", runLogin, {}, { tty: true, stdin: "y\n", env: { AGENTAUTH_AGENT: "1" } }],
    ["with token --login and no terminal", runToken, { login: true }, { stdin: "y\n" }],
  ])(
    "is refused unasked %s",
    async (_where, command, flags, options) => {
      const { error, prompted, out } = await run(command, flags, options);
      expect([error, prompted, out, posted()]).toEqual([expect.objectContaining(REFUSAL), false, "", []]);
      const allowed = { ...flags, allowCrossOriginEndpoints: true };
      expect(await run(command, allowed, options)).toMatchObject({ error: undefined, prompted: false });
    },
    20_000,
  );
});
