import { describe, expect, it } from "vitest";
import { requireBaseUrl, serviceOptions } from "../../src/profile/service-settings.js";
import type { Settings } from "../../src/profile/settings.js";
import { onSystem } from "../platform/support.js";

const WITHOUT = "without a service: agentauth demo";
const NO_BASE_URL = "agentauth config set base_url <url>";

describe("without a base URL", () => {
  const from = (value: string) => ({ value, source: "the test" });
  const profile = from("default");
  const apiToken = { read: () => "tok", source: "the test" };

  it.each<[string, Parameters<typeof requireBaseUrl>[0], string, string]>([
    [
      "and without a token, both are named in order",
      { profile, baseUrl: undefined, apiToken: undefined, clientCert: undefined },
      "no service is configured: the base URL is not set (AGENTAUTH_BASE_URL), no API token is set (AGENTAUTH_API_TOKEN)",
      `1. ${NO_BASE_URL}; 2. agentauth config set api_token - < token.txt; ${WITHOUT}`,
    ],
    [
      "but with a token, it alone is",
      { profile, baseUrl: undefined, apiToken, clientCert: undefined },
      "no service is configured: the base URL is not set (AGENTAUTH_BASE_URL)",
      `${NO_BASE_URL}; ${WITHOUT}`,
    ],
    [
      "but with a client certificate, it alone is",
      { profile, baseUrl: undefined, apiToken: undefined, clientCert: from("/cert.pem") },
      "no service is configured: the base URL is not set (AGENTAUTH_BASE_URL)",
      `${NO_BASE_URL}; ${WITHOUT}`,
    ],
    [
      "in the profile of the sandbox, there is none",
      { profile: from("sandbox"), baseUrl: undefined, apiToken: undefined, clientCert: undefined },
      "no sandbox is running",
      "agentauth sandbox start",
    ],
  ])("%s", (_what, settings, message, hint) => {
    onSystem({}, "sh");
    expect(() => requireBaseUrl(settings)).toThrow(expect.objectContaining({ code: "usage", message, hint }));
  });
});

describe("the header of the token", () => {
  it.each([
    ["X-Api-Key", "x-api-key", "tok"],
    ["Authorization: Token", "authorization", "Token tok"],
    ["Authorization:Token", "authorization", "Token tok"],
  ])("is the one that the setting %s names", (value, name, expected) => {
    const headers = new Headers();
    expect(serviceOptions({} as Settings)).toEqual({});
    const settings = { authHeader: { value, source: "the test" } } as Partial<Settings> as Settings;
    serviceOptions(settings).auth?.(headers, "tok");
    expect(headers.get(name)).toBe(expected);
  });
});

it("the token and the order of a list are those of the settings", () => {
  const read = () => "tok";
  const settings = { apiToken: { read, source: "x" }, sorting: { value: "json", source: "x" } };
  expect(serviceOptions(settings as Partial<Settings> as Settings)).toEqual({ token: read, sorting: "json" });
});
