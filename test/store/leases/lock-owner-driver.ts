import { bootClock, type LockOwner, thisProcess } from "../../../src/store/leases/lock-owner.js";

/** What a process says of itself. */
export interface SelfPortrait {
  event: "is";
  holder: LockOwner;
  clock: number;
}

process.send?.({ event: "is", holder: thisProcess(), clock: bootClock() } satisfies SelfPortrait);
// Runs until it is killed.
process.on("message", () => undefined);
