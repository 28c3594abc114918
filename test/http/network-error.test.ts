import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { maskError, networkError } from "../../src/http/network-error.js";
import { createTransport } from "../../src/http/transport.js";
import { FakeClock } from "../helpers/clock.js";
import { CLOSED_PORT } from "../helpers/port.js";
import { sendJson, startServer, startSocketServer, startTlsServer } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";

const certificate = readFileSync(new URL("../fixtures/self-signed.pem", import.meta.url), "utf8");

/** The error of a call to an address, and how many attempts were made. */
async function failure(url: string): Promise<{ error: AgentAuthError; attempts: number }> {
  let attempts = 0;
  const onEvent = (event: { type: string }) => {
    if (event.type === "request") attempts++;
  };
  const transport = createTransport({ clock: new FakeClock(), random: () => 0, onEvent });
  const error = (await rejection(transport(new Request(url)))) as AgentAuthError;
  expect(error).toBeInstanceOf(AgentAuthError);
  return { error, attempts };
}

/** An error as fetch throws it: the system's code hides in a cause. */
function thrown(code: string, message = "why"): TypeError {
  return new TypeError("fetch failed", { cause: Object.assign(new Error(message), { code }) });
}

describe("a failure of the network", () => {
  it("is `dns_failed` when the name does not exist", async () => {
    const { error } = await failure("https://no-such-service.invalid/api/v1/pool?domain_id=d");
    expect(error).toMatchObject({
      code: "dns_failed",
      class: "unavailable",
      url: "https://no-such-service.invalid/api/v1/pool",
    });
    expect(error.message).toMatch(/^no-such-service\.invalid: the host name could not be resolved \(E/);
    expect(error.hint).toContain("host name");
  });

  it("is `connection_refused` when nothing listens, after three attempts", async () => {
    const { error, attempts } = await failure(`http://127.0.0.1:${CLOSED_PORT}`);
    expect(error).toMatchObject({ code: "connection_refused", class: "unavailable", retryable: true });
    expect(error.message).toContain("ECONNREFUSED");
    expect(attempts).toBe(3);
  });

  it("is `tls_failed` for an untrusted certificate, after one attempt, and nothing is sent", async () => {
    const server = await startTlsServer(certificate, (response) => sendJson(response, {}));
    const { error, attempts } = await failure(server.origin);
    expect(error).toMatchObject({ code: "tls_failed", class: "unavailable", retryable: false });
    expect(error.message).toContain("DEPTH_ZERO_SELF_SIGNED_CERT");
    expect(error.hint).toContain("NODE_EXTRA_CA_CERTS");
    expect(attempts).toBe(1);
    expect(server.requests).toEqual([]);
  });

  it("is `tls_failed` when the server speaks no TLS", async () => {
    const server = await startServer((response) => sendJson(response, {}));
    const { error, attempts } = await failure(server.origin.replace("http:", "https:"));
    expect(error.code).toBe("tls_failed");
    expect(error.hint).toContain("speaks no TLS");
    expect(attempts).toBe(1);
  });

  it("is `connection_reset` when the connection ends without an answer", async () => {
    const server = await startSocketServer((socket) => socket.resetAndDestroy());
    const { error, attempts } = await failure(server.origin);
    expect(error).toMatchObject({ code: "connection_reset", class: "unavailable", retryable: true });
    expect(attempts).toBe(3);
  });

  it("is `connection_reset` when the answer is not HTTP", async () => {
    const server = await startSocketServer((socket) => socket.end("SSH-2.0-OpenSSH_9.6\r\n"));
    expect((await failure(server.origin)).error.code).toBe("connection_reset");
  });

  it.each([
    ["ENOTFOUND", "dns_failed", false],
    ["EAI_AGAIN", "dns_failed", true],
    ["EHOSTUNREACH", "connection_refused", true],
    ["ENETUNREACH", "connection_refused", true],
    ["ETIMEDOUT", "timeout", true],
    ["UND_ERR_CONNECT_TIMEOUT", "timeout", true],
    ["UND_ERR_BODY_TIMEOUT", "timeout", true],
    ["UND_ERR_PRX_TLS", "proxy_failed", true],
    ["ECONNRESET", "connection_reset", true],
    ["EPIPE", "connection_reset", true],
    ["UND_ERR_SOCKET", "connection_reset", true],
    ["HPE_INVALID_CONSTANT", "connection_reset", true],
    ["CERT_HAS_EXPIRED", "tls_failed", false],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "tls_failed", false],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "tls_failed", false],
    ["SELF_SIGNED_CERT_IN_CHAIN", "tls_failed", false],
    ["EMFILE", "network_failed", true],
  ])("with the system's code %s is `%s`", (systemCode, code, retryable) => {
    const cause = thrown(systemCode);
    const error = networkError(cause, "https://agentauth.example/x?y#z");
    expect(error).toMatchObject({ code, retryable, class: "unavailable", url: "https://agentauth.example/x", cause });
    expect(error.message).toContain(`(${systemCode}: why)`);
  });

  it("is `network_failed` for a port that fetch keeps clear of, after one attempt, with what helps", async () => {
    const { error, attempts } = await failure("http://127.0.0.1:25/");
    expect(error).toMatchObject({ code: "network_failed", retryable: false, hint: expect.stringContaining("port") });
    expect(attempts).toBe(1);
  });

  it.each([
    ["CERT_HAS_EXPIRED", "clock"],
    ["CERT_NOT_YET_VALID", "clock"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "host name"],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "port"],
    ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "client certificate"],
    ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "NODE_EXTRA_CA_CERTS"],
  ])("with the system's code %s is helped by what concerns the %s", (systemCode, word) => {
    expect(networkError(thrown(systemCode), "https://a.example").hint).toContain(word);
  });

  it("in TLS shows the words of OpenSSL without what surrounds them", () => {
    const words = "80EC66C0D17F0000:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:a.c:350:\n";
    const { message } = networkError(thrown("ERR_SSL_WRONG_VERSION_NUMBER", words), "https://a.example");
    expect(message).toBe("a.example: TLS failed (ERR_SSL_WRONG_VERSION_NUMBER: wrong version number)");
  });

  it("is found in the first of several causes, one for each address that was tried", () => {
    const all = new AggregateError([thrown("ECONNREFUSED").cause, thrown("ETIMEDOUT").cause]);
    expect(networkError(new TypeError("fetch failed", { cause: all }), "https://a.example").code).toBe(
      "connection_refused",
    );
  });

  it("is `network_failed` when nothing is known, whatever was thrown", () => {
    const loop: Error = new Error("loop");
    loop.cause = loop;
    for (const what of [new Error("odd"), "text", undefined, null, 7, loop, {}]) {
      const error = networkError(what, "no url");
      expect(error).toMatchObject({ code: "network_failed", retryable: true });
      expect([error.hint, error.remedy]).toEqual([undefined, undefined]);
      expect(error.cause).toBe(what);
      const reason = what instanceof Error ? ` (${what.message})` : "";
      expect(error.message).toBe(`: the request could not be sent${reason}`);
    }
  });

  it("shows the system's words escaped and cut", () => {
    const { message } = networkError(thrown("EODD", `\u001b[2J${"x".repeat(900)}`), "https://a.example");
    expect(message).toContain("(EODD: \\e[2Jxxx");
    expect(message.length).toBeLessThan(300);
  });

  it("has the secrets masked that a fetch put into it, and is the same error where there are none", () => {
    const mask = (text: string) => text.replaceAll("canary", "***");
    const made = (message: string) => new AgentAuthError("network_failed", message, { class: "unavailable" });
    expect(maskError(made("sent canary"), mask).message).toBe("sent ***");
    const everywhere = new AgentAuthError("canary" as never, "canary", {
      class: "remote",
      status: 418,
      url: "https://canary.example/",
      requestId: "canary",
      hint: "a canary",
      remedy: { action: "configure", option: "ca", value: "canary" },
      retryable: true,
    });
    expect(maskError(everywhere, mask).toJSON()).toEqual(
      JSON.parse(JSON.stringify(everywhere).replaceAll("canary", "***")),
    );
    for (const more of [
      { url: "https://canary.example/" },
      { requestId: "canary" },
      { hint: "a canary" },
      { remedy: { action: "configure", option: "ca", value: "canary" } },
    ] as const) {
      const masked = maskError(new AgentAuthError("bad_json", "m", { class: "refused", ...more }), mask);
      expect(masked).toMatchObject(JSON.parse(JSON.stringify(more).replaceAll("canary", "***")));
    }
    const clean = made("sent");
    expect(maskError(clean, mask)).toBe(clean);
  });

  const loop: Record<string, unknown> = {};
  loop["loop"] = loop;
  const coded = (message: string, more: object) => Object.assign(new Error(message), more);
  it.each<[string, unknown, unknown]>([
    ["a text", "a canary", "a ***"],
    ["an object", { of: "canary" }, undefined],
    [
      "an error with a cause",
      new Error("why", { cause: new Error("canary") }),
      { message: "why", cause: { message: "***" } },
    ],
    ["an error with a code", coded("canary", { code: "canary" }), { message: "***", code: "***" }],
    [
      "one of several errors",
      new AggregateError([new Error("canary")], "all"),
      { name: "AggregateError", message: "all" },
    ],
    ["a property of an error", coded("why", { path: "canary" }), { name: "Error", message: "why" }],
  ])("has the secrets masked in its cause: %s", (_what, cause, masked) => {
    const mask = (text: string) => text.replaceAll("canary", "***");
    const shown = maskError(new AgentAuthError("network_failed", "m", { class: "unavailable", cause }), mask).cause;
    expect([shown]).toMatchObject([masked]);
    expect(inspect(shown, { depth: 9 })).not.toContain("canary");
  });

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["a number", 7],
    ["a function", () => {}],
    ["an object", { of: "x" }],
    ["a loop", loop],
    ["an error", coded("x", { code: "ECONNRESET", cause: new Error("y") })],
  ])("keeps its cause where that has no secret: %s", (_what, cause) => {
    const mask = (text: string) => text.replaceAll("canary", "***");
    const error = new AgentAuthError("network_failed", "canary", { class: "unavailable", cause });
    expect(maskError(error, mask).cause).toBe(cause);
  });

  it("that is one of our errors already is given as it is", () => {
    const error = new AgentAuthError("bad_json", "x", { class: "refused" });
    expect(networkError(error, "https://a.example")).toBe(error);
  });
});
