import * as client from "@modelcontextprotocol/client";
import { officialRacer } from "../lib/file-provider.mjs";
import { racer } from "../lib/racer.mjs";

await racer(officialRacer(client));
