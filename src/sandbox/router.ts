import { quote } from "../redact.js";
import { mix } from "./data/seeded.js";
import type { FaultController } from "./faults/controller.js";
import { replacementFor, respond } from "./faults/effects.js";
import type { RoundTrip, SandboxPart } from "./faults/round-trip.js";
import type { Sleeps } from "./http/clock.js";
import { type LoggedRequest, loggedQuery } from "./http/request-log.js";
import { allowedOrigin, corsHeaders, type HostGuard, hostGuard, preflightAnswer } from "./http/requests.js";
import { errorResponse, Refusal, type SandboxResponse } from "./http/sandbox-response.js";
import { type Listening, type RequestHandler, startServer } from "./http/server.js";

/** What the origins share. */
export interface OriginSettings {
  seed: number;
  host: string;
  faults: FaultController;
  /** The origins whose pages may use the parts that allow pages. */
  allowOrigins: readonly string[];
  log: (entry: LoggedRequest) => void;
  now: () => number;
  sleeps: Sleeps;
}

/** The origins that a sandbox listens at: one, or one for each origin of a shape. */
export class Origins {
  readonly #settings: OriginSettings;
  readonly #listening = new Map<string, Listening>();
  readonly #routers = new Map<string, RequestHandler>();

  constructor(settings: OriginSettings) {
    this.#settings = settings;
  }

  /**
   * Listens at a port; requests get no answer before {@link serve}.
   *
   * @returns the origin
   * @throws AgentAuthError `usage`
   */
  async open(port: number): Promise<string> {
    // The parts need the origin, which is known only once the server listens.
    const listening: Listening = await startServer(this.#settings.host, port, async (request, response) => {
      const router = this.#routers.get(listening.origin);
      if (router) await router(request, response);
      else response.destroy();
    });
    this.#listening.set(listening.origin, listening);
    return listening.origin;
  }

  /** Serves an open origin. */
  serve(origin: string, parts: readonly SandboxPart[]): void {
    const port = this.#listening.get(origin)?.port ?? 0;
    this.#routers.set(origin, createRouter(this.#settings, parts, hostGuard(this.#settings.host, port)));
  }

  /** Closes all of them, within a second. */
  async close(): Promise<void> {
    await Promise.all([...this.#listening.values()].map((one) => one.close()));
  }
}

/** Returns the handler that passes each request to the part that owns its path. */
function createRouter(settings: OriginSettings, parts: readonly SandboxPart[], guard: HostGuard): RequestHandler {
  let count = 0;
  return async (request, response) => {
    count += 1;
    response.setHeader("x-request-id", `req_${mix(settings.seed, count).toString(36).padStart(7, "0")}`);
    const { method = "GET", url = "/" } = request;
    const [path = "/", ...search] = url.split("?");
    const query = new URLSearchParams(search.join("?"));
    const roundTrip: RoundTrip = { method, path, query, faults: [], request, response };
    const part = parts.find((candidate) => candidate.owns(path));
    const entry: LoggedRequest = { method, path, query: loggedQuery(query), at: settings.now(), status: 0 };
    if (!part?.unlogged) settings.log(entry);
    const answer = await answerOf(settings, guard, part, roundTrip);
    if (roundTrip.operation !== undefined) entry.operation = roundTrip.operation;
    if (roundTrip.faults.length > 0) entry.fault = roundTrip.faults.map(({ kind }) => kind).join(",");
    if (answer === undefined) entry.status = response.statusCode;
    else if (answer !== "reset") entry.status = answer.status;
    if (answer) await respond(roundTrip, answer, settings.sleeps);
    // The unread rest of a body must not precede the next request of the connection.
    request.resume();
  };
}

async function answerOf(
  settings: OriginSettings,
  guard: HostGuard,
  part: SandboxPart | undefined,
  roundTrip: RoundTrip,
): Promise<SandboxResponse | "reset" | undefined> {
  const { request, response, path } = roundTrip;
  try {
    const page = part?.allowsPages?.(path) ? allowedOrigin(request, settings.allowOrigins) : undefined;
    guard(request, page);
    if (page !== undefined) {
      for (const [name, value] of Object.entries(corsHeaders(page))) response.setHeader(name, value);
      const preflight = preflightAnswer(request);
      if (preflight) return preflight;
    }
    if (!part) return errorResponse(404, "not_found", "there is nothing at this path");
    if (part.faulty) roundTrip.faults = settings.faults.select({ path, ...(await part.target?.(roundTrip)) });
    const replaced = replacementFor(roundTrip.faults);
    await settings.sleeps.sleep(part.latency ?? 0);
    return replaced ?? (await part.handle(roundTrip));
  } catch (error) {
    if (error instanceof Refusal) return error.response;
    return errorResponse(500, "unexpected", `the sandbox failed: ${quote(String(error))}`);
  }
}
