import { expect, it } from "vitest";
import {
  buildMachineAccount,
  IDP_ACCOUNT,
  isMachineAccount,
  parseMachineAccount,
} from "../../../src/oauth/model/machine-grant.js";
import { type IssuerMetadata, isSameIssuer, listsExchange, takesIdJag } from "../../../src/oauth/model/metadata.js";

const HASH = "0123456789abcdef";

it.each([
  ["client_credentials", "c", undefined, "grant:client_credentials:c"],
  ["jwt_bearer", "", `${HASH}0123`, `grant:jwt_bearer:${HASH}`],
  ["id_jag", "https://c.example/a:b", HASH, `grant:id_jag:https://c.example/a:b:${HASH}`],
] as const)("the tokens of a machine grant have an account of their own: %s %s", (type, clientId, hash, account) => {
  expect(buildMachineAccount(type, clientId, hash)).toBe(account);
  expect([isMachineAccount(account), parseMachineAccount(account)]).toEqual([true, type]);
});

it.each([
  [undefined, false],
  ["alice", false],
  ["my grant:id_jag:c", false],
  [IDP_ACCOUNT, true],
  ["grant:other:c", true],
  ["grant:id_jag", true],
  ["grant:id_jag:", true],
])("the account %s is of no grant type", (account, isMachine) => {
  expect([isMachineAccount(account), parseMachineAccount(account)]).toEqual([isMachine, undefined]);
});

it("the login at an identity provider has an account that no user can have", () => {
  expect(IDP_ACCOUNT).toBe("grant:idp");
});

it.each([
  ["https://as.example", "https://as.example/", true],
  ["https://as.example/", "https://as.example", true],
  ["https://as.example/a", "https://as.example/a/", false],
  ["https://as.example", "https://as.example?", false],
  ["https://as.example", "https://other.example", false],
  ["HTTPS://as.example/", "https://as.example", false],
  ["somewhere/", "somewhere", false],
])("%s and %s name the same issuer: %s", (one, other, isSame) => {
  expect(isSameIssuer(one, other)).toBe(isSame);
});

it("what an issuer lists is known, and what it does not list is not", () => {
  const issuer = (over: Partial<IssuerMetadata>) => over as IssuerMetadata;
  const grantTypesSupported = ["urn:ietf:params:oauth:grant-type:token-exchange"];
  expect(listsExchange(issuer({}))).toBeUndefined();
  expect(listsExchange(issuer({ grantTypesSupported: ["authorization_code"] }))).toBe(false);
  expect(listsExchange(issuer({ grantTypesSupported }))).toBe(true);
  expect(takesIdJag(issuer({}))).toBe(false);
  expect(takesIdJag(issuer({ grantProfilesSupported: ["x"] }))).toBe(false);
  const grantProfilesSupported = ["urn:ietf:params:oauth:grant-profile:id-jag"];
  expect(takesIdJag(issuer({ grantProfilesSupported }))).toBe(true);
});
