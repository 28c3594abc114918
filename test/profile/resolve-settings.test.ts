import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { flagText } from "../../src/cli/flags/flag-name.js";
import { resolveSettings } from "../../src/profile/resolve-settings.js";
import type { SettingFlags } from "../../src/profile/settings.js";
import { type Config, readConfig, writeSandboxState } from "../../src/profile/settings-file.js";
import { temporaryFolder } from "../helpers/cli.js";

const CONFIG: Config = {
  schema: 1,
  profile: "default",
  profiles: {
    default: {
      base_url: "https://default.example/",
      api_token: "env:DEFAULT_TOKEN",
      pool: "pool_default",
      output: "json",
    },
    other: { base_url: "https://other.example", pool: "pool_other", auth_header: "X-Api-Key" },
    tokenless: { api_token: "env:LONELY_TOKEN" },
  },
};
const resolve = (flags: SettingFlags = {}, env: Record<string, string> = {}, config = CONFIG, home = "/nowhere") =>
  resolveSettings(flags, env, config, home, flagText);

describe("flag before environment before profile before default", () => {
  it("the base URL", () => {
    const env = { AGENTAUTH_BASE_URL: "https://env.example" };
    expect(resolve({ baseUrl: "https://flag.example" }, env).baseUrl).toEqual({
      value: "https://flag.example",
      source: "--base-url",
    });
    expect(resolve({}, env).baseUrl).toEqual({ value: "https://env.example", source: "AGENTAUTH_BASE_URL" });
    expect(resolve().baseUrl).toEqual({ value: "https://default.example", source: "profile default" });
    expect(resolve({}, {}, { ...CONFIG, profiles: {} }).baseUrl).toBeUndefined();
  });

  it("the profile", () => {
    const config = { ...CONFIG, profile: "other" };
    expect(resolve({ profile: "default" }, { AGENTAUTH_PROFILE: "other" }).profile).toEqual({
      value: "default",
      source: "--profile",
    });
    expect(resolve({}, { AGENTAUTH_PROFILE: "other" }).profile).toEqual({
      value: "other",
      source: "AGENTAUTH_PROFILE",
    });
    expect(resolve({}, {}, config).profile).toEqual({ value: "other", source: "settings file" });
    expect(resolve({}, {}, config).pool).toEqual({ value: "pool_other", source: "profile other" });
  });

  it("scopes and the format", () => {
    const given = resolve({ pool: "pool_flag", output: "csv" });
    expect([given.pool, given.output]).toEqual([
      { value: "pool_flag", source: "--pool" },
      { value: "csv", source: "--output" },
    ]);
    expect([resolve().pool, resolve().output, resolve().domain]).toEqual([
      { value: "pool_default", source: "profile default" },
      { value: "json", source: "profile default" },
      undefined,
    ]);
  });

  it("every setting of a profile, or its flag or its variable", () => {
    const entries = {
      issuer: "https://as.example",
      auth_header: "X-Api-Key",
      sorting: "json",
      authorize_params: "a=b",
      account: "acc",
      domain: "dom",
      pool: "pool",
      output: "csv",
      client_cert: "/cert.pem",
      client_key: "/key.pem",
      use_system_ca: "no",
      client_metadata_url: "https://c.example/a.json",
      audit: "file:/audit.log",
    };
    const config: Config = { ...CONFIG, profiles: { default: entries } };
    const from = (value: string) => ({ value, source: "profile default" });
    const profile = { value: "default", source: "settings file" };
    expect(resolve({}, {}, config)).toEqual({
      profile,
      isNewProfile: false,
      baseUrl: undefined,
      apiToken: undefined,
      issuer: from("https://as.example"),
      authHeader: from("X-Api-Key"),
      sorting: from("json"),
      authorizeParam: from("a=b"),
      account: from("acc"),
      domain: from("dom"),
      pool: from("pool"),
      output: from("csv"),
      clientCert: from("/cert.pem"),
      clientKey: from("/key.pem"),
      useSystemCa: from("no"),
      clientMetadataUrl: from("https://c.example/a.json"),
      audit: from("file:/audit.log"),
    });
    const flags = {
      issuer: "https://flag.example",
      account: "1",
      domain: "2",
      pool: "3",
      output: "id",
      clientCert: "4",
      clientKey: "5",
      useSystemCa: true,
      clientMetadataUrl: "none",
    } as const;
    const env = { AGENTAUTH_AUDIT: "file:/b", AGENTAUTH_ISSUER: "https://env.example" };
    expect(resolve(flags, env, config)).toMatchObject({
      issuer: { value: "https://flag.example", source: "--issuer" },
      account: { value: "1", source: "--account" },
      domain: { value: "2", source: "--domain" },
      pool: { value: "3", source: "--pool" },
      output: { value: "id", source: "--output" },
      clientCert: { value: "4", source: "--client-cert" },
      clientKey: { value: "5", source: "--client-key" },
      useSystemCa: { value: "yes", source: "--use-system-ca" },
      clientMetadataUrl: { value: "none", source: "--client-metadata-url" },
      audit: { value: "file:/b", source: "AGENTAUTH_AUDIT" },
    });
    expect(resolve({}, env, config).issuer).toEqual({ value: "https://env.example", source: "AGENTAUTH_ISSUER" });
    expect(resolve({ clientCert: "4" }, {}, config).clientKey).toBeUndefined();
  });

  it("what is wrong is an error, or counts as not set where the caller takes the error", () => {
    const env = { AGENTAUTH_BASE_URL: "ftp://x.example" };
    const message = expect.stringMatching(/^AGENTAUTH_BASE_URL "ftp:/);
    expect(() => resolve({}, env)).toThrow(expect.objectContaining({ code: "usage", message }));
    const wrong: unknown[] = [];
    const onWrong = (setting: string, error: Error) => wrong.push(setting, error.message);
    const settings = resolveSettings({ profile: "nope" }, env, CONFIG, "/nowhere", flagText, { onWrong });
    expect([settings.baseUrl, settings.profile.value, settings.pool]).toEqual([undefined, "nope", undefined]);
    expect(wrong).toEqual(["profile", 'there is no profile "nope" (--profile)', "baseUrl", message]);
  });

  it("a profile that no settings file has, only in an engine that the environment names", () => {
    expect(resolve({ profile: "user-1" }, { AGENTAUTH_STORE: "redis" }).profile.value).toBe("user-1");
    expect(resolve({}, { AGENTAUTH_STORE: "redis" }).pool?.value).toBe("pool_default");
    expect(() => resolve({ profile: "user-1" }, { AGENTAUTH_STORE: "file" })).toThrow("there is no profile");
    const isNew = (profile: string, env: Record<string, string> = {}) =>
      resolveSettings({ profile }, env, CONFIG, "/nowhere", flagText, { acceptsNewProfile: true }).isNewProfile;
    expect(isNew("user-1", { AGENTAUTH_STORE: "redis" })).toBe(false);
    expect(["work", "other", "default", "sandbox"].map((name) => isNew(name))).toEqual([true, false, false, false]);
  });

  it("what is empty is not set", () => {
    expect(resolve({ baseUrl: "" }, { AGENTAUTH_BASE_URL: "" }).baseUrl?.source).toBe("profile default");
  });
});

describe("the API token", () => {
  it("comes from the environment before the profile", () => {
    expect(resolve({}, { AGENTAUTH_API_TOKEN: "env:MY_TOKEN", MY_TOKEN: "tok_named" }).apiToken?.read()).toBe(
      "tok_named",
    );
    expect(resolve({}, { AGENTAUTH_API_TOKEN: "tok_env", DEFAULT_TOKEN: "tok_profile" }).apiToken?.read()).toBe(
      "tok_env",
    );
    expect(resolve({}, { DEFAULT_TOKEN: "tok_profile" }).apiToken?.read()).toBe("tok_profile");
    expect(resolve({}, { AGENTAUTH_API_TOKEN: "tok_env" }).apiToken?.source).toBe("AGENTAUTH_API_TOKEN");
    expect(resolve({ profile: "other" }).apiToken).toBeUndefined();
  });

  it("is read when it is needed, not before", () => {
    const { apiToken } = resolve();
    expect(apiToken?.source).toBe("profile default, DEFAULT_TOKEN");
    expect(apiToken?.reference).toEqual({ value: "env:DEFAULT_TOKEN", source: "profile default" });
    expect(() => apiToken?.read()).toThrow(/environment variable DEFAULT_TOKEN, named by profile default, is not set/);
  });

  it("comes from a file, one line break at its end left out", () => {
    const path = join(temporaryFolder(), "token:with:colons");
    writeFileSync(path, "tok_file\r\n", { mode: 0o600 });
    const config = { ...CONFIG, profiles: { default: { base_url: "https://x.example", api_token: `file:${path}` } } };
    expect(resolve({}, {}, config).apiToken?.read()).toBe("tok_file");
  });

  it.each<[string, SettingFlags, Record<string, string>]>([
    ["a flag", { baseUrl: "https://evil.example" }, {}],
    ["the environment", {}, { AGENTAUTH_BASE_URL: "https://evil.example" }],
    ["another port", { baseUrl: "https://default.example:8443" }, {}],
    [
      "a profile without an address",
      { profile: "tokenless", baseUrl: "https://evil.example" },
      { LONELY_TOKEN: "tok_profile" },
    ],
  ])("of a profile is not drawn out by %s", (_what, flags, env) => {
    const { apiToken } = resolve(flags, { DEFAULT_TOKEN: "tok_profile", ...env });
    expect(() => apiToken?.read()).toThrow(
      expect.objectContaining({
        code: "usage",
        class: "usage",
        message: expect.stringMatching(
          /^the API token of profile (?:default belongs to https:\/\/default\.example\/|tokenless belongs to no base_url yet), not to https:\/\/\S+ \((?:--base-url|AGENTAUTH_BASE_URL)\)$/,
        ),
        hint: "give the token for this address in AGENTAUTH_API_TOKEN, or use another profile",
      }),
    );
    expect(apiToken?.source).toMatch(/^profile (?:default|tokenless)$/);
  });

  it("goes along to another path of the same origin", () => {
    const { apiToken } = resolve({ baseUrl: "https://default.example/v2" }, { DEFAULT_TOKEN: "tok_profile" });
    expect(apiToken?.read()).toBe("tok_profile");
  });
});

describe("profiles", () => {
  it("that do not exist are refused, except the default one", () => {
    expect(() => resolve({ profile: "nope" })).toThrow(/there is no profile "nope" \(--profile\)/);
    const invalid = '--profile "a b" is not a valid profile name: letters, digits, "-", "_" and "."';
    expect(() => resolve({ profile: "a b" })).toThrow(expect.objectContaining({ code: "usage", message: invalid }));
    expect(resolve({ profile: "" }).profile.source).toBe("settings file");
    expect(() => resolve({}, { AGENTAUTH_PROFILE: "nope" })).toThrow(
      /there is no profile "nope" \(AGENTAUTH_PROFILE\)/,
    );
    expect(resolve({}, {}, { schema: 1, profile: "default", profiles: {} }).baseUrl).toBeUndefined();
  });

  it("are suggested where a name comes near one", () => {
    const config = { schema: 1, profile: "default", profiles: { staging: {} } } as const;
    expect(() => resolve({ profile: "stagin" }, {}, config)).toThrow(
      expect.objectContaining({ hint: "did you mean staging?" }),
    );
    expect(() => resolve({ profile: "nope" }, {}, config)).toThrow(
      expect.objectContaining({
        hint: expect.stringContaining("agentauth login <mcp_url> --profile nope, or for lists"),
      }),
    );
  });

  it.each(["constructor", "toString"])("%s is a name like any other", (name) => {
    expect(() => resolve({ profile: name })).toThrow(/there is no profile/);
  });

  it("sandbox is the one that runs, with a token for it alone", () => {
    const home = temporaryFolder();
    const empty = resolve({ profile: "sandbox" }, {}, CONFIG, home);
    expect([empty.baseUrl, empty.apiToken, empty.pool]).toEqual([undefined, undefined, undefined]);
    const ids = { account_id: "acc_1", domain_id: "dom_1", pool_id: "pool_1", mcp_url: "http://127.0.0.1:1/mcp" };
    writeSandboxState(home, {
      pid: process.pid,
      base_url: "http://127.0.0.1:4711",
      api_token: "sandbox_t",
      control_token: "c",
      ...ids,
    });
    const settings = resolve({ profile: "sandbox" }, {}, CONFIG, home);
    expect(settings).toMatchObject({
      account: { value: "acc_1" },
      domain: { value: "dom_1" },
      apiToken: {
        source: "profile sandbox",
        reference: { value: "(that of the sandbox)", source: "profile sandbox" },
      },
    });
    expect([settings.baseUrl?.value, settings.pool?.value, settings.apiToken?.read()]).toEqual([
      "http://127.0.0.1:4711",
      "pool_1",
      "sandbox_t",
    ]);
    const elsewhere = resolve({ profile: "sandbox", baseUrl: "https://real.example" }, {}, CONFIG, home);
    expect(() => elsewhere.apiToken?.read()).toThrow(/belongs to http:\/\/127\.0\.0\.1:4711/);
    const ofNone = { ...CONFIG, profiles: { default: { pool: "pool_own", auth_header: "X-Api-Key" } } };
    const source = "the running sandbox";
    const found = resolve({ domain: "dom_2" }, {}, ofNone, home);
    expect(found).toMatchObject({
      profile: { value: "default" },
      baseUrl: { value: "http://127.0.0.1:4711", source },
      authHeader: undefined,
      pool: { value: "pool_1", source },
      domain: { value: "dom_2", source: "--domain" },
    });
    expect(found.apiToken?.read()).toBe("sandbox_t");
    expect(resolve({}, {}, CONFIG, home).baseUrl?.value).toBe("https://default.example");
    expect(resolve({ profile: "tokenless" }, { LONELY_TOKEN: "tok" }, CONFIG, home).baseUrl).toBeUndefined();
    expect(resolve({}, { AGENTAUTH_API_TOKEN: "tok" }, ofNone, home).baseUrl).toBeUndefined();
  });
});

it("a missing settings file is an empty one", () => {
  expect(readConfig(temporaryFolder())).toEqual({ schema: 1, profile: "default", profiles: {} });
});
