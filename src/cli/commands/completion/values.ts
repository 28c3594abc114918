import { PROFILE_KEYS } from "../../../profile/profile-settings.js";
import { readSandboxState } from "../../../profile/sandbox-state.js";
import { readConfig, SANDBOX_PROFILE } from "../../../profile/settings-file.js";
import { storeChoiceOf } from "../../../profile/store-choice.js";
import { fileStore } from "../../../store/file/file.js";
import { MCP_HOSTS, WRITABLE_HOSTS } from "../../clients/mcp-hosts/hosts.js";
import { COLUMNS, documentedValues, SORT_FIELDS } from "../../listing/source.js";
import { OUTPUT_TYPES } from "../../output/output-types.js";
import type { CommandContext } from "../../runtime/context.js";

/** The values on this machine that can be completed. */
export interface KnownValues {
  /** By the name of a flag, without dashes. */
  flags: Readonly<Record<string, readonly string[]>>;
  /** By the name of an operand; an entry with the command before the name takes precedence. */
  operands: Readonly<Record<string, readonly string[]>>;
}

/**
 * The values from the settings, the sandbox and the stored logins. It reads only files: no keychain, which may prompt for
 * a password, and no network.
 */
export async function knownValues(words: readonly string[], context: CommandContext): Promise<KnownValues> {
  const home = context.home();
  const configured = orUndefined(() => readConfig(home))?.profiles ?? {};
  const sandbox = orUndefined(() => readSandboxState(home));
  const profileValues = Object.values(configured);
  const profiles = ["default", ...Object.keys(configured), ...(sandbox ? [SANDBOX_PROFILE] : [])];
  const logins = await storedLogins(words, context);
  const given = (values: readonly (string | null | undefined)[]) => values.filter((value) => typeof value === "string");
  const domains = given([...profileValues.map(({ domain }) => domain), sandbox?.domain_id]);
  const pools = given([...profileValues.map(({ pool }) => pool), sandbox?.pool_id]);
  return {
    flags: {
      profile: profiles,
      account: given([...profileValues.map(({ account }) => account), sandbox?.account_id]),
      domain: domains,
      pool: pools,
      "account-hint": given(logins.map(({ account }) => account)),
      browser: ["none"],
      ...(await vendorValues(words)),
      ...listValues(words),
    },
    operands: {
      mcp_url: given([...logins.map(({ server }) => server), sandbox?.mcp_url]),
      "mcp config host": Object.keys(MCP_HOSTS),
      "mcp add host": WRITABLE_HOSTS,
      "mcp remove host": WRITABLE_HOSTS,
      domain_id: domains,
      pool_id: pools,
      key: Object.keys(PROFILE_KEYS),
      "profile use name": profiles,
      "profile delete name": profiles,
      "schema type": Object.keys(OUTPUT_TYPES),
      method: ["GET"],
    },
  };
}

/** The catalogue is loaded only where one of its names may be typed. */
async function vendorValues(words: readonly string[]): Promise<KnownValues["flags"]> {
  if (!words.includes("sandbox") || !words.slice(-2).some((word) => word.startsWith("--like"))) return {};
  const { SERVER_SHAPES } = await import("#vendors");
  return { like: SERVER_SHAPES.map(({ id }) => id) };
}

/** What the contract has for the flags of a list: its fields, and the values of those that it documents. */
function listValues(words: readonly string[]): KnownValues["flags"] {
  const noun = (Object.keys(COLUMNS) as (keyof typeof COLUMNS)[]).find((one) => words.includes(one));
  if (noun === undefined) return {};
  const { fields, nested = [] } = COLUMNS[noun];
  const { status = [], session_type = [] } = documentedValues(noun);
  // A list of columns is one word: what is offered begins with those that are typed.
  const typed = /^(?:--columns=)?(.*,)?/.exec(words.at(-1) ?? "")?.[1] ?? "";
  const columns = [...new Set([...fields, ...nested])].map((path) => typed + path);
  return { columns, sort: SORT_FIELDS[noun], status, "session-type": session_type };
}

async function storedLogins(
  words: readonly string[],
  context: CommandContext,
): Promise<readonly { server: string; account?: string | undefined }[]> {
  try {
    const at = words.indexOf("--profile");
    const named = at < 0 ? undefined : words[at + 1];
    const flags = named === undefined ? {} : { profile: named };
    const { value: profile } = context.with({ flags }).settings().profile;
    if (storeChoiceOf(profile, context.io.env, context.home()).value !== "file") return [];
    return await fileStore(context.home()).list({ profile });
  } catch {
    return [];
  }
}

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
