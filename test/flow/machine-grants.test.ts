import { generateKeyPairSync } from "node:crypto";
import { chmodSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SandboxMachine } from "../../src/sandbox/index.js";
import { plant } from "../helpers/canaries.js";
import { linesOf, temporaryFolder } from "../helpers/cli.js";
import { type Desk, filesBelow, type Newcomer, startDesk } from "./support.js";

let desk: Desk;
let machine: SandboxMachine;
let url: string;

beforeAll(async () => {
  desk = await startDesk({ machineGrants: true });
  url = desk.url;
  if (!desk.sandbox.machine) throw new Error("there should be machines");
  machine = desk.sandbox.machine;
  for (const secret of [machine.secretClient.clientSecret, machine.idp.clientSecret]) plant("client_secret", secret);
});
afterAll(() => desk.close());

const folder = temporaryFolder();
const otherKey = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ format: "pem", type: "pkcs8" })
  .toString();
/** A private file, out of the program's own folder. */
function file(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(`${path}.new`, text, { mode });
  renameSync(`${path}.new`, path);
  return path;
}

const SECRET = () => ({ AGENTAUTH_CLIENT_SECRET: machine.secretClient.clientSecret });
const byGrant = (grant: string, clientId: string, ...more: string[]) => [
  "--grant",
  grant,
  "--client-id",
  clientId,
  "--issuer",
  machine.issuer,
  ...more,
];
const asService = (...more: string[]) => byGrant("client-credentials", machine.secretClient.clientId, ...more);
const asWorkload = (path: string, ...more: string[]) =>
  byGrant("jwt-bearer", machine.workloadClient.clientId, "--assertion-file", path, ...more);
const asPerson = (...more: string[]) => {
  const { tokenEndpoint, clientId } = machine.idp;
  const idp = ["--idp-token-endpoint", tokenEndpoint, "--idp-client-id", clientId];
  return byGrant("id-jag", machine.secretClient.clientId, ...idp, ...more);
};
const tokenRequests = (me: Newcomer) => me.asked().filter((line) => line.includes("/token "));

async function token(me: Newcomer, flags: readonly string[], env: Record<string, string> = SECRET()) {
  const { code, stdout, stderr } = await me.run(["token", url, ...flags], { env });
  expect([code, stderr]).toEqual([0, ""]);
  return stdout.trim();
}

describe("a service", () => {
  it("gets a token by its secret, and uses it again without a user", async () => {
    const me = desk.newcomer();
    const first = await token(me, asService());
    expect(decodeJwt(first)).toMatchObject({ sub: machine.secretClient.clientId, aud: url });
    expect(await token(me, asService("--no-login"))).toBe(first);
    expect(tokenRequests(me)).toEqual(["POST /<pool>/token client_credentials 200"]);
    expect(me.asked().join()).not.toMatch(/authorize|register/);
  });

  it("asks again when its token has ended, with one request", async () => {
    const me = desk.newcomer();
    const first = await token(me, asService());
    await me.age(0);
    const before = me.asked().length;
    expect(await token(me, asService())).not.toBe(first);
    expect(me.asked().slice(before)).toEqual(["POST /<pool>/token client_credentials 200"]);
  });

  it("gets one by its key, from a file or from standard input, and keeps neither key nor secret", async () => {
    const me = desk.newcomer();
    const { clientId, privateKey, keyId } = machine.keyClient;
    const key = file("key.pem", privateKey);
    const flags = byGrant("client-credentials", clientId, "--key-id", keyId);
    await token(me, [...flags, "--private-key", key], {});
    const piped = await me.run(["token", url, ...flags, "--private-key", "-", "--force-refresh"], {
      stdin: privateKey,
    });
    expect([piped.code, piped.stderr]).toEqual([0, ""]);
    await token(me, asService());
    const kept = filesBelow(me.home)
      .map(({ text }) => text)
      .join();
    expect(kept).toContain("private_key_jwt");
    expect(kept).not.toContain("PRIVATE KEY");
    expect(kept).not.toContain(machine.secretClient.clientSecret);
  });

  it("is requested once by all runs at the same time", async () => {
    const me = desk.newcomer();
    const tokens = await Promise.all(Array.from({ length: 6 }, () => token(me, asService())));
    expect(new Set(tokens).size).toBe(1);
    expect(tokenRequests(me)).toHaveLength(1);
  });

  it.each<[string, () => { flags: string[]; env?: Record<string, string> }, RegExp]>([
    [
      "a wrong secret",
      () => ({ flags: asService(), env: { AGENTAUTH_CLIENT_SECRET: "wrong-secret-1" } }),
      /AGENTAUTH_CLIENT_SECRET/,
    ],
    [
      "the key of somebody else",
      () => {
        const { clientId, keyId } = machine.keyClient;
        const other = file("other.pem", otherKey);
        return { flags: byGrant("client-credentials", clientId, "--private-key", other, "--key-id", keyId), env: {} };
      },
      /public half of --private-key/,
    ],
    ["a client that nobody knows", () => ({ flags: byGrant("client-credentials", "nobody") }), /--client-id "nobody"/],
  ])("with %s gets the issuer's verdict and the fix, and is not asked for twice", async (_what, given, hint) => {
    const me = desk.newcomer();
    const { flags, env = SECRET() } = given();
    const { code, stdout, stderr } = await me.run(["token", url, ...flags], { env });
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toContain('"invalid_client"');
    expect(stderr).toMatch(hint);
    expect(tokenRequests(me)).toHaveLength(1);
    expect(me.asked().join()).not.toMatch(/authorize|register/);
  });

  it("steps up by itself for a tool that needs a scope", async () => {
    const me = desk.newcomer();
    const { code, stdout, stderr } = await me.run(["mcp", "call", url, "admin_report", ...asService()], {
      env: SECRET(),
    });
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("devices");
    expect((await me.grant()).tokens.scope).toBe("reports:read");
  });

  it("can use every command that takes a token", async () => {
    const me = desk.newcomer();
    const env = SECRET();
    const exec = await me.run(["exec", url, ...asService(), "--", "env"], {
      env: { ...env, AGENTAUTH_SUBJECT_TOKEN: "subject-1" },
    });
    const names = linesOf(exec.stdout).flatMap((line) => /^AGENTAUTH\w*/.exec(line) ?? []);
    expect(names.sort()).toEqual(["AGENTAUTH_BASE_URL", "AGENTAUTH_HOME", "AGENTAUTH_TOKEN"]);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
    const accept = ["-H", "Accept: application/json, text/event-stream"];
    expect((await me.run(["request", url, ...asService(), ...accept, "-d", body], { env })).code).toBe(0);
    expect((await me.run(["mcp", "tools", url, ...asService(), "-o", "id"], { env })).stdout).toContain("whoami");
    const introspected = await me.run(["introspect", url, ...asService(), "--json"], { env });
    expect(JSON.parse(introspected.stdout)).toMatchObject({ active: true, sub: machine.secretClient.clientId });
    expect(tokenRequests(me)).toHaveLength(1);
  });
});

