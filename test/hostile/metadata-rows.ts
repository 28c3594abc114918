import { type HostileCase, WHOLE_LOGIN } from "./case.js";
import type { Kit } from "./kit/kit.js";

export type Change = (metadata: Record<string, unknown>, kit: Kit) => void;

export const set =
  (name: string, value: unknown): Change =>
  (metadata) => {
    metadata[name] = value;
  };

/** Rows of a login after a change of a server's metadata; a refused one sends `requests`. */
export const metadataRows = (server: "as" | "mcp", requests: readonly string[]) => ({
  refused: (
    id: string,
    input: string,
    change: Change,
    says: HostileCase["says"],
    over: Partial<HostileCase> = {},
  ): HostileCase => ({
    id,
    input,
    result: "refused, no further request",
    outcome: "refused",
    arrange: (kit) => change(kit[server].metadata, kit),
    ...(says && { says }),
    requests,
    ...over,
  }),
  accepted: (
    id: string,
    input: string,
    result: string,
    change: Change,
    over: Partial<HostileCase> = {},
  ): HostileCase => ({
    id,
    input,
    result,
    outcome: "ok",
    arrange: (kit) => change(kit[server].metadata, kit),
    requests: WHOLE_LOGIN,
    ...over,
  }),
});
