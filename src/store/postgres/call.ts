import { abortedError } from "../../errors.js";
import { follow, untilAborted } from "../../http/deadline.js";
import { type Parameter, type PostgresQuery, pause, type Row, rowsOf } from "./client.js";
import { engineError, isConflict, unanswered } from "./engine-error.js";

/** Runs one statement. */
export type Run = (text: string, values: readonly Parameter[]) => Promise<readonly Row[]>;

/** Carries out an operation of one or more statements, with one time limit for all of them. */
export type Call = <T>(signal: AbortSignal | undefined, work: (run: Run) => Promise<T>) => Promise<T>;

/** How often a statement is tried again that another transaction was in the way of, and the longest pause before that. */
const RETRIES = 3;
const RETRY_MS = 30;

/** How to carry out operations with a client. Every error of the client becomes one of the store. */
export function callsTo(query: PostgresQuery, location: string, timeoutMs: number): Call {
  return async (signal, work) => {
    const limit = follow(signal, timeoutMs, () => unanswered(location, timeoutMs));
    // The client may ignore the end of the wait: what it has sent may happen, but nothing more is sent.
    const run: Run = async (text, values) => {
      if (limit.signal.aborted) throw abortedError(limit.signal);
      return rowsOf(await query(text, [...values]));
    };
    const again: Run = async (text, values) => {
      for (let tries = 0; ; tries++) {
        try {
          return await run(text, values);
        } catch (error) {
          if (!isConflict(error) || tries === RETRIES) throw error;
          await pause(RETRY_MS * 2 ** tries * Math.random());
        }
      }
    };
    try {
      if (limit.signal.aborted) throw abortedError(limit.signal);
      return await untilAborted(work(again), limit.signal);
    } catch (error) {
      throw engineError(error, location);
    } finally {
      limit.release();
    }
  };
}
