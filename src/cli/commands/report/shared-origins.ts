import { type ExampleDevice, exampleOf } from "./examples.js";
import type { Facts } from "./fields.js";
import type { Finding } from "./model.js";

/** The least number of devices for a finding. */
const MANY = 5;
/** The number of distinct origins that are stored. */
const MOST_ORIGINS = 50_000;

interface Origin {
  address: string;
  fingerprint: string;
  count: number;
  active: number;
  devices: ExampleDevice[];
}

/** Devices by where they come from. */
export interface SharedOrigins {
  add(facts: Facts): void;
  /** The finding, and the number of devices that came after the origins were full. */
  finding(): { finding: Finding; uncounted: number };
}

/**
 * Finds many devices of one origin: an address together with a TLS fingerprint. The fingerprint alone names a program,
 * not a machine, and thousands of devices rightly share it.
 *
 * @param mostExamples number of device ids in the finding
 */
export function createSharedOrigins(mostExamples: number, mostOrigins = MOST_ORIGINS): SharedOrigins {
  const origins = new Map<string, Origin>();
  let judged = 0;
  let unknown = 0;
  let uncounted = 0;
  return {
    add(facts) {
      const { status, last } = facts;
      const { address, fingerprint } = last;
      if (address === undefined || fingerprint === undefined) {
        unknown++;
        return;
      }
      const key = JSON.stringify([address, fingerprint]);
      const known = origins.get(key);
      if (known === undefined && origins.size >= mostOrigins) {
        uncounted++;
        return;
      }
      judged++;
      const origin = known ?? { address, fingerprint, count: 0, active: 0, devices: [] };
      if (known === undefined) origins.set(key, origin);
      origin.count++;
      if (status === "active") origin.active++;
      const example = exampleOf(facts);
      if (example !== undefined && origin.devices.length < mostExamples) origin.devices.push(example);
    },
    finding() {
      const shared = [...origins.values()].filter(({ count }) => count >= MANY);
      shared.sort((a, b) => b.count - a.count);
      const finding: Finding = {
        code: "shared_fingerprint",
        title: "Many devices from one fingerprint",
        severity: "medium",
        action: "Have the program store its registration and use it again.",
        why: `At least ${MANY} devices share one address and one TLS fingerprint. Usually it is one program that registers again at each start; it can be a script that creates devices.`,
        count: sum(shared, "count"),
        active: sum(shared, "active"),
        judged,
        not_judged: unknown + uncounted,
        examples: examplesOf(shared, mostExamples),
      };
      return { finding, uncounted };
    },
  };
}

function sum(origins: readonly Origin[], key: "count" | "active"): number {
  return origins.reduce((total, origin) => total + origin[key], 0);
}

/** One device of each origin before a second one of any. */
function examplesOf(origins: readonly Origin[], most: number): Finding["examples"] {
  const examples: Finding["examples"] = [];
  for (let turn = 0; turn < most && examples.length < most; turn++) {
    for (const { devices, count, address, fingerprint } of origins.slice(0, most)) {
      const device = devices[turn];
      if (device === undefined || examples.length >= most) continue;
      examples.push({ ...device, detail: `${count} from ${address} with ${fingerprint}` });
    }
  }
  return examples;
}
