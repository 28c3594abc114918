import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { removeOwnToken, storeToken, tokenPath } from "../../../src/cli/config/effective.js";
import { changeConfig } from "../../../src/profile/change-config.js";
import { runCli, temporaryFolder } from "../../helpers/cli.js";

const PROFILE = {
  base_url: "https://a.example",
  api_token: "env:MY_TOKEN",
  auth_header: "X-Key",
  sorting: "json",
  issuer: "https://as.example",
  account: "acc",
  domain: "dom",
  pool: "pool",
  store: "file",
  store_fallback: "file",
  store_url: "env:STORE_URL",
  store_keys: "env:STORE_KEYS",
  store_takeover: "fast",
  store_tenant: "tenant",
  client_cert: "c.pem",
  client_key: "k.pem",
  use_system_ca: "yes",
  client_metadata_url: "https://c.example/client.json",
  audit: "file:/tmp/audit",
};
const VARIABLES = {
  AGENTAUTH_BASE_URL: "https://env.example",
  AGENTAUTH_API_TOKEN: "tok_0123456789",
  AGENTAUTH_ISSUER: "https://env-as.example",
  AGENTAUTH_STORE: "memory",
  AGENTAUTH_STORE_URL: "redis://secret@a.example",
  AGENTAUTH_STORE_KEYS: "none",
  AGENTAUTH_STORE_TAKEOVER: "patient",
  AGENTAUTH_STORE_TENANT: "env-tenant",
  AGENTAUTH_AUDIT: "file:/tmp/env-audit",
};
const FLAGS = "--base-url https://flag.example --client-cert f.pem --client-key g.pem --use-system-ca".split(" ");

/** What `config list` prints, a row a line. */
async function listed(config: object | undefined, flags: readonly string[], env: Record<string, string>) {
  const home = join(temporaryFolder(), "home");
  if (config !== undefined) {
    mkdirSync(home, { mode: 0o700 });
    writeFileSync(join(home, "config.json"), JSON.stringify(config, null, 2), { mode: 0o600 });
  }
  const { code, stdout, stderr } = await runCli(["config", "list", "--json", ...flags], {
    env: { AGENTAUTH_HOME: home, ...env },
  });
  expect([code, stderr]).toEqual([0, ""]);
  return (JSON.parse(stdout) as object[]).map((row) => JSON.stringify(row).replaceAll(home, "<home>"));
}

it("the settings of nothing have their sources", async () => {
  expect(await listed(undefined, [], {})).toMatchSnapshot();
});

it.each<[string, object | undefined, string[], Record<string, string>]>([
  ["an empty file", {}, [], {}],
  ["a profile", { profiles: { default: PROFILE } }, [], {}],
  ["the profile of the file", { profile: "work", profiles: { work: PROFILE } }, [], {}],
  [
    "the profile of a flag",
    { profile: "work", profiles: { work: {}, "a-profile": PROFILE } },
    ["--profile", "a-profile"],
    {},
  ],
  ["the profile of a variable", { profiles: { work: { pool: "p" } } }, [], { AGENTAUTH_PROFILE: "work" }],
  ["variables, which come before the profile", { profiles: { default: PROFILE } }, [], VARIABLES],
  ["flags, which come before variables", { profiles: { default: PROFILE } }, FLAGS, VARIABLES],
])("the settings of %s have their sources", async (_what, config, flags, env) => {
  const [rows, defaults] = [await listed(config, flags, env), await listed(undefined, [], {})];
  expect(rows).toHaveLength(defaults.length);
  expect(rows.filter((row) => !defaults.includes(row))).toMatchSnapshot();
});

const never = new AbortController().signal;

describe("the file of a token", () => {
  it("has a name that no two profiles share, and that no system takes for a device", () => {
    const names = ["work", "Work", "con", "../x"].map((profile) => tokenPath("/home", profile));
    expect(new Set(names).size).toBe(4);
    for (const name of names) expect(name).toMatch(/^[/\\]home[/\\]tokens[/\\][\da-f]{40}$/);
  });

  it("is removed with its profile, unless it is the user's or another profile has it", async () => {
    const home = temporaryFolder();
    const reference = storeToken(home, "work", "tok");
    const path = tokenPath(home, "work");
    expect([reference, readFileSync(path, "utf8"), statSync(path).mode & 0o777]).toEqual([
      `file:${path}`,
      "tok\n",
      0o600,
    ]);
    removeOwnToken(home, "work", undefined);
    removeOwnToken(home, "work", "file:/elsewhere");
    removeOwnToken(home, "other", reference);
    expect(existsSync(path)).toBe(true);
    await changeConfig(home, (config) => ({ ...config, profiles: { copy: { api_token: reference } } }), never);
    removeOwnToken(home, "work", reference);
    expect(existsSync(path)).toBe(true);
    await changeConfig(home, (config) => ({ ...config, profiles: { copy: { api_token: "env:X" } } }), never);
    removeOwnToken(home, "work", reference);
    expect(existsSync(path)).toBe(false);
    removeOwnToken(home, "work", reference);
  });
});
