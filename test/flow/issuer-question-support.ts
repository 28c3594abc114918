import { test } from "vitest";
import { temporaryFolder } from "../helpers/cli.js";
import { startScene } from "../helpers/issuer.js";

/** What the program asks before it sends the secret of a client to an issuer for the first time. */
export const QUESTION = "[y/N]";

/** `it` with an issuer, and the arguments and the environment of a login there by a client with a secret. */
export const questionTest = test
  .extend("scene", () => startScene())
  .extend("args", ({ scene }) => ["login", scene.mcp.url, "--browser", "none", "--client-id", "prod"])
  .extend("env", () => ({ AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_CLIENT_SECRET: "prod-secret-9" }));