describe("a workload", () => {
  it("gets a token by the assertion that its platform writes, which is read anew at each use", async () => {
    const me = desk.newcomer();
    const path = file("assertion.jwt", `${machine.assertion({ subject: "ci" })}\n`, 0o644);
    const first = await token(me, asWorkload(path), {});
    expect(decodeJwt(first)).toMatchObject({ sub: "ci" });
    file("assertion.jwt", machine.assertion({ subject: "ci", ttl: -1 }), 0o644);
    expect(await token(me, asWorkload(path), {})).toBe(first);
    await me.age(0);
    const late = await me.run(["token", url, ...asWorkload(path)]);
    expect([late.code, late.stdout]).toEqual([4, ""]);
    expect(late.stderr).toMatch(/invalid_grant(.|\n)*--assertion-file/);
    file("assertion.jwt", machine.assertion({ subject: "ci" }), 0o644);
    expect(await token(me, asWorkload(path), {})).not.toBe(first);
  });

  it("that becomes another one gets another token", async () => {
    const me = desk.newcomer();
    const path = file("identity.jwt", machine.assertion({ subject: "one" }));
    const subjects: unknown[] = [];
    for (const subject of ["one", "two", "one"]) {
      file("identity.jwt", machine.assertion({ subject }));
      subjects.push(decodeJwt(await token(me, asWorkload(path), {})).sub);
    }
    expect(subjects).toEqual(["one", "two", "one"]);
    expect(tokenRequests(me)).toHaveLength(2);
  });

  it("may find its assertion behind a link, as some platforms write it", async () => {
    const path = join(folder, "link.jwt");
    symlinkSync(file("real.jwt", machine.assertion(), 0o644), path);
    await token(desk.newcomer(), asWorkload(path), {});
  });

  it("for another issuer is not sent, and no other grant is tried", async () => {
    const me = desk.newcomer();
    const path = file("elsewhere.jwt", machine.assertion({ audience: "https://other.example" }));
    const { code, stderr } = await me.run(["token", url, ...asWorkload(path), "--client-secret-file", "-"], {
      stdin: "unused-secret",
    });
    expect(code).toBe(3);
    expect(stderr).toContain('is for "https://other.example" (aud)');
    expect(tokenRequests(me)).toEqual([]);
  });

  it.each<[string, () => string, RegExp]>([
    ["is not there", () => join(folder, "nowhere"), /cannot be read/],
    ["is a folder", () => folder, /not an ordinary file/],
    ["can be written by others", () => writable(), /can be written by others(.|\n)*chmod go-w/],
    ["holds something else", () => file("else.jwt", "hello-hello"), /is no JWT/],
  ])("whose assertion file %s is told so", async (_what, path, said) => {
    const { code, stdout, stderr } = await desk.newcomer().run(["token", url, ...asWorkload(path())]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(said);
    expect(stderr).not.toContain("hello-hello");
  });

  function writable(): string {
    const path = file("writable.jwt", machine.assertion());
    chmodSync(path, 0o666);
    return path;
  }
});

describe("the identity provider of a user", () => {
  const env = () => ({ ...SECRET(), AGENTAUTH_IDP_CLIENT_SECRET: machine.idp.clientSecret });

  it("vouches for them, by an id token of the environment or of a file", async () => {
    const me = desk.newcomer();
    const idToken = machine.idp.idToken({ subject: "carol" });
    plant("id_token", idToken);
    const first = await token(me, asPerson(), { ...env(), AGENTAUTH_ID_TOKEN: idToken });
    expect(decodeJwt(first)).toMatchObject({ sub: "carol", aud: url });
    const path = file("id-token", machine.idp.idToken({ subject: "carol" }));
    expect(await token(me, asPerson("--id-token-file", path), env())).toBe(first);
    expect(me.asked().filter((line) => line.includes("/token"))).toEqual([
      "POST /idp/token 200",
      "POST /<pool>/token urn:ietf:params:oauth:grant-type:jwt-bearer 200",
    ]);
  });

  it("that does not vouch is told with what helps, and the issuer is not asked", async () => {
    const me = desk.newcomer();
    const path = file("old-id-token", machine.idp.idToken({ ttl: -1 }));
    const { code, stderr } = await me.run(["token", url, ...asPerson("--id-token-file", path)], { env: env() });
    expect(code).toBe(4);
    expect(stderr).toMatch(/invalid_grant(.|\n)*AGENTAUTH_ID_TOKEN/);
    expect(me.asked().filter((line) => line.includes("/<pool>/token"))).toEqual([]);
  });
});

describe("a login", () => {
  it("of a user and tokens of machines are stored side by side", async () => {
    const me = desk.newcomer();
    await token(me, asService());
    const person = decodeJwt((await me.signIn()).stdout.trim());
    expect(person.sub).toBe("alice");
    expect(decodeJwt(await token(me, [], {})).sub).toBe("alice");
    expect(decodeJwt(await token(me, asService())).sub).toBe(machine.secretClient.clientId);
    const status = await me.run(["status", "-o", "plain"]);
    expect(status.stdout).toContain("client-credentials");
    expect(status.stdout).toContain("sign-in");
    expect((await me.run(["logout", url, ...asService()], { env: SECRET() })).code).toBe(0);
    expect((await me.grants()).map(({ account }) => account)).toEqual([undefined]);
  });

  it("is not what a grant is for, and the other way round", async () => {
    const me = desk.newcomer();
    const account = `grant:client_credentials:${machine.secretClient.clientId}`;
    for (const args of [
      ["login", url, ...asService()],
      ["login", url, "--account-hint", account],
      ["token", url, "--account-hint", account, "--login", "--browser", "none"],
    ]) {
      const { code, stdout, stderr } = await me.run(args, { env: SECRET() });
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toMatch(/hint: .*agentauth token .*--grant client-credentials/);
    }
    expect(me.asked()).toEqual([]);
  });

  it("ends for machines by their account, and for all at once", async () => {
    const me = desk.newcomer();
    await token(me, asService());
    await token(me, asWorkload(file("w.jwt", machine.assertion())), {});
    await me.signIn();
    const account = `grant:client_credentials:${machine.secretClient.clientId}`;
    await me.run(["logout", url, "--account-hint", account]);
    expect(await me.grants()).toHaveLength(2);
    const all = await me.run(["logout", "--all", "--json"]);
    expect(JSON.parse(all.stdout)).toHaveLength(2);
    expect(await me.grants()).toEqual([]);
  });
});

describe("secrets on the command line", () => {
  it("are refused, and not repeated", async () => {
    const me = desk.newcomer();
    const { clientId, privateKey } = machine.keyClient;
    const typed = await me.run(["token", url, ...byGrant("client-credentials", clientId, "--private-key", privateKey)]);
    expect(typed.code).toBe(2);
    expect(typed.stderr).toMatch(/must not be on the command line/);
    expect(typed.stderr).not.toContain(privateKey.split("\n")[1]);
  });

  it("that others can read in a file are refused, with the command that helps", async () => {
    const path = file("loose.pem", machine.keyClient.privateKey);
    chmodSync(path, 0o644);
    const flags = byGrant("client-credentials", machine.keyClient.clientId, "--private-key", path);
    const { code, stderr } = await desk.newcomer().run(["token", url, ...flags]);
    expect(code).toBe(8);
    expect(stderr).toContain(`hint: chmod 600 ${path}`);
  });
});

describe("the issuer of a client", () => {
  const plainly = (...more: string[]) => {
    const { clientId } = machine.secretClient;
    return ["token", url, "--grant", "client-credentials", "--client-id", clientId, ...more];
  };
  const env = (more: Record<string, string> = {}) => ({ ...SECRET(), ...more });

  it("has to be named once: by the flag that the refusal gives, a variable or a setting", async () => {
    const me = desk.newcomer();
    const { code, stdout, stderr } = await me.run(plainly(), { env: env() });
    expect([code, stdout]).toEqual([3, ""]);
    expect(stderr).toContain(`add --issuer ${machine.issuer} (`);
    expect(tokenRequests(me)).toEqual([]);
    const flag = /add (--issuer \S+) /.exec(stderr)?.[1]?.split(" ") ?? [];
    expect((await me.run(plainly(...flag), { env: env() })).code).toBe(0);
    expect((await me.run(plainly("--force-refresh"), { env: env() })).code).toBe(0);

    const inContainer = env({ AGENTAUTH_STORE: "memory" });
    expect((await me.run(plainly(), { env: inContainer })).code).toBe(3);
    const named = { ...inContainer, AGENTAUTH_ISSUER: machine.issuer };
    expect((await me.run(plainly(), { env: named })).code).toBe(0);
    await me.run(["config", "set", "issuer", machine.issuer]);
    expect((await me.run(plainly(), { env: inContainer })).code).toBe(0);
    const other = await me.run(plainly("--issuer", "https://other.example"), { env: named });
    expect([other.code, other.stderr]).toEqual([3, expect.stringContaining("https://other.example")]);
    const wrong = await me.run(plainly("--issuer", "http://other.example"), { env: env() });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("--issuer")]);
  });

  it("is shown with its source, and a stored token of another one is not printed", async () => {
    const me = desk.newcomer();
    await token(me, asService());
    const named = { AGENTAUTH_ISSUER: "https://other.example" };
    await me.signIn();
    expect((await me.run(["token", url, "--no-login"])).code).toBe(0);
    expect((await me.run(["token", url, "--no-login"], { env: named })).code).toBe(4);
    await me.run(["config", "set", "issuer", machine.issuer]);
    const list = await me.run(["config", "list", "-o", "plain"]);
    expect(list.stdout).toContain(`issuer\t${machine.issuer}\tprofile default`);
    expect((await me.run(["status"])).stderr).toContain(`issuer ${machine.issuer} (profile default)`);
    const doctor = await me.run(["doctor", "--json"], { env: named });
    const report = JSON.parse(doctor.stdout) as { settings: object[]; checks: object[] };
    const row = { name: "issuer", value: "https://other.example", source: "AGENTAUTH_ISSUER" };
    expect(report.settings).toContainEqual(row);
    expect(report.checks).toContainEqual(expect.objectContaining({ name: "issuer", state: "ok" }));
  });

  it("outlives logout --all, and is listed and forgotten by client list and client forget", async () => {
    const me = desk.newcomer();
    await token(me, asService());
    await me.run(["logout", "--all"], { env: env() });
    await token(me, plainly().slice(2));
    const { clientId } = machine.secretClient;
    const listed = JSON.parse((await me.run(["client", "list", "--json"])).stdout) as object[];
    expect(listed).toEqual([
      {
        client_id: clientId,
        issuer: machine.issuer,
        bound_by: "issuer",
        bound_at: expect.stringMatching(/^\d{4}-.*Z$/),
        profile: "default",
      },
    ]);
    expect(JSON.parse((await me.run(["client", "list", "--json", "--profile", "default"])).stdout)).toHaveLength(1);
    const kept = await me.run(["client", "forget", clientId]);
    expect([kept.code, kept.stderr]).toEqual([0, expect.stringContaining(`agentauth logout ${url}`)]);
    expect((await me.run(plainly(), { env: env() })).code).toBe(0);
    await me.run(["logout", "--all"], { env: env() });
    const gone = await me.run(["client", "forget", clientId, "--json"]);
    expect(JSON.parse(gone.stdout)).toEqual([{ client_id: clientId, removed: true, profile: "default" }]);
    expect(JSON.parse((await me.run(["client", "list", "--json"])).stdout)).toEqual([]);
    expect((await me.run(plainly(), { env: env() })).code).toBe(3);
  });
});
