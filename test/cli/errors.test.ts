import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect } from "vitest";
import type { Fault } from "../../src/sandbox/index.js";
import { linesOf, runCli, type Testbed } from "../helpers/cli.js";
import { CLOSED_PORT } from "../helpers/port.js";
import { ON_WINDOWS } from "../helpers/systems.js";
import { testbedTest } from "../helpers/testbed-test.js";

const it = testbedTest({ devices: 30 });

interface Expected {
  exit_code: number;
  code: string;
  class: string;
  status?: number;
  retryable?: boolean;
}

/** Runs a command twice, for a user and for a program, and compares both errors with what is expected. */
async function expectError(
  { sandbox, run }: Testbed,
  args: string[],
  expected: Expected,
  words: RegExp[],
  env: Record<string, string | undefined> = {},
  fault?: Fault,
) {
  const results = [];
  for (const extra of [[], ["-o", "json"]]) {
    sandbox.faults.clear();
    if (fault) sandbox.faults.add(fault);
    results.push(await run([...args, ...extra], { env }));
  }
  for (const { code, stdout } of results) expect({ code, stdout }).toEqual({ code: expected.exit_code, stdout: "" });
  const [text, json] = results.map(({ stderr }) => stderr);
  for (const word of words) expect(text).toMatch(word);
  expect(linesOf(text ?? "").length).toBeLessThanOrEqual(2);
  expect(JSON.parse(json ?? "")).toEqual({ error: expect.objectContaining(expected) });
}

describe("authentication: exit 4", () => {
  it("no token", async ({ testbed }) => {
    await expectError(
      testbed,
      testbed.devices,
      { exit_code: 4, code: "not_authenticated", class: "auth", status: 401 },
      [
        /^error: .*not_authenticated, HTTP 401/,
        /hint: give an API token: set AGENTAUTH_API_TOKEN, or store a token: agentauth config set api_token - </,
      ],
      { AGENTAUTH_API_TOKEN: undefined },
    );
  });

  it("a wrong token", async ({ testbed }) => {
    await expectError(
      testbed,
      testbed.devices,
      { exit_code: 4, code: "bad_authtoken", class: "auth", status: 401 },
      [/^error: .*bad_authtoken, HTTP 401/, /hint: the API token is wrong or has expired; set AGENTAUTH_API_TOKEN/],
      { AGENTAUTH_API_TOKEN: "sandbox_wrong_token" },
    );
  });

  it("a token that cannot be sent", async ({ testbed }) => {
    const { code, stdout, stderr } = await testbed.run(testbed.devices, {
      env: { AGENTAUTH_API_TOKEN: "to\nken-with-a-break" },
    });
    expect([code, stdout, stderr.includes("ken-with-a-break")]).toEqual([2, "", false]);
    expect(stderr).toMatch(/^error: .*token/);
  });
});

describe("unavailable: exit 5", () => {
  const NO_RETRY = ["--retries", "0"];

  it("a port without a listener", async ({ testbed }) => {
    const args = [...testbed.devices, "--base-url", `http://127.0.0.1:${CLOSED_PORT}`, ...NO_RETRY];
    await expectError(
      testbed,
      args,
      { exit_code: 5, code: "connection_refused", class: "unavailable", retryable: true },
      [/127\.0\.0\.1:\d+: the connection was refused/, /hint: check that the service runs at this address and port/],
    );
  });

  it("a host that does not exist", async ({ testbed }) => {
    const args = [...testbed.devices, "--base-url", "https://agentauth.invalid", ...NO_RETRY];
    await expectError(
      testbed,
      args,
      { exit_code: 5, code: "dns_failed", class: "unavailable" },
      [/agentauth\.invalid: the host name could not be resolved/, /hint: check the host name and the network/],
      // The sandbox's own would go nowhere but to this machine.
      { AGENTAUTH_API_TOKEN: "tok_0123456789abcdef" },
    );
  });

  it("TLS where there is none", async ({ testbed }) => {
    const args = [...testbed.devices, "--base-url", testbed.sandbox.baseUrl.replace("http:", "https:"), ...NO_RETRY];
    await expectError(testbed, args, { exit_code: 5, code: "tls_failed", class: "unavailable", retryable: false }, [
      /TLS failed/,
      /hint: check the port: the server speaks no TLS there/,
    ]);
  });

  it("503 for ever", async ({ testbed }) => {
    await expectError(
      testbed,
      [...testbed.devices, ...NO_RETRY],
      { exit_code: 5, code: "unexpected", class: "unavailable", status: 503 },
      [/HTTP 503/, /\(request req_\w+\)/, /hint: call again later/],
      {},
      { kind: "status", status: 503, times: 0 },
    );
  });

  it("as often as --retries says, and no more", async ({ testbed }) => {
    testbed.sandbox.faults.add({ kind: "status", status: 503, times: 0 });
    const before = testbed.deviceRequests();
    await testbed.run([...testbed.devices, "--retries", "1"]);
    expect(testbed.deviceRequests() - before).toBe(2);
  });

  it("an answer that takes too long", async ({ testbed }) => {
    await expectError(
      testbed,
      [...testbed.devices, ...NO_RETRY, "--timeout", "0.3"],
      { exit_code: 5, code: "timeout", class: "unavailable" },
      [/no complete response in 0\.3 s/, /hint: --timeout <seconds> allows more time/],
      {},
      { kind: "slow-headers", ms: 60_000, times: 0 },
    );
  });

  it("a wait that is longer than there is time for", async ({ testbed }) => {
    await expectError(
      testbed,
      testbed.devices,
      { exit_code: 5, code: "rate_limited", class: "unavailable", status: 429 },
      [/HTTP 429, and it asks to wait 3600 s \(Retry-After "3600"\)/],
      {},
      { kind: "status", status: 429, retryAfter: "3600", times: 0 },
    );
  });

  it.for(["reset-before", "reset-mid-body"] as const)("a connection that breaks: %s", async (kind, { testbed }) => {
    await expectError(
      testbed,
      [...testbed.devices, ...NO_RETRY],
      { exit_code: 5, code: "connection_reset", class: "unavailable" },
      [/the connection broke/],
      {},
      { kind, times: 0 },
    );
  });
});

