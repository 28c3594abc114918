import { join } from "node:path";
import { expect } from "vitest";
import { runStatus, sourcesLine } from "../../../../src/cli/commands/status/run.js";
import { AgentAuthError } from "../../../../src/errors.js";
import type { Grant } from "../../../../src/oauth/model/grant.js";
import type { GrantStore } from "../../../../src/oauth/model/grant-store.js";
import { linesOf, runCli, temporaryFolder } from "../../../helpers/cli.js";
import { madeGrant } from "../../../helpers/grant.js";
import { writeGrantFile } from "../../../helpers/grant-files.js";
import { startRun } from "../../run-support.js";
import { harnessTest } from "../harness.js";

const it = harnessTest();

it("lists the stored logins, and exits with 0 where one can be used", async ({ harness, user }) => {
  await user.logIn();
  const { code, stdout, stderr } = await user.run(["status", "--json"]);
  expect([code, JSON.parse(stdout)]).toEqual([0, [expect.objectContaining({ server: harness.url, state: "valid" })]]);
  expect(stderr).toMatch(/^profile default \(default\), store file \(default\): \S+, readable by you alone\n$/);
  expect((await user.run(["status", harness.url, "-o", "table"])).stdout).toContain(harness.url);
});

it("has a column for each field, as it was approved", async ({ user }) => {
  const work = { profile: "work", account: "ann", overrides: ["allowPrivateNetwork"] } as const;
  await user.store.save(madeGrant(), undefined);
  const show = async (...args: string[]) => {
    const { code, stdout, stderr } = await user.run(["status", ...args]);
    expect([
      code,
      `\n${stdout}`.replaceAll(user.home, "<home>"),
      stderr.replaceAll(user.home, "<home>"),
    ]).toMatchSnapshot(args.join(" "));
  };
  for (const format of ["table", "wide", "csv", "json"]) await show("-o", format);
  await user.store.save(madeGrant({ ...work, overrides: [...work.overrides] }), undefined);
  for (const format of ["table", "wide"]) await show("--all", "-o", format);
  await show("--all", "-o", "table", "--account-hint", "ann");
});

it("cuts nothing that is copied, however narrow the terminal is", async ({ harness, user }) => {
  await user.store.save(madeGrant({ account: "ann@customer.example" }), undefined);
  const begun = await user.run(["login", harness.url, "--no-wait", "--flow", "paste", "--json"]);
  const { login_id: id } = JSON.parse(begun.stdout);
  for (const columns of [40, 60, 80, 100, 140, 200]) {
    const { stdout } = await user.run(["status", "--all"], { tty: true, columns });
    for (const url of ["https://mcp.example/mcp", harness.url]) expect(stdout).toContain(url);
    if (columns >= 80) for (const name of ["ann@customer.example", id]) expect(stdout).toContain(name);
    expect(stdout).not.toContain("…");
  }
});

it("names a login that was started, for the server, the account and the profile that it is for", async ({
  harness,
  user,
}) => {
  const started = await user.run([
    "login",
    harness.url,
    "--no-wait",
    "--flow",
    "paste",
    "--account-hint",
    "ann",
    "--json",
  ]);
  const { login_id: id } = JSON.parse(started.stdout);
  const shown = async (...args: string[]) => {
    const { code, stdout, stderr } = await user.run(["status", ...args, "--json"]);
    const ids = (JSON.parse(stdout) as { login_id: string }[]).map(({ login_id }) => login_id);
    const said = stderr.match(/^a login with the flow paste is pending until [-\dT:.]+Z: (.*)$/m)?.[1];
    expect(said).toBe(ids.length === 0 ? undefined : `agentauth login ${harness.url} --wait ${id} --account-hint ann`);
    return [code, ...ids];
  };
  expect(await shown()).toEqual([4, id]);
  expect(await shown(harness.url, "--account-hint", "ann")).toEqual([4, id]);
  expect(await shown(harness.url, "--account-hint", "bob")).toEqual([4]);
  expect(await shown("https://other.example/mcp")).toEqual([4]);
  await user.run(["config", "set", "pool", "p", "--profile", "work"]);
  expect(await shown("--profile", "work")).toEqual([4]);
  expect(await shown("--profile", "work", "--all")).toEqual([4, id]);
  const table = (await user.run(["status", "-o", "table"])).stdout.split("\n");
  expect(table[0]).toMatch(/ACCOUNT +LOGIN ID +FLOW$/);
  expect(table[1]).toMatch(new RegExp(`ann +${id} +paste$`));
});

