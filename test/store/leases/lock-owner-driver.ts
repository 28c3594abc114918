import { bootClock, type Holder, thisHolder } from "../../../src/store/leases/lock-owner.js";

/** What a process says of itself. */
export interface SelfPortrait {
  event: "is";
  holder: Holder;
  clock: number;
}

process.send?.({ event: "is", holder: thisHolder(), clock: bootClock() } satisfies SelfPortrait);
// Goes on until it is killed.
process.on("message", () => undefined);
