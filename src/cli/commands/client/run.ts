import type { BoundBy, ClientBinding } from "../../../oauth/model/grant-store.js";
import { quote, shellWord } from "../../../redact.js";
import type { GlobalFlags } from "../../flags/global.js";
import type { OutputFlags } from "../../flags/output.js";
import { rowColumns } from "../../output/columns.js";
import { isOutputGiven, printRows } from "../../output/writer.js";
import type { CommandRun } from "../../runtime/declaration.js";

/** Options of the `client` commands. */
export interface ClientOptions extends GlobalFlags, OutputFlags {
  clientId: string;
  /** Whether the clients of every profile are listed. */
  all?: boolean;
}

const CLIENT = { path: "client_id", header: "CLIENT", kind: "name" } as const;
const PROFILE = { path: "profile", header: "PROFILE" } as const;
const CLIENTS = rowColumns(
  [
    CLIENT,
    { path: "issuer", header: "ISSUER" },
    { path: "bound_by", header: "BOUND BY" },
    { path: "bound_at", header: "BOUND", kind: "time" },
  ],
  [PROFILE],
);
const REMOVALS = rowColumns([CLIENT, { path: "removed", header: "REMOVED", kind: "bool" }], [PROFILE]);

/** A client as `client list -o json` prints it. */
interface ClientRow {
  /** The client. */
  client_id: string;
  /** The issuer that its secret, key and assertions are sent to. */
  issuer: string;
  /** What bound it: a setting, a flag, an answer at the terminal, or a login. */
  bound_by: BoundBy;
  /** When it was bound. */
  bound_at: string;
  /** The profile. */
  profile: string;
}

/** The result of `client forget`, as `-o json` prints it. */
interface RemovalRow extends Pick<ClientRow, "client_id" | "profile"> {
  /** Whether it was bound to an issuer. */
  removed: boolean;
}

/** The verbs of `client`. */
export const CLIENT_RUNS: Readonly<Record<"list" | "forget", CommandRun<ClientOptions>>> = {
  async list(options, context) {
    const profile = context.settings().profile.value;
    const bindings = await (await context.store()).listBindings();
    const rows = bindings
      .filter((binding) => options.all || binding.profile === profile)
      .map(rowOf)
      .sort((one, other) => (one.client_id < other.client_id ? -1 : 1));
    await printRows(rows, CLIENTS, options, context);
    if (rows.length === 0)
      context.io.say(`no client is bound to an issuer${options.all ? "" : ` in profile ${profile}`}`);
    return undefined;
  },

  async forget(options, context) {
    const profile = context.settings().profile.value;
    const { clientId } = options;
    const store = await context.store();
    const removed = await store.removeBinding({ profile, clientId });
    const grants = await store.list({ profile });
    const login = grants.find(({ client }) => client.source === "pre-registered" && client.clientId === clientId);
    const row = { client_id: clientId, removed, profile } satisfies RemovalRow;
    if (isOutputGiven(options)) await printRows([row], REMOVALS, options, context);
    context.io.say(
      `the client ${quote(clientId)} ${removed ? "is no longer bound to an issuer" : "was not bound to an issuer"} in profile ${profile}`,
    );
    if (login !== undefined)
      context.io.warn(
        `a stored login still binds this client to ${quote(login.issuer)}; log out first, then run client forget again: agentauth logout ${shellWord(login.server)}`,
      );
    return undefined;
  },
};

function rowOf({ profile, clientId, issuer, boundBy, boundAt }: ClientBinding): ClientRow {
  const bound_at = new Date(boundAt).toISOString();
  return { client_id: clientId, issuer, bound_by: boundBy, bound_at, profile };
}
