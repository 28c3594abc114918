// The stages of a refresh at which a process is killed, in their order.
import { must, until } from "../invariant.mjs";

/** `loses`: the issuer has rotated the token, and nothing is saved yet. `deadly`: in the files of a store. */
export const AIMS = [
  { what: "with the lease, before the reservation", still: "claimed" },
  { what: "before the mark", still: "reserved" },
  { what: "after the mark", still: "committed" },
  { what: "right before the request", still: "sending" },
  { what: "rotated, no response yet", rotated: true, loses: true },
  { what: "response read, before the save", still: "answered", loses: true },
  { what: "written, before fsync", deadly: "writing", loses: true },
  { what: "after fsync, before the link", deadly: "synced", loses: true },
  { what: "linked, temporary name still there", deadly: "linked" },
  { what: "before the fsync of the folder", deadly: "published" },
  { what: "saved, before the lease is released", still: "saved" },
];

/**
 * Brings a process to its stage; one that dies in a save pauses before that.
 *
 * @param place has the issuer and its log
 * @param request what the process is asked
 * @returns `own`, its answer
 */
export async function bringTo({ sandbox, ledger }, victim, { what, still = "answered", rotated, deadly }, request) {
  if (rotated) sandbox.faults.add({ kind: "slow-headers", ms: 600_000, path: "token", times: 1 });
  const stage = rotated ? until(() => ledger.rotations().length === 1, "the rotation") : victim.stage();
  const own = victim.ask({ ...request, deadly, ...(!rotated && { still }) });
  must((await stage) === (rotated || still), `${what}: the process did not come to its stage`);
  sandbox.faults.clear();
  return { own };
}
