import { inspect } from "node:util";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { Subscribe } from "../../../src/store/driver/engine.js";
import { checkedListen } from "../../../src/store/postgres/engine.js";
import { postgresDriver } from "../../../src/store/postgres/postgres-driver.js";

const KEY = { kind: "grant", partition: "p", id: "i" } as const;

/** What a driver throws whose client throws this, and how often it was asked. */
async function failure(thrown: unknown): Promise<{ error: AgentAuthError; requested: number }> {
  let requested = 0;
  const query = async () => {
    requested++;
    throw thrown;
  };
  const error = await postgresDriver({ query })
    .get(KEY)
    .catch((reason) => reason);
  expect(error).toBeInstanceOf(AgentAuthError);
  return { error, requested };
}

const refusal = (code: string, message = "a sentence of the server") => Object.assign(new Error(message), { code });

afterEach(() => void vi.restoreAllMocks());

describe("an error of the engine", () => {
  it.each(["08006", "08P01", "53300", "53100", "57P01", "57P02", "57P03", "57014", "55P03", "25006"])(
    "%s is one that passes",
    async (code) => {
      const { error, requested } = await failure(refusal(code));
      expect(error).toMatchObject({ code: "store_unavailable", class: "unavailable", retryable: true });
      expect(error.message).toBe(
        `PostgreSQL table agentauth_record: the server refused the statement (${code}): "a sentence of the server"`,
      );
      expect(requested).toBe(1);
    },
  );

  it.each(["40001", "40P01"])("%s is one that passes, after three more tries", async (code) => {
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    const timers = vi.spyOn(globalThis, "setTimeout");
    const { error, requested } = await failure(refusal(code));
    expect(error).toMatchObject({ code: "store_unavailable", retryable: true });
    expect(requested).toBe(4);
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual(expect.arrayContaining([15, 30, 60]));
  });

  it.each(["ECONNREFUSED", "ECONNRESET", "EPIPE", "CONNECTION_CLOSED", "CONNECT_TIMEOUT", ""])(
    "%o of a client is one that passes",
    async (code) => {
      const { error } = await failure(refusal(code, "connect 10.0.0.1"));
      expect(error).toMatchObject({ code: "store_unavailable", class: "unavailable", retryable: true });
      expect(error.message).toContain(`the server cannot be reached (${code || "Error"})`);
      expect(Object.keys(error.cause as Error)).toEqual(code === "" ? [] : ["code"]);
    },
  );

  it.each(["timeout exceeded when trying to connect", "Connection terminated unexpectedly", "Query read timeout"])(
    "%o of a client without a code can be searched for",
    async (message) => {
      const { error } = await failure(new Error(message));
      expect(error.message).toContain(`the server cannot be reached (${message})`);
    },
  );

  it.each(["22P02", "23505", "28P01", "3D000", "42501", "42601", "XX000"])("%s is one that stays", async (code) => {
    const { error, requested } = await failure(refusal(code));
    expect(error).toMatchObject({ code: "store_failed", class: "store", retryable: false });
    expect(requested).toBe(1);
  });

  it.each([
    ["28P01", /user name or the password/],
    ["28000", /user name or the password/],
    ["3D000", /database that exists/],
  ])("%s of a connection that is refused says what to correct", async (code, hint) => {
    const { error } = await failure(refusal(code));
    expect(error.hint).toMatch(hint);
  });

  it("names the SQL of the store if the table is missing", async () => {
    const { error } = await failure(refusal("42P01", 'relation "agentauth_record" does not exist'));
    expect(error).toMatchObject({ code: "store_failed", hint: expect.stringContaining("storeSql()") });
    expect(error.remedy).toEqual({ action: "inspect", subject: "tables" });
  });

  it("names the privileges if the role lacks one", async () => {
    const { error } = await failure(refusal("42501"));
    expect(error.hint).toContain("USE the sequence");
  });

  it("shows neither the text of a client's error nor the properties of any", async () => {
    const secret = "postgres://app:hunter2@db/app";
    const parsing = Object.assign(new TypeError(`Invalid URL ${secret}`), { code: "ERR_INVALID_URL", input: secret });
    const losing = new Error(`connection to ${secret} lost`);
    const server = Object.assign(refusal("22021"), { parameters: [secret], where: secret });
    for (const thrown of [parsing, losing, server, secret, undefined, null, { code: secret }]) {
      const { error } = await failure(thrown);
      expect(inspect(error, { depth: 9, showHidden: true }) + JSON.stringify(error)).not.toContain("hunter2");
    }
    expect((await failure(parsing)).error).toMatchObject({
      code: "store_failed",
      message: "PostgreSQL table agentauth_record: the client failed (ERR_INVALID_URL)",
    });
  });

  it("escapes what the server writes", async () => {
    const { error } = await failure(refusal("XX000", "\u001b[2Jgone\u202e"));
    expect(error.message).toContain('"\\e[2Jgone\\u{202e}"');
  });

  it("that says nothing is named by its code", async () => {
    const { error } = await failure({ code: "XX000" });
    expect(error.message).toMatch(/refused the statement \(XX000\): ""$/);
  });

  it("that the application's query throws as one of ours stays what it is", async () => {
    const own = new AgentAuthError("tls_failed", "no", { class: "remote" });
    expect((await failure(own)).error).toBe(own);
  });
});

describe("listening that is checked", () => {
  /** A listener, and what its server does: `deliver` sends it a message, `connect` makes it listen. */
  function listening(notify: (message: string) => Promise<unknown>) {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const server = { deliver: (_message: string) => {}, connect: () => {} };
    const listen: Subscribe = async (channel, deliver, connect) => {
      expect(channel).toBe("records");
      Object.assign(server, { deliver, connect });
    };
    const checked = checkedListen(listen, notify, 1000);
    const controller = new AbortController();
    const heard: string[] = [];
    const hear = (what: string) => void heard.push(what);
    void checked.subscribe("records", hear, () => hear("gap"), controller.signal);
    server.connect();
    return { server, heard, problem: checked.problem, abort: () => controller.abort() };
  }

  it("reports what arrives, without the probe, which shows that there is no problem", async () => {
    const { server, heard, problem } = listening(async (message) => server.deliver(message));
    server.deliver("a record");
    await vi.advanceTimersByTimeAsync(1000);
    expect([heard, problem()]).toEqual([["gap", "a record"], undefined]);
  });

  it("has a problem where the probe does not arrive in time, until anything does", async () => {
    const { server, heard, problem } = listening(async () => undefined);
    await vi.advanceTimersByTimeAsync(999);
    expect(problem()).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(problem()).toBe(
      "notifications do not arrive on this connection, as behind PgBouncer in transaction mode: a near cache returns a " +
        "login that was changed elsewhere until its ttlMs",
    );
    server.deliver("probe");
    expect([heard, problem()]).toEqual([["gap"], undefined]);
    // It listens again, where nothing arrives any more.
    server.connect();
    await vi.advanceTimersByTimeAsync(1000);
    expect([heard, problem()]).toEqual([["gap", "gap"], expect.any(String)]);
  });

  it("has no problem where the server does not answer, or the listener has ended", async () => {
    const failing = listening(async () => Promise.reject(new Error("the connection is gone")));
    await vi.advanceTimersByTimeAsync(1000);
    expect(failing.problem()).toBeUndefined();
    const { server, heard, problem, abort } = listening(async () => undefined);
    abort();
    server.deliver("a record");
    await vi.advanceTimersByTimeAsync(1000);
    expect([heard, problem()]).toEqual([["gap"], undefined]);
  });
});
