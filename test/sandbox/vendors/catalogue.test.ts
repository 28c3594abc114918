import { describe, expect, it } from "vitest";
import { loginFlagsOf } from "../../../src/cli/commands/sandbox/vendor-command.js";
import { systemClock } from "../../../src/http/deadline.js";
import { startSandbox } from "../../../src/sandbox/index.js";
import { SERVER_SHAPES } from "../../../src/sandbox/vendors/catalogue.js";
import type { ServerShape } from "../../../src/sandbox/vendors/shape.js";
import { FETCH_BROWSER } from "../../flow/support.js";
import { runCli, temporaryFolder } from "../../helpers/cli.js";

const DAY_MS = 86_400_000;

/** A user at a sandbox of a shape, with a browser. */
async function visit(recorded: ServerShape) {
  const sandbox = await startSandbox({ like: recorded.id, accounts: 1, domains: 1, pools: 1, devices: 0 });
  const { like: shape } = sandbox;
  if (!shape) throw new Error("the sandbox has no shape");
  let ahead = 0;
  const clock = { ...systemClock, epoch: () => Date.now() + ahead };
  const secret = typeof shape.client === "string" ? { AGENTAUTH_CLIENT_SECRET: shape.client } : {};
  const home = temporaryFolder();
  const run = (...args: string[]) => runCli(args, { clock, env: { AGENTAUTH_HOME: home, ...secret } });
  return {
    shape,
    sandbox,
    run,
    login: (...flags: string[]) => run("login", sandbox.mcpUrl, "--browser", FETCH_BROWSER, ...flags),
    tools: () => run("mcp", "tools", sandbox.mcpUrl, "-o", "id"),
    wait() {
      ahead += DAY_MS;
      sandbox.clock.advance(DAY_MS);
    },
  };
}

type Visit = Awaited<ReturnType<typeof visit>>;

/** After a login: tools, and tools again once the access token has expired. */
async function use({ shape, tools, wait }: Visit): Promise<void> {
  expect(await tools()).toMatchObject({ code: 0, stdout: expect.stringContaining("whoami") });
  wait();
  const { code, stderr } = await tools();
  if (shape.refresh === "none" && shape.lifetime !== 0) {
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining("agentauth login") });
  } else expect({ code, stderr }).toMatchObject({ code: 0 });
}

/** Logs in as a user who adds the flags that each message names. */
async function follow({ shape, login }: Visit, message: string): Promise<void> {
  const given: string[] = [];
  let left = loginFlagsOf(shape);
  let again = { code: null as number | null, stderr: message };
  while (again.code !== 0) {
    const { stderr } = again;
    const named = left.filter(([flag = ""]) => stderr.includes(flag));
    expect(named, `one of ${left} in ${stderr}`).not.toEqual([]);
    given.push(...named.flat());
    left = left.filter((one) => !named.includes(one));
    again = await login(...given);
  }
  expect(left, "flags that no message named").toEqual([]);
}

describe("the recorded shapes", () => {
  it.concurrent.each(SERVER_SHAPES.map((shape) => [shape.id, shape] as const))("%s", async (_id, recorded) => {
    const user = await visit(recorded);
    const { shape, sandbox, login } = user;
    try {
      const first = await login();
      if (shape.byDefault) {
        expect(first).toMatchObject({ code: 0 });
        await use(user);
        return;
      }
      expect([3, 4, 6]).toContain(first.code);
      if (shape.refused !== undefined) return;
      await follow(user, first.stderr);
      await use(user);
    } finally {
      await sandbox.close();
    }
  });
});
