export interface EventField {
  /** What it says. */
  readonly description: string;
  /** Its values, each with its meaning, where they are few: such a field is a label of metrics. */
  readonly values?: Readonly<Record<string, string>>;
  /** What a number counts. */
  readonly unit?: "ms" | "status" | "logins";
  /** Whether events may lack it. */
  readonly optional?: true;
}

const SERVER = { description: "the origin of the MCP server" } as const;
const ISSUER = { description: "the issuer of the tokens" } as const;
const MAYBE_ISSUER = { description: "the issuer of the tokens, as far as it is known", optional: true } as const;
const CODE = {
  description: "the code of the error; `other` for one that this version does not know",
  optional: true,
} as const;
const DURATION = { description: "milliseconds that it took", unit: "ms" } as const;

const REASON = {
  description: "what made it fail",
  optional: true,
  values: {
    issuer: "the issuer answered with an error",
    unavailable: "the issuer was not reached, or its answer did not arrive",
    refused: "an answer broke a rule, and was not used",
    store: "the store failed",
    lease: "this process was suspended until another one may have taken over",
    superseded: "another process logged in or out at the same time",
    configuration: "an option or a setting is wrong",
    aborted: "the caller, or the user, ended it",
    internal: "a bug",
  },
} as const;

/**
 * Every event: the only source of their types, of the channels and of the table in docs/events.md.
 *
 * Nothing in an event is secret: no token, no account, no query, no body, and no path of a server.
 */
