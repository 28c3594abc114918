import type { IncomingMessage, ServerResponse } from "node:http";
import { mix, type ResourceName } from "../data/sample-device.js";
import type { SandboxResponse } from "../http/requests.js";
import { checkFault } from "./check-fault.js";
import type { Fault, FaultEndpoint, FaultKind, FaultOf } from "./faults.js";

/** One HTTP request and its response. */
export interface RoundTrip {
  method: string;
  /** The path as the client sent it, without the query. */
  path: string;
  query: URLSearchParams;
  /** The faults that strike this request. */
  faults: readonly Fault[];
  /** The whole body, where the part reads it before it selects faults. */
  body?: Buffer;
  /** The grant type of a token request, or the method of an MCP request. */
  operation?: string;
  request: IncomingMessage;
  response: ServerResponse;
}

/** One part of the sandbox, such as the management API or the admin API. */
export interface SandboxPart {
  owns(path: string): boolean;
  faulty: boolean;
  /** Whether pages of the option `allowOrigins` may use a path of it. Default: no path. */
  allowsPages?(path: string): boolean;
  /** The request log leaves its requests out. */
  unlogged?: true;
  /**
   * The properties beside the path by which faults select the request. It may read the body, and set `body` and
   * `operation`.
   */
  target?(roundTrip: RoundTrip): Omit<FaultTarget, "path"> | Promise<Omit<FaultTarget, "path">>;
  /** Returns the response, or `undefined` when it has sent one on `roundTrip.response` itself. */
  handle(roundTrip: RoundTrip): SandboxResponse | undefined | Promise<SandboxResponse | undefined>;
}

/** The properties by which a fault selects a request. */
export interface FaultTarget {
  path: string;
  /** The listed resource, for a list request. */
  resource?: ResourceName | undefined;
  /** The offset of a list request. */
  offset?: number | undefined;
  /** The page size of a list request. */
  size?: number | undefined;
  /** The endpoint, for a request to an authorization server or an MCP server. */
  endpoint?: FaultEndpoint | undefined;
  /** The grant type of a token request, the method of an MCP request. */
  operation?: string | undefined;
}

/** An active fault with its counters. */
export interface FaultState {
  /** Identifies the fault. */
  id: number;
  /** The fault as it was added. */
  fault: Fault;
  /** How many requests it matched. */
  matched: number;
  /** How many of them it struck. */
  fired: number;
}

const REPLACING: ReadonlySet<FaultKind> = new Set(["status", "reset-before", "html", "redirect", "wrong-envelope"]);
const DELIVERY: ReadonlySet<FaultKind> = new Set([
  "slow-headers",
  "slow-body",
  "reset-mid-body",
  "reset-after",
  "truncated-json",
]);
/** The only operation that a kind fits. */
const OPERATIONS: { [K in FaultKind]?: string } = { "refuse-refresh": "refresh_token", "step-up": "tools/call" };
const OF_DEVICES: ReadonlySet<FaultKind> = new Set(["insert", "delete"]);
/** On the first page there is no listing to disturb yet. */
const OF_LATER_PAGES: ReadonlySet<FaultKind> = new Set(["insert", "delete", "cycling-offset"]);

/** The first of some faults that is of a kind. */
export function findFault<K extends FaultKind>(faults: readonly Fault[], kind: K): FaultOf<K> | undefined {
  return faults.find((fault): fault is FaultOf<K> => fault.kind === kind);
}

export function isReplacing(fault: Fault): boolean {
  return REPLACING.has(fault.kind);
}

/** The active faults of a sandbox. */
export class FaultController {
  readonly #seed: number;
  readonly #emptyPages = new Map<string, EmptyPages>();
  #states: FaultState[] = [];
  #nextId = 1;

  constructor(seed: number) {
    this.#seed = mix(seed, 0x666175);
  }

