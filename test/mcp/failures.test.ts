import { expect, it } from "vitest";
import { HttpFailure, httpFailureOf } from "../../src/mcp/failures.js";

it("only an HTTP error has a status, ours or the official SDK's", () => {
  const data = { status: 404, text: "gone" };
  const ofSdk = Object.assign(new Error("not found"), { name: "SdkHttpError", data });
  expect([httpFailureOf(new HttpFailure(404, "gone")), httpFailureOf(ofSdk)]).toEqual([data, data]);
  expect(httpFailureOf(Object.assign(new Error("other"), { data }))).toBeUndefined();
});
