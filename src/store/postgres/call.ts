import { AgentAuthError, abortedError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { inTime } from "../driver/bounded-driver.js";
import { type Parameter, type PostgresQuery, pause, type Row, rowsOf } from "./client.js";

/** Appendix A of PostgreSQL's manual: five digits or upper-case letters. System errors such as `EPIPE` look the same. */
const SQLSTATE = /^(?!E[A-Z]{4}$)[\dA-Z]{5}$/;

/**
 * Conditions that pass: the connection (08), resources such as connections and disk (53), a server that stops or starts
 * (57P0x), a time limit of the server (57014, 55P03), a standby that a failover has not reached yet (25006), and a conflict
 * with another transaction (40).
 */
const PASSING = /^(08...|53...|57P0.|57014|55P03|25006|40...)$/;

/** Another transaction was in the way, and the statement has changed nothing. */
const CONFLICT = /^(40001|40P01)$/;

const MISSING = /^(42P01|3F000)$/;

/** Whether the same statement may succeed at once. */
function isConflict(error: unknown): boolean {
  return CONFLICT.test(codeOf(error));
}

/** The error for a call that had no answer in time. */
function unanswered(location: string, timeoutMs: number): AgentAuthError {
  return new AgentAuthError("store_unavailable", `${location}: no response in ${timeoutMs / 1000} s`, {
    class: "unavailable",
  });
}

/**
 * An error of the client or of the server as one of the store. Only a message of the server is quoted: that of a client may
 * have the connection string, and its properties may have the values of the statement.
 */
export function engineError(error: unknown, location: string): AgentAuthError {
  if (isAgentAuthError(error)) return error;
  const code = codeOf(error);
  const isOfServer = SQLSTATE.test(code);
  const what = isOfServer
    ? `the server refused the statement (${code}): ${quote(messageOf(error))}`
    : failed(error, code);
  const message = `${location}: ${what}`;
  const cause = Object.assign(new Error(what), code && { code });
  if (isOfServer ? PASSING.test(code) : !isMistake(error))
    return new AgentAuthError("store_unavailable", message, { class: "unavailable", cause });
  const remedy = MISSING.test(code) ? ({ action: "inspect", subject: "tables" } as const) : undefined;
  return new AgentAuthError("store_failed", message, { class: "store", hint: hintFor(code), remedy, cause });
}

/** A message of a client that cannot be an address or a value: words alone. */
const WORDS = /^[A-Za-z][A-Za-z ,']{2,79}$/;

function failed(error: unknown, code: string): string {
  const name = code || (WORDS.test(messageOf(error)) ? messageOf(error) : nameOf(error));
  return isMistake(error) ? `the client failed (${name})` : `the server cannot be reached (${name})`;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

/** Errors that the language throws: the client is not set up right, for example with an invalid URL. */
function isMistake(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

function hintFor(code: string): string | undefined {
  if (MISSING.test(code)) return "run the SQL that storeSql() returns on this database, with the same table";
  if (code.startsWith("28")) return "the server does not accept the user name or the password of the client";
  if (code === "3D000") return "name a database that exists, in the settings of the client";
  if (code === "42501") return "let this role SELECT, INSERT, UPDATE and DELETE both tables, and USE the sequence";
  return undefined;
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" && /^\w{1,40}$/.test(code) ? code : "";
}

function messageOf(error: unknown): string {
  return String((Object(error) as { message?: unknown }).message ?? "");
}

/** Runs one statement. */
export type RunStatement = (text: string, values: readonly Parameter[]) => Promise<readonly Row[]>;

/** Carries out an operation of one or more statements, with one time limit for all of them. */
export type StatementCall = <T>(signal: AbortSignal | undefined, work: (run: RunStatement) => Promise<T>) => Promise<T>;

/** How often a statement is tried again that another transaction was in the way of, and the longest pause before that. */
const RETRIES = 3;
const RETRY_MS = 30;

/** How to carry out operations with a client. Every error of the client becomes one of the store. */
export function statementCalls(query: PostgresQuery, location: string, timeoutMs: number): StatementCall {
  const late = () => unanswered(location, timeoutMs);
  const runUntil =
    (signal: AbortSignal): RunStatement =>
    async (text, values) => {
      for (let tries = 0; ; tries++) {
        // The client may ignore the end of the wait: what it has sent may happen, but nothing more is sent.
        if (signal.aborted) throw abortedError(signal);
        try {
          return rowsOf(await query(text, [...values]));
        } catch (error) {
          if (!isConflict(error) || tries === RETRIES) throw error;
          await pause(RETRY_MS * 2 ** tries * Math.random());
        }
      }
    };
  return (signal, work) =>
    inTime({ signal, timeoutMs, late }, (limit) => work(runUntil(limit))).catch((error: unknown) => {
      throw engineError(error, location);
    });
}
