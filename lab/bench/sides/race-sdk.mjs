import * as sdk from "@modelcontextprotocol/sdk/client/auth.js";
import { officialRacer } from "../lib/file-provider.mjs";
import { racer } from "../lib/racer.mjs";

await racer(officialRacer(sdk));
