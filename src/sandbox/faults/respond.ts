import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { SandboxResponse } from "../http/sandbox-response.js";
import type { Sleeps } from "../http/sleeps.js";
import { findFault } from "./controller.js";
import type { RoundTrip } from "./round-trip.js";

const DRIP_BYTES = 16;
const DRIP_MS = 100;
/** Time for the first half of a body to reach the reader before the reset does. */
const RESET_DELAY_MS = 20;

/** Sends a response with the delivery faults that strike it. Never throws: the reader may disconnect at any moment. */
export async function respond(roundTrip: RoundTrip, answer: SandboxResponse | "reset", sleeps: Sleeps): Promise<void> {
  const { request, response, faults } = roundTrip;
  const slow = findFault(faults, "slow-headers");
  if (slow) await sleeps.sleep(slow.ms);
  if (answer === "reset" || findFault(faults, "reset-after")) return resetConnection(request);
  const whole = typeof answer.body === "string" ? Buffer.from(answer.body) : answer.body;
  const body = findFault(faults, "truncated-json") ? whole.subarray(0, whole.length >>> 1) : whole;
  if (response.destroyed || response.headersSent) return;
  const headers = { ...answer.headers, ...response.getHeaders(), "content-length": body.length };
  response.writeHead(answer.status, headers as OutgoingHttpHeaders);
  if (findFault(faults, "reset-mid-body")) return resetMidBody(roundTrip, body, sleeps);
  const drip = findFault(faults, "slow-body");
  if (drip) return dripBody(response, body, drip.bytes ?? DRIP_BYTES, drip.ms ?? DRIP_MS, sleeps);
  response.end(body);
}

async function resetMidBody({ request, response }: RoundTrip, body: Buffer, sleeps: Sleeps): Promise<void> {
  response.flushHeaders();
  response.write(body.subarray(0, body.length >>> 1));
  await sleeps.sleep(RESET_DELAY_MS);
  resetConnection(request);
}

async function dripBody(
  response: ServerResponse,
  body: Buffer,
  bytes: number,
  ms: number,
  sleeps: Sleeps,
): Promise<void> {
  response.flushHeaders();
  for (let sent = 0; sent < body.length && !response.destroyed; sent += bytes) {
    await sleeps.sleep(ms);
    response.write(body.subarray(sent, sent + bytes));
  }
  response.end();
}

// Not through the response: one that waits behind another on a keep-alive connection has no socket yet.
function resetConnection(request: IncomingMessage): void {
  request.socket.resetAndDestroy();
}