describe("the service says no: exit 6", () => {
  it("a pool that does not exist", async ({ testbed }) => {
    const [first = ""] = testbed.sandbox.data.pools(testbed.sandbox.ids.domain).map(({ id }) => id);
    const args = ["devices", "list", "--pool", `${first.slice(0, -3)}zzz`];
    await expectError(testbed, args, { exit_code: 6, code: "not_found", class: "remote", status: 404 }, [
      /not_found, HTTP 404/,
      /hint: check the identifier/,
    ]);
  });

  it("a device that the pool does not have", async ({ testbed }) => {
    const args = ["devices", "get", "dev_nope", "--pool", testbed.sandbox.ids.pool];
    await expectError(testbed, args, { exit_code: 6, code: "not_found", class: "remote" }, [
      /no device "dev_nope" in pool "pool_\w+"/,
      /hint: .*agentauth devices list --pool pool_\w+ -o id/,
    ]);
  });

  it("a raw path that is not there", async ({ testbed }) => {
    await expectError(
      testbed,
      ["api", "GET", "/api/v1/nope"],
      { exit_code: 6, code: "not_found", class: "remote", status: 404 },
      [/\/api\/v1\/nope/],
    );
    await expectError(
      testbed,
      ["api", "GET", "device"],
      { exit_code: 6, code: "not_found", class: "remote", status: 404 },
      [/hint: paths start with \/api\/v1, such as \/api\/v1\/device/],
    );
  });
});

describe("a peer that breaks the rules: exit 3", () => {
  it("a login page in place of the service", async ({ testbed }) => {
    await expectError(
      testbed,
      testbed.devices,
      { exit_code: 3, code: "bad_content_type", class: "refused", status: 200 },
      [/"text\/html/, /hint: a proxy or a login page/],
      {},
      {
        kind: "html",
        times: 0,
      },
    );
  });

  it("a redirect to another origin, which is not followed", async ({ testbed }) => {
    const seen: string[] = [];
    const other = createServer((request, response) => {
      seen.push(request.url ?? "");
      response.end("{}");
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const location = `http://127.0.0.1:${(other.address() as AddressInfo).port}/api/v1/device`;
    try {
      await expectError(
        testbed,
        testbed.devices,
        { exit_code: 3, code: "redirect_refused", class: "refused" },
        [/redirects off the origin are not followed/],
        {},
        {
          kind: "redirect",
          location,
          times: 0,
        },
      );
      expect(seen).toEqual([]);
    } finally {
      other.close();
    }
  });

  it.for([
    ["no object", []],
    ["no summaries", { status: "success" }],
    ["an unknown status", { status: "maybe", summaries: [] }],
  ])("an envelope with %s", async ([_what, body], { testbed }) => {
    await expectError(
      testbed,
      testbed.devices,
      { exit_code: 3, code: "bad_envelope", class: "refused" },
      [/^error: /],
      {},
      { kind: "wrong-envelope", body, times: 0 },
    );
  });

  it("JSON that is cut, each time", async ({ testbed }) => {
    const args = [...testbed.devices, "--retries", "0"];
    await expectError(
      testbed,
      args,
      { exit_code: 3, code: "bad_json", class: "refused" },
      [/not JSON/],
      {},
      { kind: "truncated-json", times: 0 },
    );
  });
});

describe("the local store: exit 8", () => {
  it.skipIf(ON_WINDOWS)("settings that cannot be written", async () => {
    const env = { AGENTAUTH_HOME: "/proc/nowhere" };
    const { code, stdout, stderr } = await runCli(["config", "set", "pool", "p"], { env });
    expect([code, stdout]).toEqual([8, ""]);
    expect(stderr).toMatch(/^error: the folder \/proc\/nowhere cannot be created .*\nhint: set AGENTAUTH_HOME/);
  });
});
