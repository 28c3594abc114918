/** Output that is longer than the screen goes through the person's pager, as git's and man's does. */

import type { Format } from "../flags/formats.js";
import { heldMessages } from "../io/held-messages.js";
import { PipeClosed } from "../io/io.js";
import { pagedStream } from "../io/paged-stream.js";
import type { CommandContext } from "../runtime/context.js";
import { startPager } from "./pager-process.js";

/** What decides whether there is a pager. */
export interface PagerFlags {
  format: Format;
  /** `false` for `--no-pager`. */
  pager?: boolean;
  /** `false` for `--no-input`, and where an AI agent runs us. */
  input?: boolean;
}

/**
 * Does the work with an output that turns to the pager once it is longer than the screen, and waits until the person
 * has left the pager. Messages for people wait until then. Where nobody is there to turn pages, the work is done with
 * the output as it is.
 *
 * @throws what the work throws; {@link PipeClosed} when the pager was left before it had everything
 */
export async function withPager(
  context: CommandContext,
  flags: PagerFlags,
  work: (context: CommandContext) => Promise<void>,
): Promise<void> {
  if (!hasPerson(context, flags)) return work(context);
  const stop = new AbortController();
  const follow = () => stop.abort(context.signal.reason);
  if (context.signal.aborted) follow();
  else context.signal.addEventListener("abort", follow, { once: true });
  const stdout = pagedStream(context.io.stdout, async () => {
    const pager = await startPager(context, stop);
    if (pager) messages.hold("everything");
    return pager;
  });
  const messages = heldMessages(context.io, stdout.stream);
  // What is said about a list that waits comes after it.
  messages.hold("talk");
  try {
    const outcome = await settled(work(context.with({ io: messages.io, signal: stop.signal })));
    await stdout.end();
    // However the work tells that nobody read on.
    if (stop.signal.reason instanceof PipeClosed) throw stop.signal.reason;
    if ("error" in outcome) throw outcome.error;
  } finally {
    context.signal.removeEventListener("abort", follow);
    messages.release();
  }
}

function hasPerson({ io }: CommandContext, { format, pager, input }: PagerFlags): boolean {
  if (!io.stdout.isTTY || format === "ndjson" || pager === false || input === false) return false;
  if (io.env["AGENTAUTH_NO_INPUT"] || io.env["TERM"] === "dumb") return false;
  return /^(?:false|0|no|off)?$/i.test(io.env["CI"] ?? "");
}

async function settled(work: Promise<void>): Promise<{ error: unknown } | Record<string, never>> {
  try {
    await work;
    return {};
  } catch (error) {
    return { error };
  }
}
