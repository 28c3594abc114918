// A process is suspended, or killed out of sight, during a refresh, while others wait for it.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { bringTo } from "../aims.mjs";
import { must, until } from "../tools.mjs";

/**
 * Brings a process to its stage, suspends it there until its lease expires, and then continues it.
 *
 * @param trial.mayTakeOver whether the others continue without it while it is stopped; else they must wait
 */
export async function stopOnce(lane, { victim, crew, trial }) {
  const before = await lane.begin();
  const { own, others } = await bringVictim(lane, { victim, crew, trial });
  if (trial.inSave) {
    victim.go();
    await until(() => victim.state() === "T", "the process to stop");
  } else {
    victim.signal("SIGSTOP");
    victim.go();
  }
  if (trial.mayTakeOver) await Promise.all(others);
  else await pastDeadline(lane, { others, trial });
  must(victim.state() === "T", `${trial.what}: the process was not stopped`);
  victim.signal("SIGCONT");
  const answers = await Promise.all([own, ...others]);
  return judge(lane, { before, answers, trial });
}

/** What the other processes do while this one is suspended, in a word. */
export function othersDo({ mayTakeOver, isSaved }) {
  return mayTakeOver ? "take over" : isSaved ? "continue" : "wait";
}

/** The victim reaches its stage with its lease before the others start. */
export async function bringVictim(lane, { victim, crew, trial }) {
  const stop = trial.inSave && { deadly: trial.inSave, signal: "SIGSTOP" };
  const { own } = await bringTo(lane, victim, trial, (stage) => victim.insist(lane.request({ ...stage, ...stop })));
  return { own, others: crew.map((worker) => worker.insist(lane.request())) };
}

/** Waits until the newest lease expires; no other process may have continued without its holder. */
async function pastDeadline(lane, { others, trial }) {
  const sent = lane.ledger.all().length;
  let early;
  for (const other of others) other.then((answer) => (early ??= answer));
  const deadline = deadlineOf(lane);
  await until(() => bootClock() > deadline + 500, "the end of a lease");
  must(trial.isSaved || !early, () => `${trial.what}: a process continued: ${JSON.stringify(early)}`);
  must(lane.ledger.all().length === sent, `${trial.what}: a process sent a request to the issuer while it had to wait`);
}

function deadlineOf({ home }) {
  const folder = join(home, "claims");
  const claims = readdirSync(folder).filter((file) => file.endsWith(".claim"));
  const [newest] = claims.sort((one, two) => changed(folder, two) - changed(folder, one));
  return JSON.parse(readFileSync(join(folder, newest), "utf8")).deadline;
}

function changed(folder, file) {
  return statSync(join(folder, file)).mtimeMs;
}

/** Milliseconds of the clock that deadlines use. */
export function bootClock() {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/**
 * Checks that the session is valid, refreshed by one request, and that all processes got the same token.
 *
 * @returns how many refresh tokens were used twice, and how many sessions lost
 */
export async function judge(lane, { before, answers, trial }) {
  const after = await lane.check();
  const [rotations, refusals] = [lane.ledger.rotations().length, lane.ledger.refusals().length];
  const found = () => `${trial.what}: ${JSON.stringify({ answers, rotations, refusals, retired: after.retired })}`;
  must(!after.retired && after.generation === before.generation + 1, found);
  must(rotations === 1 && refusals === 0, found);
  must(answers[0].token !== undefined && new Set(answers.map(({ token }) => token)).size === 1, found);
  return { twice: refusals, lost: after.retired ? 1 : 0 };
}
