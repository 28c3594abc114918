import { expect, it } from "vitest";
import { formatSeconds, timeoutError } from "../../../src/oauth/login/login-method.js";

it.each([
  [0.4, "0 seconds"],
  [1, "1 second"],
  [59.6, "60 seconds"],
  [119, "119 seconds"],
  [120, "2 minutes"],
  [179, "2 minutes"],
  [300, "5 minutes"],
])("%d seconds are written as %s", (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text);
});

it("a login that was not finished names the option that allows more time", () => {
  expect(timeoutError("https://mcp.example", 300)).toMatchObject({
    code: "timeout",
    class: "auth",
    message: "the login was not finished within 5 minutes",
    hint: "log in again; the option loginTimeoutMs allows more time",
    remedy: { action: "login", server: "https://mcp.example", option: "loginTimeoutMs" },
  });
});