  /** Adds one fault or several. @throws AgentAuthError `usage` where one is invalid; then none is added */
  add(fault: Fault | readonly Fault[]): FaultState[] {
    const checked = (Array.isArray(fault) ? fault : [fault]).map(checkFault);
    const added = checked.map((one) => ({ id: this.#nextId++, fault: one, matched: 0, fired: 0 }));
    this.#states.push(...added);
    return structuredClone(added);
  }

  /** Every fault that was added and not cleared, including those that have used up their `times`. */
  list(): FaultState[] {
    return structuredClone(this.#states);
  }

  /** Removes all faults and all empty pages. Devices stay inserted or deleted. */
  clear(): void {
    this.#states = [];
    this.#emptyPages.clear();
  }

  /** The empty pages that `empty-page` has added to a list. @internal */
  emptyPages(list: string): EmptyPages {
    const pages = this.#emptyPages.get(list) ?? new EmptyPages();
    this.#emptyPages.set(list, pages);
    return pages;
  }

  /** Counts a request for all faults that match it, and returns those that strike it: the first of replacing ones. */
  select(target: FaultTarget): readonly Fault[] {
    if (this.#states.length === 0) return [];
    const faults: Fault[] = [];
    let replaced = false;
    for (const state of this.#states) {
      if (replaced && !DELIVERY.has(state.fault.kind)) continue;
      if (!matchesTarget(state.fault, target) || !this.#strikes(state)) continue;
      faults.push(state.fault);
      replaced ||= isReplacing(state.fault);
    }
    return faults;
  }

  #strikes(state: FaultState): boolean {
    const { after = 0, every, probability } = state.fault;
    const isPermanent = every !== undefined || probability !== undefined || state.fault.kind === "step-up";
    const times = state.fault.times ?? (isPermanent ? 0 : 1);
    state.matched += 1;
    const count = state.matched - after;
    if (count <= 0 || (every !== undefined && count % every !== 0)) return false;
    if (times !== 0 && state.fired >= times) return false;
    if (probability !== undefined && mix(mix(this.#seed, state.id), state.matched) / 2 ** 32 >= probability)
      return false;
    state.fired += 1;
    return true;
  }
}

function matchesTarget(fault: Fault, target: FaultTarget): boolean {
  const { path, resource, endpoint, operation } = target;
  const { path: selector } = fault;
  const named = selector === undefined || selector === resource || selector === endpoint;
  if (!named && !(selector.startsWith("/") && path.startsWith(selector))) return false;
  if (fault.kind in OPERATIONS) return operation === OPERATIONS[fault.kind];
  if (isReplacing(fault) || DELIVERY.has(fault.kind))
    return fault.offset === undefined || isOffset(target, fault.offset);
  if (resource === undefined || (OF_DEVICES.has(fault.kind) && resource !== "device")) return false;
  if (fault.kind === "empty-page") return true;
  if (fault.offset !== undefined) return isOffset(target, fault.offset);
  return !OF_LATER_PAGES.has(fault.kind) || (target.offset ?? 0) > 0;
}

/** Whether a request is for the page at an offset: it may begin with the last item of the page before. */
function isOffset({ offset = -1, size = 1 }: FaultTarget, wanted: number): boolean {
  return offset === wanted || (size > 1 && offset > 0 && offset === wanted - 1);
}

/** A range of offsets without items. */
interface Gap {
  at: number;
  length: number;
}

/**
 * Gaps in the offsets of a list. The page after an empty one has a higher offset, and yet no item may be lost: so the
 * offsets of the list get a gap, and every page behind it is shifted by the length of the gap.
 *
 * A gap stays in place, so that a list that is half read still adds up.
 */
export class EmptyPages {
  #gaps: Gap[] = [];

  /** Adds a gap; one that overlaps another is ignored. */
  add(at: number, length: number): void {
    if (this.#gaps.some((gap) => at < gap.at + gap.length && gap.at < at + length)) return;
    this.#gaps = [...this.#gaps, { at, length }].sort((a, b) => a.at - b.at);
  }

  /** The first offset from `offset` on that lies in no gap. */
  free(offset: number): number {
    const behind = (at: number, gap: Gap) => (at >= gap.at && at < gap.at + gap.length ? gap.at + gap.length : at);
    return this.#gaps.reduce(behind, offset);
  }

  /** The position of the item at or behind an offset. */
  position(offset: number): number {
    const skipped = this.#gaps.map(({ at, length }) => Math.max(0, Math.min(length, offset - at)));
    return offset - skipped.reduce((sum, part) => sum + part, 0);
  }

  /** The offset behind the last item of a list of `count` items; a gap behind its end does not count. */
  end(count: number): number {
    return this.#gaps.reduce((end, gap) => (gap.at < end ? end + gap.length : end), count);
  }
}