it("lists the logins of all profiles by name, whatever order the store has", async ({ user }) => {
  await user.logIn();
  const [first] = await user.store.list();
  if (first === undefined) throw new Error("no login is stored");
  const names = ["k", "b", "z", "a", "m", "c"];
  for (const profile of names) await user.store.save({ ...first, profile }, undefined);
  for (const account of ["Bob", "Ann"]) await user.store.save({ ...first, profile: "k", account }, undefined);
  const { stdout } = await user.run(["status", "--all", "--json"]);
  const listed = (JSON.parse(stdout) as { profile: string; account: string | null }[]).map(
    ({ profile, account }) => profile + (account ?? ""),
  );
  expect(listed).toEqual([...names, "kAnn", "kBob", "default"].sort());
});

it("exits with 4 for a server without a login, and names the command that logs in", async ({ user }) => {
  await user.logIn();
  const other = "https://other.example/mcp";
  const { code, stdout, stderr } = await user.run(["status", other, "--json"]);
  expect([code, stdout]).toEqual([4, "[]\n"]);
  expect(stderr).toMatch(/^profile default \(default\), store file \(default\): .*\n/);
  expect(stderr.split("\n").slice(1)).toEqual([`Not logged in at ${other}. Run: agentauth login ${other}`, ""]);
});

it("exits with 4 where the issuer rejected the only login, and says why", async ({ user }) => {
  await user.logIn();
  await user.change(() => ({ retired: { at: Date.now(), reason: "invalid_grant" } }));
  const { code, stderr } = await user.run(["status"]);
  const server = (await user.store.list())[0]?.server;
  expect([code, stderr.split("\n").slice(1)]).toEqual([
    4,
    [`log in again at ${server}: the issuer rejected the login (invalid_grant)`, ""],
  ]);
});

it.for<[string, number, string]>([
  ["valid", 3600, "the token is used until it expires, then the refresh is tried again"],
  ["expired", -60, "the next use tries the refresh again"],
])("warns of a lost refresh of a login that is %s", async ([_state, seconds, words], { user }) => {
  await user.logIn();
  await user.change(({ tokens, generation }) => ({
    tokens: { ...tokens, expiresAt: Date.now() + seconds * 1000, obtainedAt: Date.now() - 7_200_000 },
    lostRefresh: { at: Date.now(), code: "network_failed", generation },
  }));
  const { code, stderr } = await user.run(["status"]);
  const [{ server, lostRefresh }] = (await user.store.list()) as [Grant];
  const at = new Date(lostRefresh?.at ?? 0).toISOString();
  expect([code, stderr.split("\n").slice(1)]).toEqual([
    0,
    [
      `warning: the answer to the refresh of the token for "${server}" was lost at ${at}: ${words}, and an issuer that rotates refresh tokens may require a new login`,
      "",
    ],
  ]);
});

it("exits with 8 where the only login cannot be read, and warns beside one that can", async ({ user }) => {
  const path = writeGrantFile(user.home, '{"schema": 99}');
  const warning = expect.stringContaining("warning: a stored login cannot be used: ");
  const alone = await user.run(["status"]);
  expect([alone.code, alone.stdout, alone.stderr]).toEqual([8, "", warning]);
  expect(alone.stderr).toContain(`hint: move it away: mv ${path} ${path}.broken`);
  await user.logIn();
  const both = await user.run(["status"]);
  expect([both.code, both.stderr]).toEqual([0, warning]);
});

it("refuses an address that is none", async ({ user }) => {
  const { code, stdout } = await user.run(["status", "nowhere"]);
  expect([code, stdout]).toEqual([2, ""]);
});

it("says which profile and store it looked at, and why", async () => {
  const home = temporaryFolder();
  const status = (env: Record<string, string>, ...args: string[]) =>
    runCli(["status", ...args], { env: { AGENTAUTH_HOME: home, ...env } });
  const plain = await status({});
  expect([plain.code, plain.stderr]).toEqual([
    4,
    `profile default (default), store file (default): ${home}, readable by you alone\n` +
      "Not logged in. Run: agentauth login <mcp_url>\n" +
      "Nothing is set up here yet. Without an account: agentauth demo\n" +
      "For lists of a service: agentauth config set base_url <url>\n",
  ]);
  await runCli(["config", "set", "pool", "p", "--profile", "work"], { env: { AGENTAUTH_HOME: home } });
  const chosen = await status({ AGENTAUTH_PROFILE: "work", AGENTAUTH_STORE: "memory" }, "--json");
  expect([chosen.code, chosen.stdout]).toEqual([4, "[]\n"]);
  expect(chosen.stderr).toMatch(/^profile work \(AGENTAUTH_PROFILE\), store memory \(AGENTAUTH_STORE\): /);
  expect((await status({}, "-q")).stderr).toBe("");
  const absent = await status({ AGENTAUTH_HOME: join(home, "absent") });
  expect(absent.stderr).toContain(`${join(home, "absent")}, which does not exist yet\n`);
  expect((await status({})).stderr).not.toContain("Nothing is set up");
});