export const EVENTS = {
  refresh: {
    description: "an access token was requested without the user, with a refresh token or a machine grant",
    fields: {
      outcome: {
        description: "how it ended",
        values: {
          refreshed: "new tokens were issued",
          rejected: "the issuer rejected the login or the proof: repeating it does not help",
          lost: "the issuer may have issued tokens that did not arrive, or could not be stored",
          failed: "no token was issued",
        },
      },
      reason: REASON,
      trigger: {
        description: "why a token was requested",
        values: {
          expired: "the token had expired, or was about to",
          requested: "the caller accepted no stored token, or there was none",
          unauthorized: "its server rejected the token",
          keep_alive: "the refresh token was to stay alive, although the login was not used",
        },
      },
      grant: {
        description: "the grant type",
        values: {
          refresh_token: "a refresh token",
          client_credentials: "the client itself",
          jwt_bearer: "the assertion of a workload",
          id_jag: "the assertion of an identity provider",
        },
      },
      code: CODE,
      issuer: MAYBE_ISSUER,
      server: SERVER,
      durationMs: DURATION,
    },
  },
  login: {
    description: "a user had to log in",
    fields: {
      outcome: {
        description: "how it ended",
        values: { completed: "the login is stored", failed: "it failed", aborted: "the caller or the user ended it" },
      },
      flow: {
        description: "how the user logs in",
        values: { browser: "a browser on this machine", device: "a code on another device", web: "a web app" },
      },
      reason: REASON,
      code: CODE,
      issuer: MAYBE_ISSUER,
      server: SERVER,
      durationMs: { description: "milliseconds that it took; of a web app, from its callback", unit: "ms" },
    },
  },
  lease: {
    description: "a process asked for the exclusive right to do something",
    fields: {
      operation: {
        description: "what for",
        values: {
          refresh: "a refresh",
          login: "a login",
          request: "a token of a machine grant",
          other: "anything else",
        },
      },
      wait: {
        description: "whether it waited for another holder",
        values: {
          none: "it did not",
          held: "it did, and then did the work itself",
          result: "it did, and got the result of the other one",
          failed: "it did not get the lease",
        },
      },
      takeover: {
        description: "whether it took over from a holder that had not finished",
        values: { none: "it did not", died: "the process of the holder had ended", expired: "the time had passed" },
      },
      durationMs: { description: "milliseconds until it had the lease, or the result", unit: "ms" },
    },
  },
  token: {
    description: "a token was requested from an agent client, by `token`, `fetch` or a provider",
    fields: {
      source: {
        description: "where it came from",
        values: {
          stored: "it was stored, and valid",
          refreshed: "this call refreshed it",
          joined: "another call, or another process, refreshed it or logged in",
          cached: "the refresh failed, and the stored token is still valid",
          requested: "this call requested it with a machine grant",
          login: "a user logged in",
          none: "there is none: the call failed",
        },
      },
      code: CODE,
      issuer: MAYBE_ISSUER,
      server: SERVER,
    },
  },
  revoke: {
    description: "the tokens of a removed login were to be revoked at its issuer",
    fields: {
      outcome: {
        description: "how it ended",
        values: {
          revoked: "the issuer revoked them",
          session_ended: "the issuer revokes none, and ended the session of the user",
          unsupported: "the issuer can do neither: the token is valid until it expires",
          failed: "the request failed: the token is valid until it expires",
        },
      },
      code: CODE,
      issuer: ISSUER,
      server: SERVER,
      durationMs: DURATION,
    },
  },
  store: {
    description: "a stored login was changed, logins were listed, or one could not be read",
    fields: {
      operation: {
        description: "what was done",
        values: {
          read: "one login was read, and that failed",
          save: "one was saved",
          reserve: "space for a save was reserved",
          remove: "one was removed",
          list: "logins were listed",
        },
      },
      outcome: {
        description: "how it ended",
        values: { ok: "it was done", conflict: "another process had changed the login", failed: "the store failed" },
      },
      code: CODE,
      durationMs: DURATION,
    },
  },
  overdue: {
    description: "keepAlive counted the overdue logins of an issuer",
    fields: { issuer: ISSUER, logins: { description: "their number", unit: "logins" } },
  },
  broker: {
    description: "a broker answered a request",
    fields: {
      client: { description: "the client, as the policy names it" },
      name: { description: "the name that it used, if it may use that", optional: true },
      method: { description: "the HTTP method" },
      tool: { description: "the tool that a call names", optional: true },
      status: { description: "the status of the answer", unit: "status" },
      refused: {
        description: "why the broker answered by itself",
        optional: true,
        values: {
          unknown: "no such name, or it belongs to another client",
          method: "the policy does not allow the method",
          path: "the policy does not allow the path",
          tool: "the policy does not allow the tool",
          rate: "too many requests",
          malformed: "the request is not one that can be passed on",
          too_large: "the body is too large to look through",
          login_required: "a user has to log in",
          unavailable: "the server did not answer",
          cancelled: "the client left before the answer began; the status is 499",
        },
      },
      durationMs: { description: "milliseconds until the answer began", unit: "ms" },
    },
  },
} as const satisfies Readonly<
  Record<string, { readonly description: string; readonly fields: Readonly<Record<string, EventField>> }>
>;

/** The type of an event. */
export type EventName = keyof typeof EVENTS;

type FieldsOf<N extends EventName> = (typeof EVENTS)[N]["fields"];
type ValueOf<F> = F extends { readonly values: infer V }
  ? keyof V
  : F extends { readonly unit: string }
    ? number
    : string;
type OptionalIn<F> = { [K in keyof F]: F[K] extends { readonly optional: true } ? K : never }[keyof F];

/** The fields of a type of event. */
export type EventFields<N extends EventName> = {
  readonly [K in Exclude<keyof FieldsOf<N>, OptionalIn<FieldsOf<N>>>]: ValueOf<FieldsOf<N>[K]>;
} & { readonly [K in OptionalIn<FieldsOf<N>>]?: ValueOf<FieldsOf<N>[K]> | undefined };

/**
 * Something that an agent client, or a broker, did; `type` says what. docs/events.md has the fields and their meanings.
 * Nothing in it is secret: no token, no account, no query, no body, and no path of a server.
 */
export type AgentEvent<N extends EventName = EventName> = {
  [K in N]: { readonly type: K } & EventFields<K>;
}[N];

/** Begins the name of each channel of `node:diagnostics_channel`; the type of the event follows. */
export const CHANNEL_PREFIX = "agentauth:";
