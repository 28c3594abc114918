import { randomBytes } from "node:crypto";
import { isAgentAuthError, usageError } from "../errors.js";
import { isJsonObject, parseStrictJson } from "../http/strict-json.js";
import { quote } from "../redact.js";
import { KEY_BYTES, type KeyRing, type KeyRingOptions, keyRing } from "../store/seal/key-ring.js";
import { NO_KEYS } from "./profile-settings.js";
import type { SecretSetting } from "./secrets.js";

const MEMBERS = ["current", "keys", "name_key"] as const;

export function newKeys(): string {
  const key = () => randomBytes(KEY_BYTES).toString("base64url");
  return `${JSON.stringify({ current: "k1", keys: { k1: key() }, name_key: key() }, null, 2)}\n`;
}

/**
 * The key ring of `store_keys`.
 *
 * @param purpose what needs it, for the message if it is missing
 * @param hide receives each key, so that every output masks it
 * @throws `AgentAuthError` `usage` if it is missing or not as {@link newKeys} writes it; no message shows a key
 */
export function readKeys(
  setting: SecretSetting | undefined,
  purpose: string,
  hide: (secret: string) => void = () => {},
): KeyRing | "none" {
  if (setting === undefined)
    throw usageError(
      `${purpose} needs a key ring, and store_keys is not set`,
      "make one with agentauth store keys <path>, then set AGENTAUTH_STORE_KEYS=file:<path>; none stores logins unsealed",
    );
  const text = setting.read();
  if (text === NO_KEYS) return "none";
  hide(text);
  const options = parse(text, setting.source);
  for (const key of [...Object.values(options.keys), options.nameKey]) hide(String(key));
  try {
    return keyRing(options);
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    throw usageError(`store_keys (${setting.source}): ${error.message.replace("nameKey", "name_key")}`, error.hint);
  }
}

function parse(text: string, source: string): KeyRingOptions {
  const details = (problem: string) =>
    usageError(`store_keys (${source}) ${problem}`, "agentauth store keys <path> makes a key ring");
  let value: unknown;
  try {
    value = parseStrictJson(text);
  } catch {
    // The parser's message may quote a key.
    throw details("is not valid JSON");
  }
  if (!isJsonObject(value)) throw details("must be a JSON object");
  const { current, keys, name_key: nameKey } = value;
  const unknownKey = Object.keys(value).find((name) => !MEMBERS.some((known) => known === name));
  if (unknownKey !== undefined)
    throw details(`has an unknown member ${quote(unknownKey)}; known are ${MEMBERS.join(", ")}`);
  if (typeof current !== "string") throw details("has no current: the id of the key that seals");
  if (!isJsonObject(keys)) throw details("has no keys: an object with each key by its id");
  const wrongKey = Object.entries({ ...keys }).find(([, key]) => typeof key !== "string");
  if (wrongKey) throw details(`has a key ${quote(wrongKey[0])} that is not a string`);
  if (typeof nameKey !== "string") throw details("has no name_key");
  return { current, keys: keys as Record<string, string>, nameKey };
}
