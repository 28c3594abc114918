import { DOCUMENT_REDIRECTS } from "../../../src/oauth/client/metadata-document.js";
import type { Reply } from "../../helpers/peer.js";
import type { HostileCase } from "../case.js";
import { withoutPublicWorld } from "../kit/public-world.js";

const URL_OF_DOCUMENT = "https://mcp.test/client.json";

const DOCUMENT = {
  client_id: URL_OF_DOCUMENT,
  client_name: "agentauth",
  redirect_uris: DOCUMENT_REDIRECTS,
  grant_types: ["authorization_code", "refresh_token"],
  token_endpoint_auth_method: "none",
};

/** A published document that `client document --check` reads. */
function published(
  id: string,
  input: string,
  reply: Reply,
  says: readonly (string | RegExp)[],
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    id,
    input: `a client metadata document ${input}`,
    result: "refused by the check, which names the member; nothing is stored",
    outcome: "refused",
    world: "public",
    impossible: withoutPublicWorld,
    cliOnly: true,
    arrange({ mcp }) {
      mcp.routes["/client.json"] = reply;
    },
    command: () => ["client", "document", "--check", URL_OF_DOCUMENT],
    says,
    requests: ["mcp GET /client.json"],
    ...over,
  };
}

const member = (id: string, input: string, members: Record<string, unknown>, says: readonly string[]) =>
  published(id, input, { json: { ...DOCUMENT, ...members } }, says);

const foreign = "https://evil.example/callback";

export const clientDocument: readonly HostileCase[] = [
  member("Y9a", "that names a foreign redirect address", { redirect_uris: [...DOCUMENT_REDIRECTS, foreign] }, [
    "redirect_uris",
    foreign,
    "is foreign",
  ]),
  member("Y9b", "whose redirect address is a page of a private scheme", { redirect_uris: ["app:/callback"] }, [
    "redirect_uris",
    "is foreign",
  ]),
  member("Y9c", "whose client_id is another URL", { client_id: "https://mcp.test/other.json" }, [
    "client_id",
    "https://mcp.test/other.json",
  ]),
  member("Y9d", "with a client_secret", { client_secret: "s3cret-in-public" }, ["client_secret"]),
  member("Y9e", "with a private key", { jwks: { keys: [{ kty: "EC", d: "x" }] } }, ["jwks", "private key"]),
  member("Y9f", "for a shared secret", { token_endpoint_auth_method: "client_secret_basic" }, [
    "token_endpoint_auth_method",
    "client_secret_basic",
  ]),
  published("Y9g", "that redirects", { status: 302, headers: { location: "https://as.test/client.json" } }, [
    "status",
    "https://as.test/client.json",
    "no redirect",
  ]),
  published("Y9h", "of 10 MB", { json: { ...DOCUMENT, x: "x".repeat(10_000_000) } }, ["size"]),
  published("Y9i", "as a page", { text: JSON.stringify(DOCUMENT), headers: { "content-type": "text/html" } }, [
    "content type",
    "text/html",
  ]),
  published(
    "Y9j",
    "with control characters in a redirect address",
    { json: { ...DOCUMENT, redirect_uris: ["\u001b]0;x"] } },
    ["redirect_uris"],
  ),
  published("Y9k", "at a link-local address", { json: DOCUMENT }, ["169.254.169.254"], {
    world: "loopback",
    impossible: undefined,
    command: () => ["client", "document", "--check", "https://169.254.169.254/client.json"],
    requests: [],
  }),
];
