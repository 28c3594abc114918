import { readdirSync, readFileSync } from "node:fs";
import type { ServerShape } from "./shape.js";

const FOLDER = new URL("./", import.meta.url);

/** Every recorded server, in the order of the names. */
export const SERVER_SHAPES: readonly ServerShape[] = readdirSync(FOLDER)
  .flatMap((name) => /^([^.]+)\.json$/.exec(name)?.[1] ?? [])
  .sort()
  .map((id) => JSON.parse(readFileSync(new URL(`${id}.json`, FOLDER), "utf8")));
