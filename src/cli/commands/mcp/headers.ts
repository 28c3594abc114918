import { usageError } from "../../../errors.js";
import { readSecretFile, referencedSecret } from "../../../profile/secrets.js";
import { quote } from "../../../redact.js";
import { checkHeaderValue, parseHeaderLine } from "../../clients/header-line.js";
import type { CommandContext } from "../../runtime/context.js";

/** The flags of headers that go with every request. */
export interface HeaderFlags {
  header?: string[];
  headerFile?: string;
}

/** Headers that the protocol, or the connection, sets itself. */
const RESERVED =
  /^(?:accept|accept-encoding|connection|content-.*|dpop|host|keep-alive|last-event-id|mcp-.*|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;
/** Names of headers whose value is a secret. */
const SECRET = /^(?:authorization|cookie)$|api-?key|auth|credential|passw|secret|session|token/i;
/** A value that names its secret, perhaps after the scheme of an Authorization header. */
const REFERENCE = /^((?:[\w-]+ +)?)((?:env:[A-Za-z_]\w*|(?:file|exec):.+))$/;

/**
 * The headers of the flags, their secrets read. Every value is masked in whatever is shown from now on.
 *
 * @throws `AgentAuthError` `usage`, or `store_failed` for a file that other users can read
 */
export function readHeaders({ header = [], headerFile }: HeaderFlags, context: CommandContext): Record<string, string> {
  const found = new Map<string, string>();
  const { io, redactor } = context;
  const add = (line: string, from: string, isPrivate: boolean) => {
    const { name, value } = parseHeaderLine(line, from);
    const shown = `${from} ${quote(name, 40)}`;
    if (RESERVED.test(name)) throw usageError(`${shown} is set by the proxy itself`, "leave it out");
    if (found.has(name.toLowerCase())) throw usageError(`${shown} is given twice`, "leave one of them out");
    const [, scheme = "", reference] = REFERENCE.exec(value) ?? [];
    if (reference === undefined && !isPrivate && SECRET.test(name)) {
      const hint = `write ${quote(`${name}: env:NAME`)} or ${quote(`${name}: file:PATH`)}, or give --header-file; and revoke the one that was typed here`;
      redactor.add(value);
      throw usageError(`${shown}: a secret must not be on the command line, where other programs can read it`, hint);
    }
    const secret = reference === undefined ? value : referencedSecret(reference, shown, io.env).read();
    checkHeaderValue(secret, shown);
    redactor.add(secret.replace(/^[\w-]+ +/, ""));
    redactor.add(secret);
    found.set(name.toLowerCase(), `${scheme}${secret}`);
  };
  for (const line of header) add(line, "--header", false);
  if (headerFile !== undefined) {
    const lines = readSecretFile(headerFile).split(/\r?\n/);
    for (const [at, line] of lines.entries()) {
      if (line.trim() !== "" && !line.startsWith("#")) add(line, `--header-file, line ${at + 1}:`, true);
    }
  }
  return Object.fromEntries(found);
}
