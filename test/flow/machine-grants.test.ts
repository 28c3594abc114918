import { generateKeyPairSync } from "node:crypto";
import { chmodSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { describe, expect, onTestFinished } from "vitest";
import type { SandboxMachine } from "../../src/sandbox/index.js";
import { plant } from "../helpers/canaries.js";
import { linesOf, temporaryFolder } from "../helpers/cli.js";
import { Peer } from "../helpers/peer.js";
import { type MachineFixtures, machineTest, tokenRequests } from "./machine-support.js";
import { filesBelow } from "./support.js";

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

const it = machineTest().extend("token", ({ me, secretEnv, url }) => {
  return async (flags: readonly string[], env: Record<string, string> = secretEnv) => {
    const { code, stdout, stderr } = await me.run(["token", url, ...flags], { env });
    expect([code, stderr]).toEqual([0, ""]);
    return stdout.trim();
  };
});

describe("a service", () => {
  it("gets a token by its secret, and uses it again without a user", async ({ as, machine, me, token, url }) => {
    const first = await token(as.service());
    expect(decodeJwt(first)).toMatchObject({ sub: machine.secretClient.clientId, aud: url });
    expect(await token(as.service("--no-login"))).toBe(first);
    expect(tokenRequests(me)).toEqual(["POST /<pool>/token client_credentials 200"]);
    expect(me.requests().join()).not.toMatch(/authorize|register/);
  });

  it("requests a new token with one request when its token has expired", async ({ as, me, token }) => {
    const first = await token(as.service());
    await me.age(0);
    const before = me.requests().length;
    expect(await token(as.service())).not.toBe(first);
    expect(me.requests().slice(before)).toEqual(["POST /<pool>/token client_credentials 200"]);
  });

  it("gets one by its key, from a file or from standard input, and stores neither key nor secret", async ({
    as,
    machine,
    me,
    token,
    url,
  }) => {
    const { clientId, privateKey } = machine.keyClient;
    const key = file("key.pem", privateKey);
    const flags = as.client("client-credentials", clientId);
    await token([...flags, "--private-key", key], {});
    const piped = await me.run(["token", url, ...flags, "--private-key", "-", "--force-refresh"], {
      stdin: privateKey,
    });
    expect([piped.code, piped.stderr]).toEqual([0, ""]);
    await token(as.service());
    const kept = filesBelow(me.home)
      .map(({ text }) => text)
      .join();
    expect(kept).toContain("private_key_jwt");
    expect(kept).not.toContain("PRIVATE KEY");
    expect(kept).not.toContain(machine.secretClient.clientSecret);
  });

  it("is requested once by all runs at the same time", async ({ as, me, token }) => {
    const tokens = await Promise.all(Array.from({ length: 6 }, () => token(as.service())));
    expect(new Set(tokens).size).toBe(1);
    expect(tokenRequests(me)).toHaveLength(1);
  });

  it.for<[string, (of: MachineFixtures) => { flags: string[]; env?: Record<string, string> }, RegExp]>([
    [
      "a wrong secret",
      ({ as }) => ({ flags: as.service(), env: { AGENTAUTH_CLIENT_SECRET: "wrong-secret-1" } }),
      /AGENTAUTH_CLIENT_SECRET/,
    ],
    [
      "the key of another client",
      ({ as, machine }) => {
        const { clientId } = machine.keyClient;
        const other = file("other.pem", otherKey);
        return {
          flags: as.client("client-credentials", clientId, "--private-key", other),
          env: {},
        };
      },
      /public half of --private-key/,
    ],
    ["an unknown client", ({ as }) => ({ flags: as.client("client-credentials", "unknown") }), /--client-id "unknown"/],
  ])(
    "with %s gets the issuer's error and the remedy after one request, or two for both methods of a secret",
    async ([, given, hint], { as, machine, me, secretEnv, url }) => {
      const { flags, env = secretEnv } = given({ as, machine });
      const { code, stdout, stderr } = await me.run(["token", url, ...flags], { env });
      expect([code, stdout]).toEqual([4, ""]);
      expect(stderr).toContain('"invalid_client"');
      expect(stderr).toMatch(hint);
      expect(tokenRequests(me)).toHaveLength(flags.includes("--private-key") ? 1 : 2);
      expect(me.requests().join()).not.toMatch(/authorize|register/);
    },
  );

  it("steps up by itself for a tool that needs a scope", async ({ as, me, secretEnv, url }) => {
    const login = await me.run(["login", url, ...as.service()], { env: secretEnv });
    expect([login.code, login.stdout, login.stderr]).toEqual([
      0,
      "",
      expect.stringContaining("stored the grant client-credentials for"),
    ]);
    const { code, stdout, stderr } = await me.run(["mcp", "call", url, "admin_report"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("devices");
    expect((await me.grant()).tokens.scope).toBe("reports:read");
  });

  it("can use every command that takes a token", async ({ as, machine, me, secretEnv, url }) => {
    const env = secretEnv;
    expect(await me.run(["login", url, ...as.service()], { env })).toMatchObject({ code: 0 });
    const exec = await me.run(["exec", url, ...as.service(), "--", "env"], {
      env: { ...env, AGENTAUTH_SUBJECT_TOKEN: "subject-1" },
    });
    const names = linesOf(exec.stdout).flatMap((line) => /^AGENTAUTH\w*/.exec(line) ?? []);
    expect(names.sort()).toEqual(["AGENTAUTH_BASE_URL", "AGENTAUTH_HOME", "AGENTAUTH_TOKEN"]);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
    const accept = ["-H", "Accept: application/json, text/event-stream"];
    expect((await me.run(["request", url, ...accept, "-d", body])).code).toBe(0);
    expect((await me.run(["mcp", "tools", url, "-o", "id"])).stdout).toContain("whoami");
    const introspected = await me.run(["introspect", url, "--json"]);
    expect(JSON.parse(introspected.stdout)).toMatchObject({ active: true, sub: machine.secretClient.clientId });
    expect(tokenRequests(me)).toHaveLength(1);
  });
});

describe("a workload", () => {
  it("gets a token by the assertion that its platform writes, which is read again on every use", async ({
    as,
    machine,
    me,
    token,
    url,
  }) => {
    const path = file("assertion.jwt", `${machine.assertion({ subject: "ci" })}\n`, 0o644);
    const first = await token(as.workload(path), {});
    expect(decodeJwt(first)).toMatchObject({ sub: "ci" });
    file("assertion.jwt", machine.assertion({ subject: "ci", ttlSeconds: -1 }), 0o644);
    expect(await token(as.workload(path), {})).toBe(first);
    await me.age(0);
    const late = await me.run(["token", url, ...as.workload(path)]);
    expect([late.code, late.stdout]).toEqual([4, ""]);
    expect(late.stderr).toMatch(/invalid_grant(.|\n)*--assertion <source>/);
    file("assertion.jwt", machine.assertion({ subject: "ci" }), 0o644);
    expect(await token(as.workload(path), {})).not.toBe(first);
  });

  it("that becomes another one gets another token", async ({ as, machine, me, token }) => {
    const path = file("identity.jwt", machine.assertion({ subject: "one" }));
    const subjects: unknown[] = [];
    for (const subject of ["one", "two", "one"]) {
      file("identity.jwt", machine.assertion({ subject }));
      subjects.push(decodeJwt(await token(as.workload(path), {})).sub);
    }
    expect(subjects).toEqual(["one", "two", "one"]);
    expect(tokenRequests(me)).toHaveLength(2);
  });

  it("may find its assertion behind a link, as some platforms write it", async ({ as, machine, token }) => {
    const path = join(folder, "link.jwt");
    symlinkSync(file("real.jwt", machine.assertion(), 0o644), path);
    await token(as.workload(path), {});
  });

  it("needs neither a client nor a secret: its platform is asked once for each token", async ({
    as,
    machine,
    me,
    token,
    url,
  }) => {
    const platform = await new Peer("platform", []).start();
    onTestFinished(() => platform.close());
    platform.routes["/oidc"] = { json: { value: machine.assertion({ subject: "repo:o/r" }) } };
    const flags = ["--grant", "jwt-bearer", "--issuer", machine.issuer, "--assertion", "github-actions"];
    const env = {
      ACTIONS_ID_TOKEN_REQUEST_URL: `${platform.origin}/oidc`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: "runner-secret-1",
    };
    const first = await token(flags, env);
    expect(decodeJwt(first)).toMatchObject({ sub: "repo:o/r", aud: url });
    expect(await token(flags, env)).toBe(first);
    expect(platform.requests.map((seen) => seen.url)).toEqual([`/oidc?audience=${encodeURIComponent(machine.issuer)}`]);
    const account = /^grant:jwt_bearer:[0-9a-f]{16}$/;
    expect((await me.grants()).map((grant) => grant.account)).toEqual([expect.stringMatching(account)]);
    const wanted = await me.run(["token", url, ...flags, "--assertion-audience", "sts.example", "--force-refresh"], {
      env,
    });
    expect([wanted.code, wanted.stderr]).toEqual([3, expect.stringContaining('its aud must be "sts.example" alone')]);
    expect(filesBelow(me.home).some(({ text }) => text.includes("runner-secret-1"))).toBe(false);
    expect((await me.run(["logout", url])).code).toBe(0);
    expect(await me.grants()).toEqual([]);
    expect(await token(as.workload(file("client.jwt", machine.assertion())), {})).not.toBe(first);
  });
});

describe("the identity provider of a user", () => {
  const secretsOf = ({ secretClient, idp }: SandboxMachine) => ({
    AGENTAUTH_CLIENT_SECRET: secretClient.clientSecret,
    AGENTAUTH_IDP_CLIENT_SECRET: idp.clientSecret,
  });

  it("issues an assertion for them, by an ID token of the environment or of a file", async ({
    as,
    machine,
    me,
    token,
    url,
  }) => {
    const idToken = machine.idp.idToken({ subject: "carol" });
    plant("id_token", idToken);
    const first = await token(as.user(), { ...secretsOf(machine), AGENTAUTH_ID_TOKEN: idToken });
    expect(decodeJwt(first)).toMatchObject({ sub: "carol", aud: url });
    const path = file("id-token", machine.idp.idToken({ subject: "carol" }));
    expect(await token(as.user(), { ...secretsOf(machine), AGENTAUTH_ID_TOKEN: `file:${path}` })).toBe(first);
    expect(me.requests().filter((line) => line.includes("/token"))).toEqual([
      "POST /idp/token urn:ietf:params:oauth:grant-type:token-exchange 200",
      "POST /<pool>/token urn:ietf:params:oauth:grant-type:jwt-bearer 200",
    ]);
  });

  it("that refuses is reported with the remedy, and the issuer gets no request", async ({ as, machine, me, url }) => {
    const path = file("old-id-token", machine.idp.idToken({ ttlSeconds: -1 }));
    const env = { ...secretsOf(machine), AGENTAUTH_ID_TOKEN: `file:${path}` };
    const { code, stderr } = await me.run(["token", url, ...as.user()], { env });
    expect(code).toBe(4);
    expect(stderr).toMatch(/invalid_grant(.|\n)*AGENTAUTH_ID_TOKEN/);
    expect(me.requests().filter((line) => line.includes("/<pool>/token"))).toEqual([]);
  });
});

describe("a login", () => {
  it("of a user and tokens of machines are stored side by side", async ({ as, machine, me, token, url }) => {
    await token(as.service());
    const person = decodeJwt((await me.logIn()).stdout.trim());
    expect(person.sub).toBe("alice");
    expect(decodeJwt(await token([], {})).sub).toBe("alice");
    expect(decodeJwt(await token(as.service())).sub).toBe(machine.secretClient.clientId);
    const status = await me.run(["status", "-o", "plain"]);
    expect(status.stdout).toContain("client-credentials");
    expect(status.stdout).toContain("login\t");
    expect(
      (await me.run(["logout", url, "--account-hint", `grant:client_credentials:${machine.secretClient.clientId}`]))
        .code,
    ).toBe(0);
    expect((await me.grants()).map(({ account }) => account)).toEqual([undefined]);
  });

  it("and a machine grant exclude each other", async ({ machine, me, secretEnv, url }) => {
    const account = `grant:client_credentials:${machine.secretClient.clientId}`;
    for (const args of [
      ["login", url, "--account-hint", account],
      ["token", url, "--account-hint", account, "--login", "--browser", "none"],
    ]) {
      const { code, stdout, stderr } = await me.run(args, { env: secretEnv });
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toMatch(/hint: .*agentauth token .*--grant client-credentials/);
    }
    expect(me.requests()).toEqual([]);
  });

  it("ends for machines by their account, and for all at once", async ({ as, machine, me, token, url }) => {
    await token(as.service());
    await token(as.workload(file("w.jwt", machine.assertion())), {});
    await me.logIn();
    const account = `grant:client_credentials:${machine.secretClient.clientId}`;
    await me.run(["logout", url, "--account-hint", account]);
    expect(await me.grants()).toHaveLength(2);
    const all = await me.run(["logout", "--all", "--json"]);
    expect(JSON.parse(all.stdout)).toHaveLength(2);
    expect(await me.grants()).toEqual([]);
  });
});

describe("a secret", () => {
  it.for<[string, (machine: SandboxMachine) => { flags?: string[]; env?: Record<string, string> }]>([
    [
      "a variable with a reference to a file",
      ({ secretClient }) => ({
        env: { AGENTAUTH_CLIENT_SECRET: `file:${file("referenced", secretClient.clientSecret)}` },
      }),
    ],
    [
      "a variable with a command",
      ({ secretClient }) => ({
        env: { AGENTAUTH_CLIENT_SECRET: `exec:cat ${file("printed", `${secretClient.clientSecret}\n`)}` },
      }),
    ],
    [
      "a flag with a reference to a variable",
      ({ secretClient }) => ({
        flags: ["--client-secret-file", "env:MY_SECRET"],
        env: { MY_SECRET: secretClient.clientSecret },
      }),
    ],
  ])("may be named by %s", async ([_what, given], { as, machine, token }) => {
    const { flags = [], env = {} } = given(machine);
    expect(decodeJwt(await token(as.service(...flags), env)).sub).toBe(machine.secretClient.clientId);
  });

  it("may be a key in a variable", async ({ as, machine, token }) => {
    const { clientId, privateKey } = machine.keyClient;
    const flags = as.client("client-credentials", clientId, "--private-key", "env:MY_KEY");
    expect(decodeJwt(await token(flags, { MY_KEY: privateKey })).sub).toBe(clientId);
  });
});

describe("secrets on the command line", () => {
  it("are refused, and not repeated", async ({ as, machine, me, url }) => {
    const { clientId, privateKey } = machine.keyClient;
    const typed = await me.run([
      "token",
      url,
      ...as.client("client-credentials", clientId, "--private-key", privateKey),
    ]);
    expect(typed.code).toBe(2);
    expect(typed.stderr).toMatch(/must not be on the command line/);
    expect(typed.stderr).not.toContain(privateKey.split("\n")[1]);
  });

  it("that others can read in a file are refused, with the command that helps", async ({ as, machine, me, url }) => {
    const path = file("loose.pem", machine.keyClient.privateKey);
    chmodSync(path, 0o644);
    const flags = as.client("client-credentials", machine.keyClient.clientId, "--private-key", path);
    const { code, stderr } = await me.run(["token", url, ...flags]);
    expect(code).toBe(8);
    expect(stderr).toContain(`hint: chmod 600 ${path}`);
  });
});

describe("the issuer of a client", () => {
  const plainly = ({ secretClient }: SandboxMachine, ...more: string[]) => [
    "--grant",
    "client-credentials",
    "--client-id",
    secretClient.clientId,
    ...more,
  ];

  it("has to be named once: by the flag that the error suggests, a variable or a setting", async ({
    machine,
    me,
    secretEnv,
    url,
  }) => {
    const { code, stdout, stderr } = await me.run(["token", url, ...plainly(machine)], { env: secretEnv });
    expect([code, stdout]).toEqual([3, ""]);
    expect(stderr).toContain(`add --issuer ${machine.issuer} (`);
    expect(tokenRequests(me)).toEqual([]);
    const flag = /add (--issuer \S+) /.exec(stderr)?.[1]?.split(" ") ?? [];
    expect((await me.run(["token", url, ...plainly(machine, ...flag)], { env: secretEnv })).code).toBe(0);
    expect((await me.run(["token", url, ...plainly(machine, "--force-refresh")], { env: secretEnv })).code).toBe(0);

    const inContainer = { ...secretEnv, AGENTAUTH_STORE: "memory" };
    expect((await me.run(["token", url, ...plainly(machine)], { env: inContainer })).code).toBe(3);
    const named = { ...inContainer, AGENTAUTH_ISSUER: machine.issuer };
    expect((await me.run(["token", url, ...plainly(machine)], { env: named })).code).toBe(0);
    await me.run(["config", "set", "issuer", machine.issuer]);
    expect((await me.run(["token", url, ...plainly(machine)], { env: inContainer })).code).toBe(0);
    const other = await me.run(["token", url, ...plainly(machine, "--issuer", "https://other.example")], {
      env: named,
    });
    expect([other.code, other.stderr]).toEqual([3, expect.stringContaining("https://other.example")]);
    const wrong = await me.run(["token", url, ...plainly(machine, "--issuer", "http://other.example")], {
      env: secretEnv,
    });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("--issuer")]);
  });

  it("is shown with its source, and a stored token of another one is not printed", async ({
    as,
    machine,
    me,
    token,
    url,
  }) => {
    await token(as.service());
    const named = { AGENTAUTH_ISSUER: "https://other.example" };
    await me.logIn();
    expect((await me.run(["token", url, "--no-login"])).code).toBe(0);
    expect((await me.run(["token", url, "--no-login"], { env: named })).code).toBe(4);
    await me.run(["config", "set", "issuer", machine.issuer]);
    const list = await me.run(["config", "list", "-o", "plain"]);
    expect(list.stdout).toContain(`issuer\t${machine.issuer}\tprofile default`);
    expect((await me.run(["status"])).stderr).toContain(`issuer ${machine.issuer} (profile default)`);
    const doctor = await me.run(["doctor", "--json"], { env: named });
    const report = JSON.parse(doctor.stdout) as { settings: object[] };
    const row = { name: "issuer", value: "https://other.example", source: "AGENTAUTH_ISSUER" };
    expect(report.settings).toContainEqual(row);
  });

  it("ends with the last login of the client", async ({ as, machine, me, secretEnv, token, url }) => {
    await token(as.service());
    expect((await me.run(["token", url, ...plainly(machine)], { env: secretEnv })).code).toBe(0);
    await me.run(["logout", "--all"], { env: secretEnv });
    expect((await me.run(["token", url, ...plainly(machine)], { env: secretEnv })).code).toBe(3);
  });
});
