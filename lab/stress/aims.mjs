// The stages of a refresh at which a process is killed or suspended.
import { must, until } from "./tools.mjs";

/** In their order. `loses`: the issuer has rotated the token, and nothing is saved yet. `deadly`: in the files of a store. */
export const AIMS = [
  { what: "with the lease, before the reservation", still: "claimed" },
  { what: "before the mark", still: "reserved" },
  { what: "after the mark", still: "committed" },
  { what: "right before the request", still: "sending" },
  { what: "rotated, no response yet", rotated: 600_000, loses: true },
  { what: "response read, before the save", still: "answered", loses: true },
  { what: "written, before fsync", still: "answered", deadly: "writing", loses: true },
  { what: "after fsync, before the link", still: "answered", deadly: "synced", loses: true },
  { what: "linked, temporary name still there", still: "answered", deadly: "linked" },
  { what: "before the fsync of the folder", still: "answered", deadly: "published" },
  { what: "saved, before the lease is released", still: "saved" },
];

/**
 * Brings a process to its stage.
 *
 * @param sessions has the issuer and its log
 * @param trial.still the stage at which the process pauses
 * @param trial.rotated in place of that: milliseconds between the rotation at the issuer and its response
 * @param ask requests a token from the process; it gets what the message says about the stage
 * @returns `own`, the answer of the process
 */
export async function bringTo({ sandbox, ledger }, victim, { what, still, rotated }, ask) {
  if (rotated) sandbox.faults.add({ kind: "slow-headers", ms: rotated, path: "token", times: 1 });
  const stage = rotated ? until(() => ledger.rotations().length === 1, "the rotation") : victim.stage();
  const own = ask(rotated ? {} : { still });
  must((await stage) === (rotated ? true : still), `${what}: the process did not come to its stage`);
  sandbox.faults.clear();
  return { own };
}
