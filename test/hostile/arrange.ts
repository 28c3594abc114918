import { Secret } from "../../src/redact.js";
import { fileStore } from "../../src/store/file/file.js";
import { madeClient } from "../helpers/grant.js";
import type { Kit } from "./kit/kit.js";

/** Stores a client of an earlier registration at the first issuer. */
export async function saveClientOf({ home, as, canaries }: Kit, secretExpiresAt?: number): Promise<void> {
  const redirectUri = "http://127.0.0.1/callback";
  const client = madeClient({
    issuer: as.issuer,
    clientId: "first-client",
    clientSecret: new Secret(canaries.get("registered-secret")),
    secretExpiresAt,
    redirectUri,
  });
  await fileStore(home).saveClient(client, redirectUri);
}
