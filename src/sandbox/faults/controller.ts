import { fraction, mix } from "../data/random.js";
import type { ResourceName } from "../wire-types.js";
import { checkFault } from "./check.js";
import { EmptyPages } from "./empty-pages.js";
import { FAULT_KINDS, type Fault, type FaultEndpoint, type FaultKind, type FaultOf } from "./faults.js";

/** What a fault can select a request by. */
export interface FaultTarget {
  path: string;
  /** Of a list request, what is listed. */
  resource?: ResourceName | undefined;
  /** Of a list request, its offset. */
  offset?: number | undefined;
  /** Of a request to an authorization server or an MCP server, which of its endpoints. */
  endpoint?: FaultEndpoint | undefined;
  /** The grant type of a token request, the method of an MCP request. */
  operation?: string | undefined;
}

/** A fault as it stands: how often a request matched, and how often it struck. */
export interface FaultState {
  /** By which it can be removed. */
  id: number;
  /** The fault as it was given. */
  fault: Fault;
  /** How many requests it matched. */
  matched: number;
  /** How many of them it struck. */
  fired: number;
}

/** The faults that strike one request, in the order they were added. */
export type Due = readonly Fault[];

const REPLACING: ReadonlySet<FaultKind> = new Set(["status", "reset-before", "html", "redirect", "wrong-envelope"]);
const DELIVERY: ReadonlySet<FaultKind> = new Set([
  "slow-headers",
  "slow-body",
  "reset-mid-body",
  "reset-after",
  "truncated-json",
]);
/** The only operation that a kind fits. */
const OPERATIONS: { [K in FaultKind]?: string } = {
  "refuse-refresh": "refresh_token",
  "omit-refresh-token": "refresh_token",
  "step-up": "tools/call",
};
const OF_DEVICES: ReadonlySet<FaultKind> = new Set(["insert", "delete"]);
/** Before the second page there is no listing to disturb. */
const OF_LATER_PAGES: ReadonlySet<FaultKind> = new Set(["insert", "delete", "cycling-offset"]);

/** The first of the due faults that is of a kind. */
export function dueOf<K extends FaultKind>(due: Due, kind: K): FaultOf<K> | undefined {
  return due.find((fault): fault is FaultOf<K> => fault.kind === kind);
}

/** What a replacing fault does stands for the whole answer. */
export function isReplacing(fault: Fault): boolean {
  return REPLACING.has(fault.kind);
}

/** The faults of a sandbox: add some, and it misbehaves as they say. */
export class FaultController {
  /** The empty pages that `empty-page` has put into lists. */
  readonly holes = new EmptyPages();
  readonly #seed: number;
  #states: FaultState[] = [];
  #nextId = 1;

  constructor(seed: number) {
    this.#seed = mix(seed, 0x666175);
  }

  /**
   * Adds one fault or several.
   *
   * @throws AgentAuthError `usage` where one is none; then none is added
   */
  add(fault: Fault | readonly Fault[]): FaultState[] {
    const checked = (Array.isArray(fault) ? fault : [fault]).map(checkFault);
    const added = checked.map((one) => ({ id: this.#nextId++, fault: one, matched: 0, fired: 0 }));
    this.#states.push(...added);
    return structuredClone(added);
  }

  /** Every fault that was added and not cleared, also those that have struck for the last time. */
  list(): FaultState[] {
    return structuredClone(this.#states);
  }

  /** Takes all faults away, and the empty pages with them. Devices stay inserted or deleted. */
  clear(): void {
    this.#states = [];
    this.holes.clear();
  }

  /** Every kind of fault, and what it does. */
  describe(): { kind: FaultKind; description: string }[] {
    return (Object.keys(FAULT_KINDS) as FaultKind[]).map((kind) => ({ kind, description: FAULT_KINDS[kind] }));
  }

  /** Counts a request against all faults that match it; which of them strike it. Only the first that replaces does. */
  due(target: FaultTarget): Due {
    if (this.#states.length === 0) return [];
    const due: Fault[] = [];
    let replaced = false;
    for (const state of this.#states) {
      if (replaced && !DELIVERY.has(state.fault.kind)) continue;
      if (!matches(state.fault, target) || !this.#strikes(state)) continue;
      due.push(state.fault);
      replaced ||= isReplacing(state.fault);
    }
    return due;
  }

  #strikes(state: FaultState): boolean {
    const { after = 0, every, probability } = state.fault;
    const lasts = every !== undefined || probability !== undefined || state.fault.kind === "step-up";
    const times = state.fault.times ?? (lasts ? 0 : 1);
    state.matched += 1;
    const count = state.matched - after;
    if (count <= 0 || (every !== undefined && count % every !== 0)) return false;
    if (times !== 0 && state.fired >= times) return false;
    if (probability !== undefined && fraction(mix(this.#seed, state.id), state.matched) >= probability) return false;
    state.fired += 1;
    return true;
  }
}

function matches(fault: Fault, target: FaultTarget): boolean {
  const { path, resource, offset, endpoint, operation } = target;
  const { path: wanted } = fault;
  const named = wanted === undefined || wanted === resource || wanted === endpoint;
  if (!named && !(wanted.startsWith("/") && path.startsWith(wanted))) return false;
  if (fault.kind in OPERATIONS) return operation === OPERATIONS[fault.kind];
  if (fault.kind === "prune-clients") return wanted !== undefined || endpoint === "authorize" || endpoint === "token";
  if (isReplacing(fault) || DELIVERY.has(fault.kind)) return fault.offset === undefined || fault.offset === offset;
  if (resource === undefined || (OF_DEVICES.has(fault.kind) && resource !== "device")) return false;
  if (fault.kind === "empty-page") return true;
  if (fault.offset !== undefined) return fault.offset === offset;
  return !OF_LATER_PAGES.has(fault.kind) || (offset ?? 0) > 0;
}
