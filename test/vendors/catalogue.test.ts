import { readdirSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/http/deadline.js";
import { FETCH_BROWSER } from "../flow/support.js";
import { runCli, temporaryFolder } from "../helpers/cli.js";
import { SERVER_SHAPES } from "./catalogue.js";
import type { ServerShape } from "./shape.js";
import schema from "./shape.schema.json" with { type: "json" };
import { startLike } from "./shape-server.js";
import { loginFlagsOf } from "./vendor-command.js";

const DAY_MS = 86_400_000;

/** A user at a sandbox of a shape, with a browser. */
async function visit(recorded: ServerShape) {
  const sandbox = await startLike(recorded, { accounts: 1, domains: 1, pools: 1, devices: 0 });
  const { like: shape } = sandbox;
  let ahead = 0;
  const clock = { ...systemClock, epoch: () => Date.now() + ahead };
  const secret = typeof shape.client === "string" ? { AGENTAUTH_CLIENT_SECRET: shape.client } : {};
  const home = temporaryFolder();
  const run = (...args: string[]) => runCli(args, { clock, env: { AGENTAUTH_HOME: home, ...secret } });
  return {
    shape,
    sandbox,
    run,
    login(...flags: string[]) {
      // A page that never returns makes the login wait, until the flag that avoids it is given.
      const hangs = recorded.refusals?.some(({ status }) => status === 200) && !flags.includes("--authorize-param");
      const wait = hangs ? ["--login-timeout", "2"] : [];
      return run("login", sandbox.mcpUrl, "--browser", FETCH_BROWSER, ...wait, ...flags);
    },
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

/** Logs in as a user who adds the flags that each message names, that of a login without a refresh token included. */
async function follow({ shape, login }: Visit, message: string): Promise<void> {
  const given: string[] = [];
  let left = loginFlagsOf(shape);
  let again = { code: null as number | null, stderr: message };
  while (again.code !== 0 || left.length > 0) {
    const { stderr } = again;
    const named = left.filter(([flag = ""]) => stderr.includes(flag));
    expect(named, `one of ${left} in ${stderr}`).not.toEqual([]);
    given.push(...named.flat());
    left = left.filter((one) => !named.includes(one));
    again = await login(...given);
  }
}

it.concurrent.each(SERVER_SHAPES.map((shape) => [shape.id, shape] as const))(
  "the recorded shapes %s",
  async (_id, recorded) => {
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
  },
);

describe("the catalogue", () => {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
  formats.default(ajv);
  const validate = ajv.compile(schema);
  const complete = SERVER_SHAPES.find(({ id }) => id === "asana");

  it.each(SERVER_SHAPES.map((shape) => [shape.id, shape] as const))("%s follows the schema", (_id, shape) => {
    validate(shape);
    expect(validate.errors).toBeNull();
  });

  it.each([
    ["a name with capitals", { id: "Asana" }],
    ["no sentence", { about: "only clients with a secret" }],
    ["a source without a date", { date: undefined }],
    ["a date without a source", { source: undefined }],
    ["a source that is not an https address", { source: "http://example.com" }],
    ["a day of no month", { date: "2026-9-7" }],
    ["neither that it works, nor options, nor a reason", { byDefault: false, options: {} }],
    ["options for a server that works without them", { byDefault: true }],
    ["options and a reason why none help", { refused: "for a reason" }],
    ["a server without an address", { server: "mcp.asana.com" }],
    ["a document without an address", { documents: { metadata: {} } }],
    ["a refusal at an endpoint that no shape has", { refusals: [{ at: "introspect", body: {} }] }],
    ["a refusal by no pattern", { refusals: [{ at: "token", when: { resource: "(" }, body: {} }] }],
    ["a field that no shape has", { notes: "none" }],
  ])("has a schema that refuses %s", (_what, fields) => {
    expect(validate(JSON.parse(JSON.stringify({ ...complete, ...fields })))).toBe(false);
  });

  it.each(readdirSync(new URL("./", import.meta.url)).filter((file) => /^[^.]+\.json$/.test(file)))(
    "%s has the name of its shape",
    (file) => {
      expect(SERVER_SHAPES.map(({ id }) => `${id}.json`)).toContain(file);
    },
  );
});
