import { FollowingController } from "./deadline.js";
import { HttpHeaders } from "./http-headers.js";
import { HttpRequest } from "./http-request.js";

type Fetch = typeof globalThis.fetch;

/** A `fetch` that also takes a controller as the signal: a signal costs more than a short request has to. */
type OwnFetch = (input: Parameters<Fetch>[0], init?: OwnInit) => Promise<Response>;

type OwnInit = Omit<RequestInit, "signal"> & { signal?: RequestInit["signal"] | FollowingController };

/** The `fetch` functions that take an {@link HttpRequest}, and respond without the global classes. */
const own = new WeakSet<Fetch>();

/**
 * Marks a `fetch` that takes our own classes.
 *
 * @param inner the one that it calls, which decides; none where it decides itself
 */
export function ownFetch(fetch: Fetch, inner?: Fetch): Fetch {
  if (acceptsInternalRequest(inner)) own.add(fetch);
  return fetch;
}

/** Whether a request of our own class may be made for a `fetch`, or where none is given. */
export function acceptsInternalRequest(fetch: Fetch | undefined): boolean {
  return fetch === undefined || own.has(fetch);
}

/**
 * A `fetch` that takes our own classes in place of one that may expect those of the runtime.
 *
 * @param given none for the global one, as it is at each call
 * @param split whether it gets an address and options in place of an {@link HttpRequest}, not a `Request`. The global one
 * would make a second request of that; a given one may expect it.
 */
export function toNativeFetch(given: Fetch | undefined, split = given === undefined): OwnFetch {
  if (given !== undefined && acceptsInternalRequest(given)) return given as OwnFetch;
  const fetch = given ?? ((input, init) => globalThis.fetch(input, init));
  // The global one would copy an object of its class.
  const toHeaders = (headers: HttpHeaders) => (given ? new Headers([...headers]) : Object.fromEntries(headers));
  return (input, init) => {
    const options = init && withWebClasses(init, toHeaders);
    if (!(input instanceof HttpRequest)) return fetch(input, options);
    return split ? fetch(input.url, { ...input.asInit(), ...options }) : fetch(input.asRequest(), options);
  };
}

function withWebClasses(
  { signal, ...init }: OwnInit,
  toHeaders: (headers: HttpHeaders) => NonNullable<RequestInit["headers"]>,
): RequestInit {
  if (init.headers instanceof HttpHeaders) init.headers = toHeaders(init.headers);
  if (signal === undefined) return init;
  return { ...init, signal: signal instanceof FollowingController ? signal.signal : signal };
}

/** Whether the first argument of `fetch` is a request, of whatever class. */
export function isRequest(input: Parameters<Fetch>[0] | object): input is Request {
  return isOfClass(input, "Request");
}

/** Whether a value is a response, of whatever class. */
export function isResponse(value: unknown): value is Response {
  return isOfClass(value, "Response");
}

/** Compared by name: to ask the global class would load it. */
function isOfClass(value: unknown, name: string): boolean {
  return typeof value === "object" && value !== null && Object.prototype.toString.call(value) === `[object ${name}]`;
}
