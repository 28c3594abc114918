import { describe, expect, it } from "vitest";
import { requireScope, type ServiceSettings, serviceFlags, unusableHint } from "../../../src/cli/listing/scope.js";
import type { Settings } from "../../../src/profile/settings.js";

const PROFILE = { value: "default", source: "default" };
const settings = (parts: object = {}) => ({ profile: PROFILE, ...parts }) as unknown as Settings;
const BASE = { baseUrl: { value: "https://a.example", source: "--base-url" } };

function failureOf(work: () => unknown) {
  try {
    work();
  } catch (error) {
    const { code, message, hint } = error as { code: string; message: string; hint?: string };
    return { code, message, hint };
  }
  throw new Error("nothing was thrown");
}

describe("the scope of a list", () => {
  it("is the flag's or the profile's", () => {
    const pool = { value: "p 1", source: "--pool" };
    expect(requireScope("pool", settings({ pool }), "devices list")).toBe("p 1");
  });

  it.each(["a\u0000", "a\nb", "\u0085", "\ufffd"])("is refused with %j in it", (value) => {
    const pool = { value, source: "profile work" };
    expect(failureOf(() => requireScope("pool", settings({ pool }), "devices list"))).toEqual({
      ...{ code: "usage", message: "profile work has a control character or broken UTF-8 in it", hint: undefined },
    });
  });

  it.each(["account", "domain", "pool"] as const)("is missing: %s", (name) => {
    expect(failureOf(() => requireScope(name, settings(BASE), "x list"))).toMatchSnapshot();
    expect(failureOf(() => requireScope(name, settings(), "x list"))).toMatchSnapshot();
  });
});

describe("what another command repeats", () => {
  it("is what flags chose, and nothing that the profile or the environment did", () => {
    const ofFlags = {
      profile: { value: "my work", source: "--profile" },
      ...BASE,
      clientCert: { value: "c.pem", source: "--client-cert" },
      clientKey: { value: "k.pem", source: "--client-key" },
    } as unknown as ServiceSettings;
    expect(serviceFlags(ofFlags)).toBe(
      " --profile 'my work' --base-url https://a.example --client-cert c.pem --client-key k.pem",
    );
    const others = { profile: PROFILE, baseUrl: { value: "https://a.example", source: "x--base-url" } };
    expect(serviceFlags(others as unknown as ServiceSettings)).toBe("");
  });

  it("is the command that prints a list as it is sent", () => {
    expect(unusableHint("devices", "pool", "p 1", settings(BASE))).toBe(
      "agentauth api GET /api/v1/device -f 'pool_id=p 1' --paginate --base-url https://a.example prints them as the service sends them",
    );
  });
});
