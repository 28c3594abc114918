import { fileStore } from "../../../store/file/file.js";
import { MCP_HOSTS } from "../../clients/mcp-hosts.js";
import { PROFILE_KEYS, readConfig, SANDBOX_PROFILE } from "../../config/file.js";
import { homeOf } from "../../config/home.js";
import { writtenProfile } from "../../config/profile.js";
import { readSandboxState } from "../../config/sandbox-state.js";
import { resolveSettings } from "../../config/settings.js";
import { chooseStore } from "../../config/store.js";
import { OUTPUT_TYPES } from "../../output/output-types.js";
import type { CommandContext } from "../../runtime/context.js";

/** What is known of this machine and can be typed. */
export interface KnownValues {
  /** By the name of a flag, without dashes. */
  flags: Readonly<Record<string, readonly string[]>>;
  /** By the name of an operand; a command before it comes first. */
  operands: Readonly<Record<string, readonly string[]>>;
}

/**
 * What the settings, the sandbox and the stored logins know. Only files are read: no keychain is opened, since it may ask
 * for a password, and nobody is called.
 */
export async function knownValues(words: readonly string[], deps: CommandContext): Promise<KnownValues> {
  const home = homeOf(deps);
  const config = orNothing(() => readConfig(home));
  const sandbox = orNothing(() => readSandboxState(home));
  const written = Object.values(config?.profiles ?? {});
  const profiles = [
    ...new Set(["default", ...Object.keys(config?.profiles ?? {}), ...(sandbox ? [SANDBOX_PROFILE] : [])]),
  ];
  const logins = await storedLogins(words, deps);
  const given = (values: readonly (string | null | undefined)[]) => values.filter((value) => typeof value === "string");
  return {
    flags: {
      profile: profiles,
      account: given([...written.map(({ account }) => account), sandbox?.account_id]),
      domain: given([...written.map(({ domain }) => domain), sandbox?.domain_id]),
      pool: given([...written.map(({ pool }) => pool), sandbox?.pool_id]),
      "account-hint": given(logins.map(({ account }) => account)),
      browser: ["none"],
    },
    operands: {
      mcp_url: given([...logins.map(({ server }) => server), sandbox?.mcp_url]),
      "mcp config host": Object.keys(MCP_HOSTS),
      key: Object.keys(PROFILE_KEYS),
      "profile use name": profiles,
      "profile delete name": profiles,
      "schema type": Object.keys(OUTPUT_TYPES),
      method: ["GET"],
    },
  };
}

async function storedLogins(
  words: readonly string[],
  deps: CommandContext,
): Promise<readonly { server: string; account?: string | undefined }[]> {
  try {
    const home = homeOf(deps);
    const config = readConfig(home);
    const at = words.indexOf("--profile");
    const named = at < 0 ? undefined : words[at + 1];
    const flags = named === undefined ? {} : { profile: named };
    const { value: profile } = resolveSettings(flags, deps.io.env, config, home).profile;
    if (chooseStore(deps.io.env, writtenProfile(profile, config)).value !== "file") return [];
    const grants = await fileStore(home).list();
    return grants.filter((grant) => grant.profile === profile);
  } catch {
    return [];
  }
}

function orNothing<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
