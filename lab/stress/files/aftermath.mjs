// Checks the store and the session after a process was killed or suspended.
import { must } from "../tools.mjs";

/** The cause in the error of a session that was lost to a killed process. */
const CAUSE =
  /the refresh that began at \d{4}-\d\d-\d\dT[\d:.]+Z (was interrupted when its process ended|did not finish in time)/;

/**
 * Waits for the other processes and checks the outcome. Either they have a new token and the store its generation, or the
 * session is lost: that is allowed only if the issuer has rotated the token and nothing was saved, and every process must
 * report it. Then a new login follows.
 *
 * @returns whether a rotation was not saved, whether the session was lost, and then the milliseconds from the rotation to
 * the next request
 */
export async function settle(lane, { before, crew, calls }) {
  const answers = await Promise.all(calls);
  const stored = await lane.check();
  const [rotated, refused] = [lane.ledger.rotations(), lane.ledger.refusals()];
  const [rotations, refusals] = [rotated.length, refused.length];
  const found = () => JSON.stringify({ answers, rotations, refusals, retired: stored.retired });
  if (!stored.retired) {
    must(
      answers.every(({ token }) => token !== undefined),
      () => `a process got no token: ${found()}`,
    );
    must(
      stored.generation === before.generation + 1,
      () => `generation ${stored.generation} after ${before.generation}`,
    );
    must(refusals === 0 && rotations >= 1 && rotations <= 2, () => `the requests do not add up: ${found()}`);
    return { exposed: rotations === 2, lost: false };
  }
  const { reason } = stored.retired;
  // The mark has the generation of the refresh, which was therefore not published.
  must(stored.generation === before.generation + 1, () => `lost after a save: ${found()}`);
  must(rotations === 1 && refusals === 1, () => `lost without a rotation that was not saved: ${found()}`);
  must(CAUSE.test(reason), () => `lost without its cause: ${found()}`);
  must(
    answers.every(({ error }) => error?.code === "login_required" && CAUSE.test(error.message)),
    found,
  );
  await lane.login();
  const [next] = await Promise.all(crew.map((worker) => worker.ask({ epoch: lane.epoch })));
  must(next.token !== undefined, () => `no token after a new login: ${JSON.stringify(next)}`);
  return { exposed: true, lost: true, after: refused[0].at - rotated[0].at };
}