it("shows the exceptions of a login as flags, in text and as JSON, and no column without any", async ({ user }) => {
  await user.logIn();
  expect((await user.run(["status", "-o", "table"])).stdout).not.toContain("EXCEPTIONS");
  await user.change(() => ({
    overrides: ["allowPrivateNetwork", "resource"],
    resource: "none",
    acceptedTokenType: "user",
  }));
  const exceptions = ["--allow-private-network", "--resource none", "--accept-token-type user"];
  const json = await user.run(["status", "--json"]);
  expect(JSON.parse(json.stdout)).toMatchObject([{ resource: "none", exceptions }]);
  const text = await user.run(["status", "-o", "ndjson"]);
  for (const flag of exceptions) expect(text.stdout).toContain(flag);
  const plain = await user.run(["status", "-o", "plain"]);
  expect(plain.stdout).toContain(JSON.stringify(exceptions));
  expect((await user.run(["status", "-o", "table"])).stdout).toContain(exceptions.join(", "));
});

it("lists the logins of an engine in its order, a page at a time, and says the same of them", async ({ user }) => {
  await user.logIn();
  const [first] = await user.store.list();
  if (first === undefined) throw new Error("no login is stored");
  const retired = { at: 1, reason: "invalid_grant" };
  const statusOf = async (...grants: (Grant | Error)[]) => {
    const { context, io } = startRun({}, { all: true });
    async function* connections({ onUnusable }: { onUnusable(error: unknown): void }) {
      for (const grant of grants) {
        if (grant instanceof Error) onUnusable(grant);
        else yield { items: [grant], cursor: undefined };
      }
    }
    const read = async ({ profile }: Grant) =>
      grants.find((grant) => !(grant instanceof Error) && grant.profile === profile && profile !== "gone");
    const store = { location: "the engine", connections, read } as unknown as GrantStore;
    Object.assign(context, { store: async () => store, storeChoice: () => ({ value: "redis", source: "default" }) });
    const code = await runStatus({ all: true, output: "ndjson" }, context);
    const table = startRun({}, { all: true });
    Object.assign(table.context, { store: async () => store, storeChoice: context.storeChoice });
    expect(await runStatus({ all: true, output: "table" }, table.context)).toBe(code);
    if (grants.some((grant) => !(grant instanceof Error))) {
      expect(table.io.out()).toMatch(/^PROFILE +SERVER +STATE +EXPIRES +REFRESHABLE +GRANT +SCOPE +ISSUER +ACCOUNT\n/);
    }
    const logins = linesOf(io.out()).map((line) => JSON.parse(line) as { profile: string; stored_in: string });
    return { code, logins: logins.map((one) => `${one.profile} in ${one.stored_in}`), said: io.err() };
  };
  const sources = expect.stringContaining("all profiles (--all), store ");
  const unusable = new AgentAuthError("store_failed", "a login cannot be read", { class: "store" });

  const both = await statusOf({ ...first, profile: "work", retired }, { ...first, profile: "gone" }, first);
  expect(both).toEqual({ code: 0, logins: ["work in the engine", "default in the engine"], said: sources });
  expect(both.said).toContain("the issuer rejected the login (invalid_grant)\n");
  expect(both.said).toContain(": the engine");
  expect(both.said).not.toContain("Not logged in");
  expect((await statusOf({ ...first, retired })).code).toBe(4);
  expect(await statusOf()).toMatchObject({
    code: 4,
    logins: [],
    said: expect.stringContaining("Not logged in. Run: agentauth login <mcp_url>\n"),
  });
  const broken = await statusOf(unusable);
  expect(broken).toMatchObject({ code: 8, said: expect.stringContaining("a login cannot be read") });
  expect(broken.said).not.toContain("Not logged in");
  expect((await statusOf(unusable, first)).code).toBe(0);
});

it("says of which issuer the logins are, and looks at those of a tenant", async ({ user }) => {
  await user.run(["config", "set", "issuer", "https://issuer.example"]);
  const { stderr } = await user.run(["status"]);
  expect(stderr.split("\n")[0]).toBe(
    `profile default (settings file), issuer https://issuer.example (profile default), store file (default): ${user.home}, readable by you alone`,
  );
  const { context } = startRun({ env: { AGENTAUTH_HOME: user.home } }, {});
  expect(sourcesLine(context.settings(), context)).toBe(stderr.split("\n")[0]);
  const other = context.with.bind(context);
  const tenants: unknown[] = [];
  const asked: typeof context.with = (changes) => {
    tenants.push(changes.io?.env["AGENTAUTH_STORE_TENANT"]);
    return other(changes);
  };
  expect(await runStatus({ tenant: "acme" }, Object.assign(context, { with: asked }))).toBe(4);
  expect(tenants).toEqual(["acme"]);
});
