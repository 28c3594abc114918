/** A step of the flow, as `discover` tells it. */
export type Step =
  | "challenge"
  | "resource metadata"
  | "server metadata"
  | "registration"
  | "authorization"
  | "token"
  | "introspection"
  | "revocation"
  | "end session";

/** One request of the flow: what was asked, what came, and whether it was used. */
export interface TraceEntry {
  /** What the request was for. */
  step: Step;
  /** The HTTP method. */
  method: string;
  /** The address that was asked. */
  url: string;
  /** The HTTP status; undefined when there was no answer. */
  status?: number | undefined;
  /** Whether the answer was used. */
  used: boolean;
  /** Why, or why not. */
  why: string;
}
