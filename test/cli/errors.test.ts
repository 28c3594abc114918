import { describe, expect } from "vitest";
import type { Fault } from "../../src/sandbox/index.js";
import { linesOf, runCli, type Testbed } from "../helpers/cli.js";
import { CLOSED_PORT } from "../helpers/port.js";
import { sendJson, startServer } from "../helpers/server.js";
import { ON_WINDOWS } from "../helpers/systems.js";
import { testbedTest } from "../helpers/testbed-test.js";

const it = testbedTest({ devices: 30 });

/** A command line that fails: its error for a user, and for a program. */
interface Failure {
  /** Flags behind the list of devices, or another command line. */
  readonly flags?: string;
  readonly command?: (testbed: Testbed) => readonly string[];
  readonly env?: Record<string, string | undefined>;
  /** What the service does, each time. */
  readonly fault?: Fault;
  readonly error: Readonly<Record<string, unknown>> & { readonly exit_code: number };
  /** What the error says to a user. */
  readonly says: readonly RegExp[];
}

const AUTH = { exit_code: 4, class: "auth", status: 401 };
const UNAVAILABLE = { exit_code: 5, class: "unavailable" };
const REMOTE = { exit_code: 6, class: "remote" };
const REFUSED = { exit_code: 3, class: "refused" };
const ALWAYS = { times: 0 } as const;
const ONCE = "--retries 0";

