import { Command } from "commander";
import { afterEach, describe, expect, it } from "vitest";
import { addLoginSettings } from "../../src/cli/flags/agent.js";
import { flagText } from "../../src/cli/flags/flag-name.js";
import { checkMachineGrantFlags } from "../../src/cli/flags/grant.js";
import { givenLoginFlags } from "../../src/cli/program.js";
import { loginCommand } from "../../src/cli/runtime/hints.js";
import {
  LOGIN_SETTINGS,
  type LoginFlags,
  type LoginSetting,
  loginMethodOptions,
  toClientOptions,
} from "../../src/profile/login-settings.js";
import { resolveSettings } from "../../src/profile/resolve-settings.js";
import { temporaryFolder } from "../helpers/cli.js";

/** A setting that no version has. */
const SAMPLE: LoginSetting = {
  name: "sampleHost",
  value: "<host>",
  description: "Sample of a setting",
  group: "Login:",
  on: ["login"],
  values: (value) => {
    if (value === "bad") throw new TypeError("must not be bad");
    return value.toUpperCase();
  },
  client: "userAgent",
  policy: "acceptTokenType",
  method: "optionText",
  isInteractive: true,
  isOfServer: true,
  variable: "AGENTAUTH_SAMPLE_HOST",
  profile: { key: "sample_host", description: "a sample", values: () => {} },
};

const table = LOGIN_SETTINGS as unknown as LoginSetting[];

function withSample(): void {
  table.push(SAMPLE);
}

afterEach(() => {
  const at = table.indexOf(SAMPLE);
  if (at >= 0) table.splice(at, 1);
});

/** A command with the flags of a login, after it has parsed some. */
function parse(words: string[], as: "login" | "token" = "login"): Command {
  const command = addLoginSettings(new Command("login"), as)
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  command.parse(words, { from: "user" });
  return command;
}

describe("a setting of a login that is added to the table", () => {
  it("is a flag with help and a check, on the commands that it names alone", () => {
    withSample();
    expect(parse([]).helpInformation()).toMatch(/--sample-host <host>\s+Sample of a setting/);
    expect(parse(["--sample-host", "a"]).opts()).toEqual({ sampleHost: "A" });
    expect(() => parse(["--sample-host", "bad"])).toThrow(/must not be bad/);
    expect(() => parse(["--sample-host", "a"], "token")).toThrow(/unknown option/);
  });

  it("is an option of the client, of its policy and of the login method", () => {
    withSample();
    const flags = { sampleHost: "A" } as LoginFlags;
    expect(toClientOptions(flags)).toEqual({ userAgent: "A", policy: { acceptTokenType: "A" } });
    expect(loginMethodOptions(flags)).toEqual({ optionText: "A" });
  });

  it("is repeated by hints, under the name that the option of the SDK has there", () => {
    withSample();
    const flags = givenLoginFlags(parse(["--sample-host", "a"]));
    expect(flags).toEqual([["--sample-host", "A"]]);
    const server = "https://mcp.example/mcp";
    expect(loginCommand({ action: "login", server }, { flags })).toBe(`agentauth login ${server} --sample-host A`);
    expect(loginCommand({ action: "login", server, idp: true }, { flags })).toBe(`agentauth login --idp ${server}`);
    expect(flagText("optionText", "/x")).toBe("--sample-host /x");
  });

  it("is refused with a machine grant", () => {
    withSample();
    const flags = { grant: "client-credentials", clientId: "c", sampleHost: "A" } as const;
    expect(() => checkMachineGrantFlags(flags)).toThrow(
      /--grant client-credentials and --sample-host do not go together/,
    );
  });

  it("is set by its flag, its variable or the profile, in this order", () => {
    withSample();
    const home = temporaryFolder();
    const config = { schema: 1, profile: "default", profiles: { default: { sample_host: "profile" } } } as never;
    const read = (flags: object, env: Record<string, string>) =>
      Reflect.get(resolveSettings(flags, env, config, home, flagText), "sampleHost");
    const env = { AGENTAUTH_SAMPLE_HOST: "variable" };
    expect(read({ sampleHost: "flag" }, env)).toEqual({ value: "flag", source: "--sample-host" });
    expect(read({}, env)).toEqual({ value: "variable", source: "AGENTAUTH_SAMPLE_HOST" });
    expect(read({}, {})).toEqual({ value: "profile", source: "profile default" });
  });
});

it("the overrides of safety rules are flags of login and discover alone", () => {
  const policy = table.filter(({ group }) => group === "Security policy:");
  expect(policy.length).toBeGreaterThan(6);
  for (const { on } of policy) expect(on).toEqual(["login", "discover"]);
});
