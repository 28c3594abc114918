import { CLIENT_ERROR_CODES, OAUTH_ERROR_CODES, SERVICE_ERROR_CODES } from "../error-codes.js";
import { type ErrorClass, isAgentAuthError } from "../errors.js";
import { type AgentEvent, CHANNEL_PREFIX, type EventFields, type EventName } from "./events.js";

/** What is used of a channel of `node:diagnostics_channel`. */
interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

export interface Events {
  /** Whether anyone receives events of this type. */
  wants(type: EventName): boolean;
  /** Passes on an event, which is built if anyone receives it. No failure of a receiver reaches the caller. */
  emit<N extends EventName>(type: N, build: () => AgentEvent<N>): void;
}

/** Undefined where the runtime has no channels: the library imports no module of Node. */
export function diagnosticsChannel() {
  const { process } = globalThis as { process?: Partial<NodeJS.Process> };
  return process?.getBuiltinModule?.("node:diagnostics_channel");
}

const opened = new Map<EventName, Channel>();

/** The channel of a type: the same object each time, since a channel without subscribers is collected. */
function findChannel(type: EventName): Channel | undefined {
  const known = opened.get(type);
  if (known !== undefined) return known;
  const channel = diagnosticsChannel()?.channel(`${CHANNEL_PREFIX}${type}`);
  if (channel !== undefined) opened.set(type, channel);
  return channel;
}

/** Events for a receiver, if there is one, and for the subscribers of the channels. */
export function createEvents(onEvent?: (event: AgentEvent) => unknown): Events {
  const wants = (type: EventName) => onEvent !== undefined || findChannel(type)?.hasSubscribers === true;
  return {
    wants,
    emit(type, build) {
      if (!wants(type)) return;
      const event = build() as unknown as AgentEvent;
      try {
        onEvent?.(event);
      } catch {
        // A refresh that has been sent must be saved, whatever a receiver does.
      }
      findChannel(type)?.publish(event);
    },
  };
}

/** Both receivers in one; undefined if there is neither. */
export function bothReceivers<E>(...receivers: (((event: E) => void) | undefined)[]): ((event: E) => void) | undefined {
  const [first, second] = receivers.filter((one) => one !== undefined);
  if (first === undefined || second === undefined) return first;
  return (event) => {
    // The audit file gets each event, whatever the receiver of the program does.
    try {
      first(event);
    } finally {
      second(event);
    }
  };
}

export type Ended<T> = { readonly result: T } | { readonly error: unknown };

/** The events that say how long something took. */
type TimedName = { [N in EventName]: "durationMs" extends keyof EventFields<N> ? N : never }[EventName];

/** Does work, and emits one event about how it ended. @param describe the fields; undefined for no event */
export async function observe<N extends TimedName, T>(
  events: Events,
  type: N,
  work: () => Promise<T>,
  describe: (ended: Ended<T>) => Omit<EventFields<N>, "durationMs"> | undefined,
): Promise<T> {
  if (!events.wants(type)) return work();
  const startedAt = performance.now();
  const ended = await work().then(
    (result) => ({ result }),
    (error: unknown) => ({ error }),
  );
  const durationMs = elapsedMs(startedAt);
  const fields = describe(ended);
  if (fields !== undefined) events.emit(type, () => ({ type, ...fields, durationMs }) as unknown as AgentEvent<N>);
  if ("error" in ended) throw ended.error;
  return ended.result;
}

/** Milliseconds since a moment of `performance.now()`, in thousandths. */
export function elapsedMs(startedAt: number): number {
  return Math.round((performance.now() - startedAt) * 1000) / 1000;
}

const KNOWN_CODES: ReadonlySet<string> = new Set([...SERVICE_ERROR_CODES, ...CLIENT_ERROR_CODES, ...OAUTH_ERROR_CODES]);

/** The code of an error: never a text that a peer made up. */
export function readKnownCode(error: unknown): string {
  if (!isAgentAuthError(error)) return "internal_error";
  return KNOWN_CODES.has(error.code) ? error.code : "other";
}

type Reason = NonNullable<EventFields<"refresh">["reason"]>;

const REASONS: Readonly<Record<ErrorClass, Reason>> = {
  auth: "issuer",
  remote: "issuer",
  partial: "issuer",
  unavailable: "unavailable",
  refused: "refused",
  store: "store",
  usage: "configuration",
  aborted: "aborted",
  internal: "internal",
};

/** What an error means for a request for tokens. */
export function readReason(error: unknown): Reason {
  if (!isAgentAuthError(error)) return "internal";
  if (error.code === "lease_lost" || error.code === "lease_busy") return "lease";
  return error.code === "store_unavailable" ? "store" : REASONS[error.class];
}

/** The origin of a canonical address of HTTP: paths of servers may name users. */
export function readOrigin(address: string): string {
  // After the scheme and a character of the host.
  const path = address.indexOf("/", "http://h".length);
  return path < 0 ? address : address.slice(0, path);
}