const FAILURES: Readonly<Record<string, Failure>> = {
  "no token": {
    env: { AGENTAUTH_API_TOKEN: undefined },
    error: { ...AUTH, code: "not_authenticated" },
    says: [
      /^error: .*not_authenticated, HTTP 401/,
      /hint: give an API token: set AGENTAUTH_API_TOKEN, or store a token: agentauth config set api_token - </,
    ],
  },
  "a wrong token": {
    env: { AGENTAUTH_API_TOKEN: "sandbox_wrong_token" },
    error: { ...AUTH, code: "bad_authtoken" },
    says: [/^error: .*bad_authtoken, HTTP 401/, /hint: the API token is wrong or has expired; set AGENTAUTH_API_TOKEN/],
  },
  "a port without a listener": {
    flags: `--base-url http://127.0.0.1:${CLOSED_PORT} ${ONCE}`,
    error: { ...UNAVAILABLE, code: "connection_refused", retryable: true },
    says: [
      /127\.0\.0\.1:\d+: the connection was refused/,
      /hint: check that the service runs at this address and port/,
    ],
  },
  "a host that does not exist": {
    flags: `--base-url https://agentauth.invalid ${ONCE}`,
    // The sandbox's own would go nowhere but to this machine.
    env: { AGENTAUTH_API_TOKEN: "tok_0123456789abcdef" },
    error: { ...UNAVAILABLE, code: "dns_failed" },
    says: [/agentauth\.invalid: the host name could not be resolved/, /hint: check the host name and the network/],
  },
  "TLS where there is none": {
    command: ({ devices, sandbox }) => [
      ...devices,
      "--base-url",
      sandbox.baseUrl.replace("http:", "https:"),
      ...ONCE.split(" "),
    ],
    error: { ...UNAVAILABLE, code: "tls_failed", retryable: false },
    says: [/TLS failed/, /hint: check the port: the server speaks no TLS there/],
  },
  "503 for ever": {
    flags: ONCE,
    fault: { kind: "status", status: 503, ...ALWAYS },
    error: { ...UNAVAILABLE, code: "unexpected", status: 503 },
    says: [/HTTP 503/, /\(request req_\w+\)/, /hint: call again later/],
  },
  "a response that takes too long": {
    flags: `${ONCE} --timeout 0.3`,
    fault: { kind: "slow-headers", ms: 60_000, ...ALWAYS },
    error: { ...UNAVAILABLE, code: "timeout" },
    says: [/no complete response in 0\.3 s/, /hint: --timeout <seconds> allows more time/],
  },
  "a wait that is longer than there is time for": {
    fault: { kind: "status", status: 429, retryAfter: "3600", ...ALWAYS },
    error: { ...UNAVAILABLE, code: "rate_limited", status: 429 },
    says: [/HTTP 429, and it asks to wait 3600 s \(Retry-After "3600"\)/],
  },
  "a connection that breaks before the response": {
    flags: ONCE,
    fault: { kind: "reset-before", ...ALWAYS },
    error: { ...UNAVAILABLE, code: "connection_reset" },
    says: [/the connection broke/],
  },
  "a connection that breaks in the response": {
    flags: ONCE,
    fault: { kind: "reset-mid-body", ...ALWAYS },
    error: { ...UNAVAILABLE, code: "connection_reset" },
    says: [/the connection broke/],
  },
  "a pool that does not exist": {
    command: ({ sandbox }) => ["devices", "list", "--pool", `${sandbox.ids.pool.slice(0, -3)}zzz`],
    error: { ...REMOTE, code: "not_found", status: 404 },
    says: [/not_found, HTTP 404/, /hint: check the identifier/],
  },
  "a device that the pool does not have": {
    command: ({ sandbox }) => ["devices", "get", "dev_nope", "--pool", sandbox.ids.pool],
    error: { ...REMOTE, code: "not_found" },
    says: [/no device "dev_nope" in pool "pool_\w+"/, /hint: .*agentauth devices list --pool pool_\w+ -o id/],
  },
  "a raw path that is not there": {
    command: () => ["api", "GET", "/api/v1/nope"],
    error: { ...REMOTE, code: "not_found", status: 404 },
    says: [/\/api\/v1\/nope/],
  },
  "a raw path without its beginning": {
    command: () => ["api", "GET", "device"],
    error: { ...REMOTE, code: "not_found", status: 404 },
    says: [/hint: paths start with \/api\/v1, such as \/api\/v1\/device/],
  },
  "a login page in place of the service": {
    fault: { kind: "html", ...ALWAYS },
    error: { ...REFUSED, code: "bad_content_type", status: 200 },
    says: [/"text\/html/, /hint: a proxy or a login page/],
  },
  "an envelope with no object": {
    fault: { kind: "wrong-envelope", body: [], ...ALWAYS },
    error: { ...REFUSED, code: "bad_envelope" },
    says: [/^error: /],
  },
  "an envelope with no summaries": {
    fault: { kind: "wrong-envelope", body: { status: "success" }, ...ALWAYS },
    error: { ...REFUSED, code: "bad_envelope" },
    says: [/^error: /],
  },
  "an envelope with an unknown status": {
    fault: { kind: "wrong-envelope", body: { status: "maybe", summaries: [] }, ...ALWAYS },
    error: { ...REFUSED, code: "bad_envelope" },
    says: [/^error: /],
  },
  "JSON that is cut, each time": {
    flags: ONCE,
    fault: { kind: "truncated-json", ...ALWAYS },
    error: { ...REFUSED, code: "bad_json" },
    says: [/not JSON/],
  },
};

/** Runs a command line twice, for a user and for a program, and compares both errors with what is expected. */
async function expectFailure(testbed: Testbed, { flags, command, env = {}, fault, error, says }: Failure) {
  const args = command?.(testbed) ?? [...testbed.devices, ...(flags?.split(" ") ?? [])];
  const results = [];
  for (const extra of [[], ["-o", "json"]]) {
    testbed.sandbox.faults.clear();
    if (fault) testbed.sandbox.faults.add(fault);
    results.push(await testbed.run([...args, ...extra], { env }));
  }
  for (const { code, stdout } of results) expect({ code, stdout }).toEqual({ code: error.exit_code, stdout: "" });
  const [text = "", json = ""] = results.map(({ stderr }) => stderr);
  for (const words of says) expect(text).toMatch(words);
  expect(linesOf(text).length).toBeLessThanOrEqual(2);
  expect(JSON.parse(json)).toEqual({ error: expect.objectContaining(error) });
}

describe("an error of the service has its exit code, its code and its class", () => {
  it.for(Object.entries(FAILURES))("%s", ([, failure], { testbed }) => expectFailure(testbed, failure));

  it("a redirect to another origin, which is not followed", async ({ testbed }) => {
    const requested: string[] = [];
    const { origin } = await startServer((response, { url }) => {
      requested.push(url);
      sendJson(response, {});
    });
    await expectFailure(testbed, {
      fault: { kind: "redirect", location: `${origin}/api/v1/device`, ...ALWAYS },
      error: { ...REFUSED, code: "redirect_refused" },
      says: [/redirects off the origin are not followed/],
    });
    expect(requested).toEqual([]);
  });

  it("a token that cannot be sent is shown nowhere", async ({ testbed }) => {
    const env = { AGENTAUTH_API_TOKEN: "to\nken-with-a-break" };
    const { code, stdout, stderr } = await testbed.run(testbed.devices, { env });
    expect([code, stdout, stderr.includes("ken-with-a-break")]).toEqual([2, "", false]);
    expect(stderr).toMatch(/^error: .*token/);
  });

  it("a request is sent again as often as --retries says, and no more", async ({ testbed }) => {
    testbed.sandbox.faults.add({ kind: "status", status: 503, ...ALWAYS });
    const before = testbed.deviceRequests();
    await testbed.run([...testbed.devices, "--retries", "1"]);
    expect(testbed.deviceRequests() - before).toBe(2);
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
