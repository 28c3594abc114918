/** A step of the flow, as `discover` reports it. */
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

/** One request of the flow, its response, and whether that was used. */
export interface TraceEntry {
  /** What the request was for. */
  step: Step;
  /** The HTTP method. */
  method: string;
  /** The address of the request. */
  url: string;
  /** The HTTP status; undefined if there was no response. */
  status?: number | undefined;
  /** Whether the response was used. */
  used: boolean;
  /** The reason. */
  why: string;
}

/** Progress beyond single requests, as text for the user. */
export interface Progress {
  /** The operation. */
  about: "refresh" | "login";
  /** The text for the user. */
  text: string;
}
