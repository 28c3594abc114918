import type { IncomingMessage, ServerResponse } from "node:http";
import { quote } from "../../redact.js";
import { scramble } from "../data/random.js";
import type { FaultController } from "../faults/controller.js";
import { replacement } from "../faults/replace.js";
import { type LoggedRequest, loggedQuery } from "./request-log.js";
import { respond } from "./respond.js";
import { type Answer, failure, type Part, Refusal, type RoundTrip } from "./round-trip.js";
import type { RequestHandler } from "./server.js";
import type { Sleeps } from "./sleeps.js";

/** What every request goes through. */
export interface RouterSettings {
  seed: number;
  parts: readonly Part[];
  faults: FaultController;
  /** Refuses what web pages send. @throws Refusal */
  guard: (request: IncomingMessage) => void;
  log: (entry: LoggedRequest) => void;
  now: () => number;
  waits: Sleeps;
}

/** Makes the function that leads each request to the part that answers it. */
export function createRouter(settings: RouterSettings): RequestHandler {
  let count = 0;
  return async (request, response) => {
    count += 1;
    response.setHeader("x-request-id", `req_${scramble(settings.seed, count).toString(36).padStart(10, "0")}`);
    const exchange = exchangeOf(request, response);
    const part = settings.parts.find((candidate) => candidate.owns(exchange.path));
    const entry: LoggedRequest = {
      method: exchange.method,
      path: exchange.path,
      query: loggedQuery(exchange.query),
      at: settings.now(),
      status: 0,
    };
    if (!part?.unlogged) settings.log(entry);
    const answer = await answerOf(settings, part, exchange);
    if (exchange.operation !== undefined) entry.operation = exchange.operation;
    if (exchange.due.length > 0) entry.fault = exchange.due.map(({ kind }) => kind).join(",");
    if (answer === undefined) response.once("close", () => Object.assign(entry, { status: response.statusCode }));
    else if (answer !== "reset") entry.status = answer.status;
    if (answer) await respond(exchange, answer, settings.waits);
    // What was not read of a body must not stand before the next request of the connection.
    request.resume();
  };
}

function exchangeOf(request: IncomingMessage, response: ServerResponse): RoundTrip {
  const [path, search] = splitOnce(request.url ?? "/", "?");
  return { method: request.method ?? "GET", path, query: new URLSearchParams(search), due: [], request, response };
}

async function answerOf(
  settings: RouterSettings,
  part: Part | undefined,
  exchange: RoundTrip,
): Promise<Answer | "reset" | undefined> {
  try {
    settings.guard(exchange.request);
    if (!part) return failure(404, "not_found", "there is nothing at this path");
    if (part.faulty) exchange.due = settings.faults.due({ path: exchange.path, ...(await part.target?.(exchange)) });
    const replaced = replacement(exchange.due);
    if (part.latency > 0) await settings.waits.sleep(part.latency);
    return replaced ?? (await part.handle(exchange));
  } catch (error) {
    if (error instanceof Refusal) return error.answer;
    return failure(500, "unexpected", `the sandbox failed: ${quote(String(error))}`);
  }
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}
