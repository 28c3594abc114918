import { isJsonObject } from "../http/strict-json.js";
import { quote } from "../redact.js";
import { RPC_CODES, type RpcError, type RpcMessage, readParam } from "./json-rpc.js";

/** Globs of tool names: `*` stands for any characters, `?` for one. */
export interface ToolPolicyOptions {
  /** The only tools that can be used; undefined for all. */
  allow?: readonly string[] | undefined;
  /** Tools that cannot be used, also if they are allowed. */
  hide?: readonly string[] | undefined;
}

interface Glob {
  readonly text: string;
  /** As a lenient server might read it. */
  readonly folded: string;
}

const LONGEST_NAME = 256;
/** What no name can have: control characters, characters without a glyph, halves of a character. */
const UNUSABLE = /[\p{C}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/u;
const INVISIBLE = /[\p{C}\p{Default_Ignorable_Code_Point}\s]/gu;
const CALL = "tools/call";
const LIST = "tools/list";
const MEMBERS = new Set(["jsonrpc", "id", "method", "params", "result", "error"]);

/**
 * Which tools of one server a host, or a client of a broker, may list and call. It judges a message as it is sent to the server, after it was parsed
 * and with nothing left in it that a server could read in another way.
 *
 * A glob that hides matches regardless of case, compatible forms (NFKC) and invisible characters, since some servers
 * look their tools up in this way; one that allows matches only the very name. So doubt never opens a tool.
 */
export class ToolPolicy {
  readonly #allow: readonly Glob[] | undefined;
  readonly #hide: readonly Glob[];
  /** Whether every tool can be used. */
  readonly isOpen: boolean;

  constructor({ allow, hide = [] }: ToolPolicyOptions = {}) {
    this.#allow = allow?.map(compileGlob);
    this.#hide = hide.map(compileGlob);
    this.isOpen = allow === undefined && hide.length === 0;
  }

  /** Why a message of the host must not reach the server; undefined if it may. */
  refuse(message: RpcMessage): string | undefined {
    if (this.isOpen) return undefined;
    const member = findShadowed(message, MEMBERS);
    if (member !== undefined)
      return `the message has the member ${quote(member, 80)}, which a server may read as another`;
    const { method } = message;
    if (method === undefined || method === LIST) return undefined;
    if (method !== CALL) {
      const read = fold(method);
      return read === CALL || read === LIST ? `a server may read ${quote(method, 80)} as ${read}` : undefined;
    }
    const { params } = message;
    const other = isJsonObject(params) ? findShadowed(params, new Set(["name"])) : undefined;
    if (other !== undefined) return `the call has the member ${quote(other, 80)}, which a server may read as "name"`;
    return this.refuseTool(readParam(message, "name"));
  }

  /** Why a tool cannot be used; undefined if it can. */
  refuseTool(name: unknown): string | undefined {
    if (this.isOpen) return undefined;
    if (typeof name !== "string") return "the name of the tool is not a string";
    const shown = `the tool ${quote(name, 80)}`;
    if (name.length > LONGEST_NAME) return `${shown} has a name of more than ${LONGEST_NAME} characters`;
    if (UNUSABLE.test(name)) return `${shown} has a control character or an invisible one in its name`;
    const hiding = this.#hide.find(({ folded }) => matchesGlob(folded, fold(name)));
    if (hiding) return `${shown} is hidden by ${quote(hiding.text, 80)}`;
    if (this.#allow === undefined || this.#allow.some(({ text }) => matchesGlob(text, name))) return undefined;
    return `${shown} is none of those that are allowed`;
  }

  /** The result of `tools/list` without the tools that cannot be used. */
  filterList(result: unknown): unknown {
    if (this.isOpen || !isJsonObject(result) || !Array.isArray(result["tools"])) return result;
    const tools = result["tools"].filter((tool) => isJsonObject(tool) && this.refuseTool(tool["name"]) === undefined);
    return { ...result, tools };
  }
}

/** A member that a server with case-insensitive names would take for one of these. */
function findShadowed(object: object, names: ReadonlySet<string>): string | undefined {
  return Object.keys(object).find((key) => !names.has(key) && names.has(fold(key)));
}

/** A text as a lenient reader sees it. */
function fold(text: string): string {
  return text.normalize("NFKC").toUpperCase().toLowerCase().replace(INVISIBLE, "");
}

function compileGlob(text: string): Glob {
  // Where a fold makes a wildcard of another character, it matches any one character, as it does not match itself.
  const folded = text.replace(/[^*?]+/g, (literal) => fold(literal).replace(/[*?]/g, "?"));
  return { text, folded };
}

/** Whether a glob matches a whole text, in steps that grow with the length of both, however many stars there are. */
function matchesGlob(glob: string, text: string): boolean {
  const [wanted, given] = [[...glob], [...text]];
  let at = 0;
  let from: { star: number; at: number } | undefined;
  for (let next = 0; next < given.length; ) {
    if (wanted[at] === "*") from = { star: at++, at: next };
    else if (wanted[at] === "?" || wanted[at] === given[next]) {
      at++;
      next++;
    } else if (from) {
      // The last star takes one character more.
      from.at++;
      at = from.star + 1;
      next = from.at;
    } else return false;
  }
  return wanted.slice(at).every((rest) => rest === "*");
}

/** The JSON-RPC error for a message that the policy refuses. */
export function refusedRpcError(why: string): RpcError {
  return { code: RPC_CODES.params, message: `refused by the tool policy: ${why}`, data: { code: "tool_refused" } };
}
