import { AgentAuthError, abortedError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { unavailableError } from "../driver/bounded-driver.js";
import type { RecordKey } from "../driver/driver.js";
import { type EngineCall, engineCalls, pause, type Row, type Subscribe, thrownTexts } from "../driver/engine.js";
import { type Parameter, type PostgresQuery, rowsOf } from "./client.js";
import { fromHex } from "./store-sql.js";

/** Appendix A of PostgreSQL's manual: five digits or upper-case letters. System errors such as `EPIPE` look the same. */
const SQLSTATE = /^(?!E[A-Z]{4})[\dA-Z]{5}$/;

/**
 * Conditions that pass: the connection (08), resources such as connections and disk (53), a server that stops or starts
 * (57P0x), a time limit of the server (57014, 55P03), a standby that a failover has not reached yet (25006), and a conflict
 * with another transaction (40).
 */
const PASSING = /^(08...|53...|57P0.|57014|55P03|25006|40...)$/;

/** Another transaction was in the way, and the statement has changed nothing: the same one may succeed at once. */
const CONFLICT = /^(40001|40P01)$/;

const MISSING = /^(42P01|3F000)$/;

/** A message of a client that cannot be an address or a value: words alone. */
const WORDS = /^[A-Za-z][A-Za-z ,']{2,79}$/;

/**
 * An error of the client or of the server as one of the store. Only a message of the server is quoted: that of a client may
 * have the connection string, and its properties may have the values of the statement.
 */
export function engineError(error: unknown, location: string): AgentAuthError {
  if (isAgentAuthError(error)) return error;
  const code = codeOf(error);
  const { name, message: text } = thrownTexts(error);
  const isOfServer = SQLSTATE.test(code);
  // What the language throws: the client is not set up right, for example with an invalid URL.
  const isMistake = error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
  const shown = code || (WORDS.test(text) ? text : error instanceof Error ? name : typeof error);
  const what = isOfServer
    ? `the server refused the statement (${code}): ${quote(text)}`
    : `${isMistake ? "the client failed" : "the server cannot be reached"} (${shown})`;
  const message = `${location}: ${what}`;
  const cause = Object.assign(new Error(what), code && { code });
  if (isOfServer ? PASSING.test(code) : !isMistake) return unavailableError(message, cause);
  const remedy = MISSING.test(code) ? ({ action: "inspect", subject: "tables" } as const) : undefined;
  return new AgentAuthError("store_failed", message, { class: "store", hint: hintFor(code), remedy, cause });
}

function hintFor(code: string): string | undefined {
  if (MISSING.test(code)) return "run the SQL that storeSql() returns on this database, with the same table";
  if (code.startsWith("28")) return "the server does not accept the user name or the password of the client";
  if (code === "3D000") return "name a database that exists, in the settings of the client";
  if (code === "42501") return "let this role SELECT, INSERT, UPDATE and DELETE both tables, and USE the sequence";
  return undefined;
}

function codeOf(error: unknown): string {
  return /^\w{1,40}$/.exec(thrownTexts(error).code)?.[0] ?? "";
}

export type RunStatement = (text: string, values: readonly Parameter[]) => Promise<readonly Row[]>;

/** How often a statement is tried again that another transaction was in the way of, and the longest pause before that. */
const RETRIES = 3;
const RETRY_MS = 30;

/** How to carry out operations with a client. Every error of the client becomes one of the store. */
export function statementCalls(query: PostgresQuery, location: string, timeoutMs: number): EngineCall<RunStatement> {
  const session =
    (signal: AbortSignal): RunStatement =>
    async (text, values) => {
      for (let tries = 0; ; tries++) {
        if (signal.aborted) throw abortedError(signal);
        try {
          return rowsOf(await query(text, [...values]));
        } catch (error) {
          if (!CONFLICT.test(codeOf(error)) || tries === RETRIES) throw error;
          await pause(RETRY_MS * 2 ** tries * Math.random());
        }
      }
    };
  return engineCalls({ name: location, timeoutMs, session, failure: (thrown) => engineError(thrown, location) });
}

/** A notification that is about no record. */
const PROBE = "probe";
const UNDELIVERED =
  "notifications do not arrive on this connection, as behind PgBouncer in transaction mode: a near cache returns a login " +
  "that was changed elsewhere until its ttlMs";

/**
 * Listens, and looks whether anything arrives: a pooler in transaction mode accepts LISTEN and delivers nothing. So each
 * listener sends a notification over another connection, which must arrive.
 *
 * @param notify sends a notification to the channel over the connection of the statements
 * @param timeoutMs for how long that notification may be on its way
 * @returns `problem`: why reports do not arrive although the server accepted LISTEN; undefined until that is known
 */
export function checkedListen(listen: Subscribe, notify: (message: string) => Promise<unknown>, timeoutMs: number) {
  let isUndelivered = false;
  const subscribe: Subscribe = (channel, onMessage, onGap, signal) => {
    let hasArrived = false;
    const probe = async () => {
      hasArrived = false;
      await notify(PROBE);
      await pause(timeoutMs);
      if (!signal.aborted) isUndelivered = !hasArrived;
    };
    const onArrival = (message: string) => {
      if (signal.aborted) return;
      hasArrived = true;
      isUndelivered = false;
      if (message !== PROBE) onMessage(message);
    };
    const onListen = () => {
      onGap();
      // A server that does not answer says nothing about the connection.
      probe().catch(() => {});
    };
    return listen(channel, onArrival, onListen, signal);
  };
  return { subscribe, problem: () => (isUndelivered ? UNDELIVERED : undefined) };
}

/** The key in a notification: kind, partition and id as the statements get them. */
export function notifiedKey(message: string): RecordKey {
  const [kind = "", partition = "", id = ""] = message.split(" ");
  return { kind: kind as RecordKey["kind"], partition: fromHex(partition), id: fromHex(id) };
}
