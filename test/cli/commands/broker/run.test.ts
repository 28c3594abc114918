import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished } from "vitest";
import { collect, type Started, temporaryFolder, until } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";
import { harnessTest } from "../harness.js";

const it = harnessTest();

const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** The path of a socket is at most 107 bytes long. */
const socketPath = () => join(mkdtempSync(join(tmpdir(), "b-")), "run", "a.sock");

async function send(to: { socketPath: string } | { url: string }, name: string, body = LIST) {
  const options = { method: "POST", headers: HEADERS };
  const sent =
    "url" in to
      ? httpRequest(`${to.url}/${name}`, options)
      : httpRequest({ ...options, ...to, host: "localhost", path: `/${name}` });
  sent.end(body);
  const [response] = await once(sent, "response");
  let text = "";
  for await (const part of response) text += part;
  return { status: response.statusCode, text };
}

async function ready(child: Started) {
  const stderr = collect(child.stderr);
  const ended = once(child, "close");
  onTestFinished(async () => {
    child.kill("SIGINT");
    await ended;
  });
  await until(() => stderr().includes("broker ready") || child.exitCode !== null);
  return { stderr, ended };
}

describe("broker", () => {
  it.skipIf(ON_WINDOWS)("passes requests on until SIGTERM, and logs them with -v", async ({ harness, me }) => {
    const path = socketPath();
    const child = me.start(["broker", "-v", "--listen", `unix:${path}`, "--grant", `mcp=${harness.url},tools=who*`]);
    const { stderr, ended } = await ready(child);
    const { status, text } = await send({ socketPath: path }, "mcp");
    expect(status).toBe(200);
    expect(text).toContain('"name":"whoami"');
    expect(text).not.toContain('"name":"echo"');
    expect(await send({ socketPath: path }, "other")).toMatchObject({ status: 404 });
    expect(stderr()).toContain("default: mcp POST: 200 in ");
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    expect(existsSync(path)).toBe(false);
  });

  it("on TCP writes its address into a private file alone", async ({ harness, me }) => {
    const file = join(temporaryFolder(), "ready.json");
    const child = me.start([
      "broker",
      "--listen",
      "127.0.0.1:0",
      "--grant",
      `mcp=${harness.url}`,
      "--ready-file",
      file,
    ]);
    const { stderr } = await ready(child);
    const [{ url }] = JSON.parse(readFileSync(file, "utf8")).listeners;
    if (!ON_WINDOWS) expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await send({ url }, "mcp")).toMatchObject({ status: 200 });
    expect(stderr()).not.toContain(new URL(url).pathname);
    expect(await me.run(["broker", "--listen", "127.0.0.1:0", "--grant", `mcp=${harness.url}`])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("hint: add --ready-file <file>"),
    });
  });

  it.skipIf(ON_WINDOWS)("names the login that is needed, once", async ({ harness, user }) => {
    const path = socketPath();
    const child = user.start(["broker", "--listen", `unix:${path}`, "--grant", `mcp=${harness.url}`]);
    const { stderr } = await ready(child);
    expect(await send({ socketPath: path }, "mcp")).toMatchObject({ status: 503 });
    expect(await send({ socketPath: path }, "mcp")).toMatchObject({ status: 503 });
    expect(stderr().match(/needs a login/g)).toHaveLength(1);
    expect(stderr()).toContain(`warning: mcp needs a login: agentauth login ${harness.url}\n`);
    await user.logIn();
    expect(await send({ socketPath: path }, "mcp")).toMatchObject({ status: 200 });
  });

  it.skipIf(ON_WINDOWS)(
    "names the login for a scope that is missing, and runs a command",
    async ({ harness, faults }) => {
      const user = harness.user();
      await user.logIn();
      faults.add({ kind: "step-up", scope: "reports:read" });
      const call = () =>
        send({ socketPath: path }, "mcp", LIST.replace("list", "call").replace("}", ',"params":{"name":"echo"}}'));
      const [path, file] = [socketPath(), join(temporaryFolder(), "run")];
      const command = `echo "$AGENTAUTH_BROKER_NAME $AGENTAUTH_BROKER_SERVER $AGENTAUTH_BROKER_LOGIN" > ${file}`;
      const args = [
        "broker",
        "--listen",
        `unix:${path}`,
        "--grant",
        `mcp=${harness.url}`,
        "--on-login-required",
        command,
      ];
      const { stderr } = await ready(user.start(args));
      const { status, text } = await call();
      expect([status, JSON.parse(text)]).toMatchObject([503, { id: 1, error: { data: { code: "login_required" } } }]);
      const login = `agentauth login ${harness.url} --scope 'mcp reports:read'`;
      expect(stderr()).toContain(`warning: mcp needs a login: ${login}\n`);
      await until(() => existsSync(file) && readFileSync(file, "utf8") !== "");
      expect(readFileSync(file, "utf8")).toBe(`mcp ${harness.url} ${login}\n`);
      await user.logIn("mcp reports:read");
      expect((await call()).status).toBe(200);
    },
  );

  it.skipIf(ON_WINDOWS)(
    "reads its file again at SIGHUP, and keeps the old policy after a mistake",
    async ({ harness, me }) => {
      const [path, file] = [socketPath(), join(temporaryFolder(), "broker.json")];
      const write = (grants: object) =>
        writeFileSync(file, JSON.stringify({ grants, clients: { job: { listen: `unix:${path}` } } }), { mode: 0o600 });
      write({ mcp: { server: harness.url } });
      const child = me.start(["broker", "--config", file]);
      const { stderr } = await ready(child);
      write({ mcp: { server: harness.url, tool: ["x"] } });
      child.kill("SIGHUP");
      expect(stderr()).toContain("the old policy stays in force: the file ");
      expect(stderr()).toContain('grants.mcp has the unknown field "tool"; its fields are server, ');
      expect(await send({ socketPath: path }, "mcp")).toMatchObject({ status: 200 });
      write({ mcp: { server: harness.url, methods: ["GET"] } });
      child.kill("SIGHUP");
      expect(await send({ socketPath: path }, "mcp")).toMatchObject({ status: 403 });
    },
  );

  it.skipIf(ON_WINDOWS)("loses no request while it reads its file again", async ({ harness, me }) => {
    const [path, file] = [socketPath(), join(temporaryFolder(), "broker.json")];
    const write = (rpm: number) => {
      const grants = { mcp: { server: harness.url, tools: ["who*"], requestsPerMinute: rpm } };
      writeFileSync(file, JSON.stringify({ grants, clients: { job: { listen: `unix:${path}` } } }), { mode: 0o600 });
    };
    write(1000);
    const child = me.start(["broker", "--config", file]);
    const { stderr } = await ready(child);
    const statuses: number[] = [];
    const load = Array.from({ length: 10 }, async () => {
      for (let nth = 0; nth < 20; nth++) statuses.push((await send({ socketPath: path }, "mcp")).status);
    });
    for (let nth = 1; nth <= 20; nth++) {
      await until(() => statuses.length >= 9 * nth);
      write(1000 + nth);
      child.kill("SIGHUP");
    }
    await Promise.all(load);
    expect(statuses).toEqual(new Array(200).fill(200));
    expect(stderr().match(/read ".*broker.json" again: 1 grant/g)).toHaveLength(20);
  });
});

