/** Where the command gets the token: in a variable, or in a file that a variable names. */
export interface TokenTarget {
  readonly kind: "env" | "file";
  /** The variable. */
  readonly name: string;
}

/** The default target. */
export const DEFAULT_TARGET: TokenTarget = { kind: "env", name: "AGENTAUTH_TOKEN" };

/** Reads `env:NAME`, `file:NAME` or `NAME`, which is `env:NAME`; undefined for anything else. */
export function parseTarget(value: string): TokenTarget | undefined {
  const found = /^(?:(env|file):)?([A-Za-z_]\w*)$/.exec(value);
  const [, kind, name = ""] = found ?? [];
  // A kind without a name is a mistake.
  if (!found || (kind === undefined && (name === "env" || name === "file"))) return undefined;
  return { kind: kind === "file" ? "file" : "env", name };
}
