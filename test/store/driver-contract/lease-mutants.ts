import type { LeaseTrace, RecordKey, StoreDriver } from "../../../src/store/driver/driver.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { type Mutant, mutant, nameOf } from "./mutant.js";

const START = Date.now();

/** Mistakes with leases. */
export const leaseMutants: readonly Mutant[] = [
  {
    mistake: "reads the clock of the caller",
    caseName: "a wrong clock of this machine moves no lease",
    // As if each caller sent its own time with its claim.
    open: (clock) => memoryDriver({ clock: { epoch: () => Date.now() - START + clock.epoch() } }),
  },
  mutant("counts each claim as the first", "the attempt of each claim is higher", (driver) => {
    const first = (trace: LeaseTrace): LeaseTrace => ({ ...trace, attempt: 1 });
    return {
      claim: async (key, claim, options) => {
        const answer = await driver.claim(key, claim, options);
        if (!answer.held) return { ...answer, by: first(answer.by) };
        return { held: true, attempt: 1, previous: answer.previous && first(answer.previous) };
      },
    };
  }),
  mutant("gives a lease to all that ask at once", "of 50 claims one is held", (driver) => {
    return {
      claim: async (key, claim, options) => {
        const answer = await driver.claim(key, claim, options);
        return answer.held || answer.by.now > answer.by.at
          ? answer
          : { held: true, attempt: answer.by.attempt, previous: undefined };
      },
    };
  }),
  mutant("extends for another owner", "extend and release by another owner are ignored", (driver) => {
    const holders = holdersOf(driver);
    return {
      claim: holders.claim,
      extend: (key, claim, options) => driver.extend(key, { ...claim, owner: holders.of(key) ?? claim.owner }, options),
    };
  }),
  mutant("releases the lease of another", "extend and release by another owner are ignored", (driver) => {
    const holders = holdersOf(driver);
    return {
      claim: holders.claim,
      release: (key, { note }, options) => driver.release(key, { owner: holders.of(key) ?? "", note }, options),
    };
  }),
  mutant("takes an expired lease for a released one", "a lease is free after its ttl and not before", (driver) => ({
    claim: async (key, claim, options) => {
      const answer = await driver.claim(key, claim, options);
      if (!answer.held || answer.previous === undefined) return answer;
      return {
        ...answer,
        previous: { ...answer.previous, releasedAt: answer.previous.releasedAt ?? answer.previous.now },
      };
    },
  })),
  mutant("frees a lease early", "a lease is free after its ttl and not before", (driver) => ({
    claim: (key, claim, options) => driver.claim(key, { ...claim, ttlMs: claim.ttlMs - 250 }, options),
  })),
  mutant("extends what has expired", "an expired lease is over for its owner", (driver) => {
    const holders = holdersOf(driver);
    return {
      claim: holders.claim,
      extend: async (key, claim, options) => {
        if (holders.of(key) !== claim.owner || (await driver.extend(key, claim, options))) return true;
        return (await driver.claim(key, claim, options)).held;
      },
    };
  }),
  mutant("leaves a trace without a note", "a release without a note leaves no trace", (driver) => ({
    release: (key, { owner, note }, options) => driver.release(key, { owner, note: note ?? "" }, options),
  })),
  mutant("leaves no trace", "a release leaves its note as a trace", (driver) => ({
    release: (key, { owner }, options) => driver.release(key, { owner, note: undefined }, options),
  })),
  mutant("adds the ttl of an extend to what is left", "an extend counts from now and replaces the note", (driver) => ({
    extend: (key, claim, options) => driver.extend(key, { ...claim, ttlMs: 2 * claim.ttlMs }, options),
  })),
  mutant("loses the lease of a deleted record", "a lease needs no record and does not change one", (driver) => {
    const holders = holdersOf(driver);
    return {
      claim: holders.claim,
      delete: async (key, expected, options) => {
        const isRemoved = await driver.delete(key, expected, options);
        if (isRemoved) await driver.release(key, { owner: holders.of(key) ?? "", note: undefined });
        return isRemoved;
      },
    };
  }),
  mutant(
    "replaces the note and not the end of a lease",
    "an extended lease outlives its first ttl",
    (driver, clock) => {
      const until = new Map<string, number>();
      return {
        claim: (key, claim, options) => {
          until.set(nameOf(key), clock.epoch() + claim.ttlMs);
          return driver.claim(key, claim, options);
        },
        extend: (key, claim, options) => {
          const ttlMs = (until.get(nameOf(key)) ?? 0) - clock.epoch();
          return driver.extend(key, { ...claim, ttlMs }, options);
        },
      };
    },
  ),
];

/** The owner of the newest claim that was held under each key. */
function holdersOf(driver: StoreDriver) {
  const owners = new Map<string, string>();
  const claim: StoreDriver["claim"] = async (key, lease, options) => {
    const answer = await driver.claim(key, lease, options);
    if (answer.held) owners.set(nameOf(key), lease.owner);
    return answer;
  };
  return { claim, of: (key: RecordKey) => owners.get(nameOf(key)) };
}