describe("a policy that is wrong", () => {
  const check = (file: string) => ["broker", "--config", file, "--check"];
  const grants = { mcp: { server: "https://mcp.example/mcp" } };
  const clients = { job: { listen: "unix:/run/a.sock" } };

  it("is found by --check, with the field and the value", async ({ user }) => {
    const file = join(temporaryFolder(), "broker.json");
    const problems: [object, string][] = [
      [{ grants: {}, clients }, "grants is empty"],
      [
        { grants, clients: { job: { ...clients.job, grants: ["x"] } } },
        'clients.job.grants names "x", which is not in grants',
      ],
    ];
    for (const [policy, message] of problems) {
      writeFileSync(file, JSON.stringify(policy), { mode: 0o600 });
      const { code, stderr } = await user.run(check(file));
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
      expect(fixedText(stderr)).toMatchSnapshot();
    }
    writeFileSync(file, JSON.stringify({ grants, clients }));
    expect(await user.run(check(file))).toMatchObject({ code: 0, stderr: "the policy is valid: 1 grant, 1 client\n" });
  });

  it.runIf(process.getuid?.() === 0)("is refused in a file of another user", async ({ user }) => {
    const file = join(temporaryFolder(), "broker.json");
    writeFileSync(file, JSON.stringify({ grants, clients }), { mode: 0o600 });
    chownSync(file, 12_345, 12_345);
    const { code, stderr } = await user.run(check(file));
    expect({ code, stderr }).toEqual({
      code: 8,
      stderr: expect.stringContaining(`belongs to another user (uid 12345)\nhint: chown 0 ${file}\n`),
    });
  });

  it.skipIf(ON_WINDOWS)("is refused where others can change the file", async ({ user }) => {
    const file = join(temporaryFolder(), "broker.json");
    writeFileSync(file, JSON.stringify({ grants, clients }));
    chmodSync(file, 0o666);
    expect(await user.run(check(file))).toMatchObject({
      code: 8,
      stderr: expect.stringContaining(`can be written by others (mode 0666, owner: you)\nhint: chmod go-w ${file}\n`),
    });
  });

  it.for([
    [["broker"], "broker needs --listen and --grant, or --config"],
    [["broker", "--listen", "unix:/a", "--grant", "mcp"], '--grant "mcp" is not <name>=<url>'],
    [
      ["broker", "--listen", "unix:/a", "--grant", "mcp=https://a.example/,tool=read_*"],
      '--grant has the unknown key "tool"\nhint: its keys are tools, hide-tools, ',
    ],
    [
      ["broker", "--listen", "unix:/a", "--grant", "mcp=https://a.example/,rpm=x"],
      'grants.mcp.requestsPerMinute "x" is not a whole number',
    ],
    [
      ["broker", "--listen", `unix:/tmp/${"x".repeat(100)}/a`, "--grant", "mcp=https://a.example/"],
      "has a path of more than 103 bytes",
    ],
    [["broker", "--config", "x.json", "--listen", "unix:/a"], "--config and --listen do not go together"],
    [["broker", "--config", "/nowhere/x.json"], "cannot be read: ENOENT"],
  ] as const)("%j is a usage error", async ([args, message], { user }) => {
    const { code, stderr } = await user.run(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(fixedText(stderr)).toMatchSnapshot();
  });
});
