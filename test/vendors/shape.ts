/** A request that a recorded server refuses. */
export interface ShapeRefusal {
  /** The endpoint that refuses; the parameter of `mcp`, which answers with 401, is the `client_id` of the token. */
  readonly at: "register" | "authorize" | "token" | "mcp";
  /** Patterns of parameters that the request must have to be refused. Default: every request. */
  readonly when?: Readonly<Record<string, string>>;
  /** Patterns of parameters with which the request is not refused. */
  readonly unless?: Readonly<Record<string, string>>;
  /** Default 400. A page that the user does not get past has 200. */
  readonly status?: number;
  /**
   * The answer: a JSON object, or a text. The authorization endpoint sends the members of an object to the redirect
   * address, and shows a text as a page.
   */
  readonly body: Readonly<Record<string, unknown>> | string;
}

/**
 * The shape of a real MCP server and its authorization server, as a public thread records it. All addresses are the
 * recorded ones; the sandbox replaces each origin with one that it serves.
 */
export interface ServerShape {
  /** Its name in the catalogue. */
  readonly id: string;
  /** The name of the vendor or the software. */
  readonly title: string;
  /** What is special, in one sentence. */
  readonly about: string;
  /** The public record; undefined where none is known. */
  readonly source?: string | undefined;
  /** The date of the record: `2026-08-25` or `2026-08`. */
  readonly date?: string | undefined;
  /** Whether this package logs in without options. */
  readonly byDefault: boolean;
  /** The options with which it logs in for longer than a token lives, each with its value, or true. */
  readonly options: Readonly<Record<string, string | true | Readonly<Record<string, string>>>>;
  /** Why no option helps, for a server that stays refused. */
  readonly refused?: string;
  /** The address of the MCP server. */
  readonly server: string;
  /** Whether the MCP server asks for no token. Default false. */
  readonly open?: true;
  /** The only protocol versions of the MCP server: it answers others with HTTP 400. Default: it negotiates. */
  readonly protocols?: readonly string[];
  /** `WWW-Authenticate` of a 401; null sends none. Default: a bearer challenge that names the first document. */
  readonly challenge?: string | null;
  /** Every document that is published, by its address. */
  readonly documents: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Whether there is a pre-registered client: `your-client`, with this secret if it is a text. */
  readonly client?: true | string;
  /** The requests that are refused. */
  readonly refusals?: readonly ShapeRefusal[];
  /** Members of a token response in place of the usual ones; null removes one. */
  readonly token?: Readonly<Record<string, unknown>>;
  /** Claims of an ID token in every token response; its signature is none of any key. */
  readonly idToken?: Readonly<Record<string, unknown>>;
  /** The issuer in authorization responses (RFC 9207). Default: none. */
  readonly iss?: string;
  /** What a refresh does to the refresh token; `none` issues no refresh tokens. Default `rotate`. */
  readonly refresh?: "rotate" | "keep" | "none";
  /** Patterns of the parameters of an authorization request that leads to a refresh token. Default: each does. */
  readonly offline?: {
    /** Those that each request needs. */
    readonly when: Readonly<Record<string, string>>;
    /** Those that it needs as well once the user has consented to the client. */
    readonly again: Readonly<Record<string, string>>;
  };
  /** Seconds that access tokens are valid, whatever the response says; 0 is for ever. Default 3600. */
  readonly lifetime?: number;
}

/** The pre-registered client of a shape. */
export const SHAPE_CLIENT = "your-client";
