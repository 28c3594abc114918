import { rawJson } from "../../helpers/peer.js";
import { ALL_METADATA, type HostileCase, UP_TO_REGISTRATION, UP_TO_RESOURCE, unless, WHOLE_LOGIN } from "../case.js";
import type { Kit } from "../kit/kit.js";

const PRM = "/.well-known/oauth-protected-resource/mcp";
const META = "/pool/.well-known/oauth-authorization-server";

/** The documents of a login, with their servers, paths, and the requests up to each of them. */
const DOCUMENTS = {
  "resource metadata": { peer: "mcp", path: PRM, requests: UP_TO_RESOURCE, good: ({ mcp }: Kit) => mcp.metadata },
  "server metadata": { peer: "as", path: META, requests: ALL_METADATA, good: ({ as }: Kit) => as.metadata },
  "a registration": {
    peer: "as",
    path: "/pool/register",
    requests: UP_TO_REGISTRATION,
    good: () => ({ client_id: "client-1", token_endpoint_auth_method: "none" }),
  },
  "a token response": { peer: "as", path: "/pool/token", requests: WHOLE_LOGIN, good: ({ as }: Kit) => as.tokens() },
} as const;

type Document = keyof typeof DOCUMENTS;

/** A document whose text the server changes. */
function written(
  id: string,
  document: Document,
  input: string,
  change: (text: string, kit: Kit) => string | Buffer,
  over: Partial<HostileCase>,
): HostileCase {
  const { peer, path, requests, good } = DOCUMENTS[document];
  return {
    id,
    input: `${document} with ${input}`,
    result: "refused",
    outcome: "refused",
    code: "bad_json",
    arrange(kit) {
      kit[peer].routes[path] = () =>
        rawJson(change(JSON.stringify(good(kit)), kit), path.endsWith("register") ? 201 : 200);
    },
    requests,
    retries: false,
    ...(document === "a token response" && over.outcome !== "ok" && { store: "logins" }),
    ...over,
  };
}

/** Members with a million different names; written a thousand at a time, so that no other case has to wait for them. */
function millionMembers(): string {
  const thousand = Array.from({ length: 1000 }, (_, nth) => `"a#-${nth}":0`).join(",");
  return Array.from({ length: 1000 }, (_, nth) => thousand.replaceAll("#", String(nth))).join(",");
}

const IGNORED = { result: "ignored", outcome: "ok", requests: WHOLE_LOGIN, code: undefined } as const;
const first = (member: string) => (text: string) => text.replace("{", `{${member},`);
// The issuer counts whole seconds, so that it may have sent 3599.
const withExpiresIn = (value: string) => (text: string) => text.replace(/(?<="expires_in":)\d+/, value);
const prototypeIntact = () =>
  unless({ "no prototype changes": ({} as Record<string, unknown>)["polluted"] === undefined });

function everywhere(
  id: string,
  input: string,
  change: (text: string, kit: Kit) => string | Buffer,
  over: Partial<HostileCase>,
): HostileCase[] {
  const all = Object.keys(DOCUMENTS) as Document[];
  return all.map((document, nth) => written(`${id}${"abcd"[nth]}`, document, input, change, over));
}

/** JSON that parsers treat differently, in every document of a login. */
export const json: readonly HostileCase[] = [
  written(
    "G1a",
    "resource metadata",
    "resource twice",
    (text) => text.replace("{", '{"resource":"https://evil.example",'),
    { says: ['the name "resource" appears twice'] },
  ),
  written(
    "G1b",
    "server metadata",
    "token_endpoint twice",
    (text, { elsewhere }) => text.replace("{", `{"token_endpoint":"${elsewhere.origin}/token",`),
    { says: ['the name "token_endpoint" appears twice'] },
  ),
  written("G1c", "a registration", "client_id twice", first('"client_id":"other"'), {
    says: ['the name "client_id" appears twice'],
  }),
  written("G1d", "a token response", "access_token twice", first('"access_token":"other"'), {
    says: ['the name "access_token" appears twice'],
  }),
  written(
    "G1e",
    "server metadata",
    "token_endpoint twice, once with an escaped letter",
    (text, { elsewhere }) => text.replace("{", `{"\\u0074oken_endpoint":"${elsewhere.origin}/token",`),
    { says: ["appears twice"] },
  ),
  ...everywhere(
    "G2",
    "a member named __proto__, and one named constructor",
    first(
      '"__proto__":{"polluted":"yes","token_endpoint":"https://evil.example"},"constructor":{"prototype":{"polluted":"yes"}}',
    ),
    { ...IGNORED, check: prototypeIntact },
  ),
  written(
    "G3a",
    "server metadata",
    "Token_Endpoint beside token_endpoint",
    (text, { elsewhere }) => text.replace("{", `{"Token_Endpoint":"${elsewhere.origin}/token",`),
    IGNORED,
  ),
  written(
    "G3b",
    "server metadata",
    "a name that ends in NUL",
    (text, { elsewhere }) => text.replace("{", `{"token_endpoint\\u0000":"${elsewhere.origin}/token",`),
    IGNORED,
  ),
  written(
    "G3c",
    "server metadata",
    "a name with a homoglyph",
    (text, { elsewhere }) => text.replace("{", `{"t\\u043eken_endpoint":"${elsewhere.origin}/token",`),
    IGNORED,
  ),
  ...everywhere(
    "G4",
    "arrays 100,000 deep",
    (text) => text.replace("{", `{"a":${"[".repeat(50_000)}${"]".repeat(50_000)},`),
    { says: ["nested deeper than 32"] },
  ),
  written("G5a", "server metadata", "a million members", (text) => text.replace("{", `{${millionMembers()},`), {
    code: "body_too_large",
    says: ["larger than 262144 bytes"],
  }),
  written("G5b", "a token response", "a string of 10 MB", (text) => text.replace("{", `{"a":"${"a".repeat(10e6)}",`), {
    code: "body_too_large",
    says: ["larger than 1048576 bytes"],
  }),
  written("G6a", "a token response", "the number 1e400", withExpiresIn("1e400"), {
    says: ["the number is too large"],
  }),
  written("G6b", "a token response", "NaN", withExpiresIn("NaN"), {
    outcome: "unavailable",
    result: "treated as a broken response",
  }),
  written("G7a", "server metadata", "a lone surrogate in the issuer", (text) => text.replace("/pool", "/pool\\ud800"), {
    code: "issuer_mismatch",
    says: ["RFC 8414 section 3.3"],
  }),
  written("G8a", "resource metadata", "a trailing comma", (text) => text.replace(/\}$/, ",}"), {}),
  written("G8b", "resource metadata", "a comment", (text) => text.replace("{", "{/* x */"), {}),
  written("G8c", "resource metadata", "another object behind it", (text) => `${text}{}`, {}),
  written("G8d", "resource metadata", "a byte order mark", (text) => `\ufeff${text}`, {
    ...IGNORED,
    result: "skipped, as RFC 8259 section 8.1 allows",
  }),
  written(
    "G8e",
    "resource metadata",
    "a raw line break inside a string",
    (text) => text.replace("{", '{"a":"\n",'),
    {},
  ),
  written("G8f", "resource metadata", "single quotes", (text) => text.replaceAll('"', "'"), {}),
  written("G8g", "resource metadata", "a missing end", (text) => text.slice(0, 30), {}),
  written("G8h", "resource metadata", "escape sequences where a value should be", () => '{"a":\u001b[31m}', {
    says: ["a value was expected"],
  }),
];
