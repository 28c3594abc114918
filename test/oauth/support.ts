import { test } from "vitest";
import { startScene } from "../helpers/issuer.js";

/** Tests with a scene each: an MCP server, its issuer, a store, a clock and a user who logs in at once. */
export const sceneTest = test.extend("scene", () => startScene());
