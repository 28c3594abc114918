import { setTimeout as sleep } from "node:timers/promises";
import type { Grant } from "../../../src/oauth/model/grant.js";
import { Secret } from "../../../src/redact.js";
import { fileStore } from "../../../src/store/file/file.js";
import { madeGrant } from "../../helpers/grant.js";

/** What a process that saves is to do. */
export interface SaveJob {
  folder: string;
  /** `race` saves once over generation 1; `chain` saves one generation after the other until one is refused. */
  kind: "race" | "chain";
  /** How many of a chain; default: no end. */
  count?: number;
  /** Distinguishes it from others. */
  tag: string;
}

const KEY = { profile: "default", server: "https://mcp.example/mcp" };
const { folder, kind, count = Number.POSITIVE_INFINITY, tag } = JSON.parse(process.argv[2] ?? "") as SaveJob;
const store = fileStore(folder);
const say = (event: string, more: object = {}) => process.send?.({ event, ...more });

let signals = 0;
process.on("message", () => signals++);

/** Waits for the n-th signal to continue. */
async function go(nth: number): Promise<void> {
  while (signals < nth) await sleep(1);
}

/** A grant whose tokens name its generation, and are long enough to be written in several parts. */
function grantOf(generation: number): Grant {
  const base = madeGrant();
  const accessToken = new Secret(`${generation} `.repeat(2000).trim());
  return madeGrant({ generation, requestedScope: tag, tokens: { ...base.tokens, accessToken } });
}

async function chain(): Promise<void> {
  let generation = (await store.read(KEY))?.generation;
  for (let nth = 0; nth < count; nth++) {
    const next = (generation ?? 0) + 1;
    if (!(await store.save(grantOf(next), generation))) break;
    generation = next;
    if (nth === 0) say("begun");
    say("saved", { generation });
  }
  say("refused");
}

say("started");
if (kind === "race") {
  await go(1);
  say("ended", { saved: await store.save(grantOf(2), 1) });
} else {
  for (let nth = 1; ; nth++) {
    await go(nth);
    await chain();
  }
}
process.disconnect?.();
