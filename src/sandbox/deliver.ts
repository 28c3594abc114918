import type { ServerResponse } from "node:http";
import type { Answer, Exchange } from "./exchange.js";
import { dueOf } from "./faults/controller.js";
import type { Waits } from "./waits.js";

const DRIP_BYTES = 16;
const DRIP_MS = 100;
/** Time for the first half of a body to reach the reader before the reset overtakes it. */
const RESET_DELAY_MS = 20;

/** Sends an answer, as badly as the due faults want it. Never throws: a reader may be gone at any moment. */
export async function deliver({ response, due }: Exchange, answer: Answer | "reset", waits: Waits): Promise<void> {
  const slow = dueOf(due, "slow-headers");
  if (slow) await waits.sleep(slow.ms);
  if (answer === "reset") return reset(response);
  const whole = typeof answer.body === "string" ? Buffer.from(answer.body) : answer.body;
  const body = dueOf(due, "truncated-json") ? whole.subarray(0, whole.length >>> 1) : whole;
  if (response.destroyed || response.headersSent) return;
  response.writeHead(answer.status, { ...answer.headers, "content-length": body.length });
  if (dueOf(due, "reset-mid-body")) return resetMidBody(response, body, waits);
  const drip = dueOf(due, "slow-body");
  if (drip) return dripBody(response, body, drip.bytes ?? DRIP_BYTES, drip.ms ?? DRIP_MS, waits);
  response.end(body);
}

async function resetMidBody(response: ServerResponse, body: Buffer, waits: Waits): Promise<void> {
  await new Promise<void>((resolve) => {
    response.once("close", resolve);
    response.write(body.subarray(0, body.length >>> 1), () => resolve());
  });
  await waits.sleep(RESET_DELAY_MS);
  reset(response);
}

async function dripBody(
  response: ServerResponse,
  body: Buffer,
  bytes: number,
  ms: number,
  waits: Waits,
): Promise<void> {
  response.flushHeaders();
  for (let sent = 0; sent < body.length && !response.destroyed; sent += bytes) {
    await waits.sleep(ms);
    response.write(body.subarray(sent, sent + bytes));
  }
  response.end();
}

function reset(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}
