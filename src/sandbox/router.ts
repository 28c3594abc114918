import type { IncomingMessage } from "node:http";
import { quote } from "../redact.js";
import { mix } from "./data/random.js";
import type { FaultController } from "./faults/controller.js";
import { replacement } from "./faults/replace.js";
import { respond } from "./faults/respond.js";
import type { Part, RoundTrip } from "./faults/round-trip.js";
import { type Answer, failure, Refusal } from "./http/answer.js";
import { allowedOrigin, corsHeaders, preflightAnswer } from "./http/cors.js";
import { type LoggedRequest, loggedQuery } from "./http/request-log.js";
import type { RequestHandler } from "./http/server.js";
import type { Sleeps } from "./http/sleeps.js";

/** What the router needs. */
export interface RouterSettings {
  seed: number;
  parts: readonly Part[];
  faults: FaultController;
  /** The origins whose pages may use the parts that allow pages. */
  allowOrigins: readonly string[];
  /** Rejects requests of web pages, except those of the origin `page`. @throws Refusal */
  guard: (request: IncomingMessage, page?: string) => void;
  log: (entry: LoggedRequest) => void;
  now: () => number;
  sleeps: Sleeps;
}

/** Returns the handler that passes each request to the part that owns its path. */
export function createRouter(settings: RouterSettings): RequestHandler {
  let count = 0;
  return async (request, response) => {
    count += 1;
    response.setHeader("x-request-id", `req_${mix(settings.seed, count).toString(36).padStart(7, "0")}`);
    const { method = "GET", url = "/" } = request;
    const [path = "/", ...search] = url.split("?");
    const query = new URLSearchParams(search.join("?"));
    const roundTrip: RoundTrip = { method, path, query, due: [], request, response };
    const part = settings.parts.find((candidate) => candidate.owns(path));
    const entry: LoggedRequest = { method, path, query: loggedQuery(query), at: settings.now(), status: 0 };
    if (!part?.unlogged) settings.log(entry);
    const answer = await answerOf(settings, part, roundTrip);
    if (roundTrip.operation !== undefined) entry.operation = roundTrip.operation;
    if (roundTrip.due.length > 0) entry.fault = roundTrip.due.map(({ kind }) => kind).join(",");
    if (answer === undefined) entry.status = response.statusCode;
    else if (answer !== "reset") entry.status = answer.status;
    if (answer) await respond(roundTrip, answer, settings.sleeps);
    // The unread rest of a body must not precede the next request of the connection.
    request.resume();
  };
}

async function answerOf(
  settings: RouterSettings,
  part: Part | undefined,
  roundTrip: RoundTrip,
): Promise<Answer | "reset" | undefined> {
  const { request, response, path } = roundTrip;
  try {
    const page = part?.allowsPages?.(path) ? allowedOrigin(request, settings.allowOrigins) : undefined;
    settings.guard(request, page);
    if (page !== undefined) {
      for (const [name, value] of Object.entries(corsHeaders(page))) response.setHeader(name, value);
      const preflight = preflightAnswer(request);
      if (preflight) return preflight;
    }
    if (!part) return failure(404, "not_found", "there is nothing at this path");
    if (part.faulty) roundTrip.due = settings.faults.due({ path, ...(await part.target?.(roundTrip)) });
    const replaced = replacement(roundTrip.due);
    await settings.sleeps.sleep(part.latency ?? 0);
    return replaced ?? (await part.handle(roundTrip));
  } catch (error) {
    if (error instanceof Refusal) return error.answer;
    return failure(500, "unexpected", `the sandbox failed: ${quote(String(error))}`);
  }
}
