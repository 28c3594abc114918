import { closeSync, openSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { AgentAuthError, isAgentAuthError } from "../../../src/errors.js";
import type { Lease, LeaseOptions } from "../../../src/oauth/model/lease.js";
import { fileStore } from "../../../src/store/file/file.js";

/** Takes one lease, and carries out the commands that it gets. */
export interface HoldJob {
  kind: "hold";
  folder: string;
  name: string;
  options: Omit<LeaseOptions<unknown>, "signal" | "until" | "onWait">;
}

/** Takes a lease again and again; a file that only one can create at a time shows when two hold it at once. */
export interface RoundsJob {
  kind: "rounds";
  folder: string;
  name: string;
  guard: string;
  rounds: number;
  once: boolean;
  /** Commits in every round. */
  commit: boolean;
}

/** The commands for a holder. */
export type Command = { do: "commit" | "left" | "release" | "withdraw" } | { do: "fail"; code: string };

const job = JSON.parse(process.argv[2] ?? "") as HoldJob | RoundsJob;
const say = (event: string, more: object = {}) => process.send?.({ event, ...more });

const commands: Command[] = [];
process.on("message", (command) => commands.push(command as Command));

async function command(): Promise<Command> {
  for (;;) {
    const next = commands.shift();
    if (next) return next;
    await sleep(1);
  }
}

async function obey(lease: Lease): Promise<string> {
  const { previous, waited } = lease;
  say("holds", { previous, waited });
  for (;;) {
    const instruction = await command();
    if (instruction.do === "release") return "released";
    if (instruction.do === "fail")
      throw new AgentAuthError(instruction.code, "the holder failed", { class: "unavailable" });
    if (instruction.do === "withdraw") lease.rollback();
    if (instruction.do === "left") say("left", { left: lease.left() });
    if (instruction.do === "commit") {
      const lost = await lease.commit().catch((error: unknown) => error);
      say("committed", { lost: isAgentAuthError(lost) ? lost.code : lost });
    }
  }
}

async function hold({ folder, name, options }: HoldJob): Promise<void> {
  const store = fileStore(folder);
  const onWait = ({ pid }: { pid: number | undefined }) => say("waits", { pid });
  try {
    say("ended", { result: await store.lease<unknown>(name, obey, { ...options, onWait }) });
  } catch (error) {
    say("ended", { error: isAgentAuthError(error) ? error.toJSON() : String(error) });
  }
}

async function rounds({ folder, name, guard, rounds: count, once, commit }: RoundsJob): Promise<void> {
  let overlaps = 0;
  const work = async (lease: Lease) => {
    if (commit) await lease.commit();
    try {
      closeSync(openSync(guard, "wx"));
    } catch {
      overlaps++;
      return;
    }
    // Long enough for another process to come in between.
    await sleep(Math.random() * 2);
    rmSync(guard);
  };
  const store = fileStore(folder);
  for (let nth = 0; nth < count; nth++) await store.lease(name, work, { durationMs: 60_000, once });
  say("ended", { overlaps });
}

say("started");
await (job.kind === "hold" ? hold(job) : rounds(job));
process.disconnect?.();
