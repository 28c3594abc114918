import { expect, it } from "vitest";
import { CodecError, decodeGrant, encodeGrant } from "../../../src/oauth/model/codec.js";
import { madeClient, madeGrant, plainGrant } from "../../helpers/grant.js";

it("reads text that another program printed like its own", () => {
  const text = encodeGrant(madeGrant());
  const [own, other] = [decodeGrant(text), decodeGrant(JSON.stringify(JSON.parse(text)))];
  expect(plainGrant(own)).toEqual(plainGrant(madeGrant()));
  expect(plainGrant(other)).toEqual(plainGrant(own));
});

it.each(["none", "client_secret_basic", "client_secret_post", "private_key_jwt"] as const)(
  "reads a client that authenticates with %s",
  (authMethod) => {
    const grant = madeGrant({ client: madeClient({ authMethod }) });
    expect(decodeGrant(encodeGrant(grant)).client.authMethod).toBe(authMethod);
  },
);

it.each<[string, (text: string) => string, string]>([
  ["a member twice", (text) => text.replace("{\n", '{\n  "schema": 1,\n'), "appears twice"],
  ["a number that no double can hold", (text) => text.replace("2000000000000", "1e999"), "too large"],
])("refuses %s in text of its own form", (_what, spoil, message) => {
  const text = spoil(encodeGrant(madeGrant()));
  expect(() => decodeGrant(text)).toThrow(CodecError);
  expect(() => decodeGrant(text)).toThrow(message);
});

it("reads as many levels as the strict parser, in text of its own form too", () => {
  const nested = (levels: number): unknown => (levels === 0 ? "end" : [nested(levels - 1)]);
  const at = (levels: number) => encodeGrant(madeGrant({ extra: nested(levels) } as object));
  expect(decodeGrant(at(31))).toBeDefined();
  for (const text of [at(32), JSON.stringify(JSON.parse(at(32)))]) {
    expect(() => decodeGrant(text)).toThrow("nested deeper than 32");
  }
});
