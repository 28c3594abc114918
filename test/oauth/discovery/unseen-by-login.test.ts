import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import {
  challengeOfRemedy,
  challengeOnlyMetadata,
  withUnseen,
} from "../../../src/oauth/discovery/resource-metadata.js";
import type { BearerChallenge } from "../../../src/oauth/model/challenge.js";
import type { Remedy } from "../../../src/remedy.js";

const SERVER = "https://mcp.example/mcp";
const OTHER = "https://mcp.example/metadata";
const challenge = (resourceMetadata: string[], scope?: string): BearerChallenge => ({
  resourceMetadata,
  scope,
  error: "invalid_token",
  schemes: ["bearer"],
});

describe("what a login cannot find out by itself", () => {
  it.each<[string, BearerChallenge | undefined, object]>([
    ["no challenge", undefined, {}],
    ["a challenge without an address", challenge([], "a"), {}],
    ["the address at the path", challenge(["https://mcp.example/.well-known/oauth-protected-resource/mcp"], "a"), {}],
    ["the address at the root", challenge(["https://mcp.example/.well-known/oauth-protected-resource"], "a"), {}],
    ["another address", challenge([OTHER, "https://mcp.example/more"], "a"), { resourceMetadata: OTHER, scope: "a" }],
    ["another address without scopes", challenge([OTHER]), { resourceMetadata: OTHER, scope: undefined }],
  ])("is in %s", (_what, given, expected) => {
    expect(challengeOnlyMetadata(given, SERVER)).toEqual(expected);
  });

  const error = (remedy: Remedy | undefined) =>
    new AgentAuthError("bad_address", "no", { class: "refused", hint: "a hint", ...(remedy && { remedy }) });
  const allow: Remedy = { action: "allow", option: "allowCrossOriginMetadata" };
  const configure: Remedy = { action: "configure", option: "issuer", value: "https://as.example" };

  it.each<[Remedy, string | undefined]>([
    [allow, "a"],
    [allow, undefined],
    [configure, "a"],
  ])("is added to the remedy %j, with the scope %j", (remedy, scope) => {
    expect(withUnseen(error(remedy), challenge([OTHER], scope), SERVER)).toMatchObject({
      code: "bad_address",
      hint: "a hint",
      remedy: { ...remedy, login: { resourceMetadata: OTHER, ...(scope !== undefined && { scope }) } },
    });
  });

  it.each<[unknown, BearerChallenge | undefined]>([
    [error(allow), undefined],
    [error(allow), challenge([])],
    [error(undefined), challenge([OTHER])],
    [error({ action: "login", server: SERVER }), challenge([OTHER])],
    [new RangeError("oops"), challenge([OTHER])],
  ])("is not added otherwise: %#", (given, about) => {
    expect(withUnseen(given, about, SERVER)).toBe(given);
  });

  it("is the challenge of the next login", () => {
    const login = { action: "login", server: SERVER } as const;
    expect(challengeOfRemedy({ ...login, scope: "a" })).toBeUndefined();
    expect(challengeOfRemedy({ ...login, resourceMetadata: OTHER, scope: "a" })).toEqual({
      ...challenge([OTHER], "a"),
      error: undefined,
      schemes: [],
    });
  });
});
