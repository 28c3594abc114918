import { beforeAll, describe, expect, it } from "vitest";
import { writeSandboxState } from "../../src/profile/sandbox-state.js";
import { keepApart } from "../../src/profile/sandbox-token.js";
import { temporaryFolder } from "../helpers/folder.js";

const SANDBOX = "http://127.0.0.1:4711";
const home = temporaryFolder();

beforeAll(() => {
  writeSandboxState(home, {
    pid: process.pid,
    base_url: SANDBOX,
    api_token: "sandbox_a",
    control_token: "sandbox_control_a",
    account_id: "acc_1",
    domain_id: "dom_1",
    pool_id: "pool_1",
    mcp_url: `${SANDBOX}/mcp`,
  });
});

const keep = (token: string, address: string) =>
  keepApart({ value: token, source: "AGENTAUTH_API_TOKEN" }, { value: address, source: "--base-url" }, home);

describe("a token and an address", () => {
  it.each([
    ["token-of-a-service", "https://agentauth.example"],
    ["sandbox_a", SANDBOX],
    ["sandbox_a", "http://localhost:9"],
    ["token-of-a-service", "http://127.0.0.1:9"],
  ])("of one world are kept: %s, %s", (token, address) => {
    expect(keep(token, address)).toBe(token);
  });

  it("of the sandbox and of another service are refused", () => {
    expect(() => keep("sandbox_a", "https://agentauth.example")).toThrow(
      expect.objectContaining({
        code: "bad_address",
        class: "refused",
        message: `the API token (AGENTAUTH_API_TOKEN) is a sandbox's, and "https://agentauth.example" (--base-url) is no sandbox`,
      }),
    );
  });

  it("of another service and of the sandbox are refused", () => {
    expect(() => keep("token-of-a-service", SANDBOX)).toThrow(
      expect.objectContaining({
        code: "bad_address",
        class: "refused",
        message: `the API token (AGENTAUTH_API_TOKEN) is not the sandbox's, and "${SANDBOX}" (--base-url) is a sandbox`,
      }),
    );
  });
});
