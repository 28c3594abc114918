import type { StoreDriver, Version } from "../../store/driver/driver.js";
import {
  type Bench,
  claimOf,
  create,
  freshKey,
  freshName,
  type Row,
  refused,
  SOON_MS,
  scanAll,
  take,
} from "../bench.js";
import { check, checkEqual, checkRejected, eventually } from "../check.js";
import { checkUnavailable, UNAVAILABLE } from "./broken-rows.js";

/** Rows about an engine that is killed and started again. */
export function restartRows(timeoutMs: number): readonly Row[] {
  const needs = ["kill", "restart"] as const;
  return [
    { name: "an acknowledged put is there after the engine was killed", needs, run: keepsPuts },
    { name: "versions and attempts go on after the engine was killed", needs, run: goesOn },
    {
      name: "an engine that was killed is store_unavailable until it is back",
      needs,
      run: (bench) => isUnavailable(bench, timeoutMs),
    },
  ];
}

async function keepsPuts({ open, kill, restart }: Bench): Promise<void> {
  const driver = await open();
  const partition = freshName();
  const acknowledged = new Map<string, Version>();
  let isDown = false;
  const write = async (writer: number) => {
    for (let turn = 0; !isDown; turn += 1) {
      const id = `${writer}/${turn}`;
      const put = driver.put({ kind: "grant", partition, id }, id, undefined).catch(() => undefined);
      const version = await put;
      if (version === undefined) return;
      acknowledged.set(id, version);
    }
  };
  const writers = Array.from({ length: 8 }, (_, writer) => write(writer));
  await eventually(SOON_MS, "an engine acknowledges puts", async () => acknowledged.size >= 100);
  await kill();
  isDown = true;
  await Promise.all(writers);
  await restart();
  const found = await scanAll(await answering(open), { kind: "grant", partition });
  const stored = new Map(found.map(({ key, version }) => [key.id, version]));
  const lost = [...acknowledged].filter(([id, version]) => stored.get(id) !== version).map(([id]) => id);
  checkEqual("an acknowledged put is there after the engine was killed", lost, []);
}

async function goesOn({ open, kill, restart }: Bench): Promise<void> {
  const driver = await open();
  const [held, freed, removed] = [freshKey("lease"), freshKey("lease"), freshKey()];
  const { attempt } = await take(driver, held, claimOf("holder"));
  const { attempt: old } = await take(driver, freed, claimOf("holder"));
  await driver.release(freed, { owner: "holder", note: undefined });
  const versions = [await create(driver, removed)];
  await driver.delete(removed);
  await kill();
  await restart();
  const back = await answering(open);
  const { by } = await refused(back, held);
  const holder = { owner: by.owner, attempt: by.attempt };
  checkEqual("an acknowledged lease is held after the engine was killed", holder, { owner: "holder", attempt });
  const { attempt: next } = await take(back, freed, claimOf("next"));
  check("each claim has a higher number than all before it under its key", next > old, `more than ${old}`, next);
  const version = await create(back, removed);
  check("a version is never used twice for one key", !versions.includes(version), "another version", version);
}

async function isUnavailable({ open, kill, restart }: Bench, timeoutMs: number): Promise<void> {
  const driver = await open();
  const key = freshKey();
  const version = await create(driver, key);
  await kill();
  await checkUnavailable(driver, timeoutMs).finally(restart);
  const rule = "a driver works again when its engine is back";
  await eventually(2 * SOON_MS, rule, () => answers(driver));
  checkEqual(rule, await driver.get(key), { key, version, value: "text" });
}

/** A driver that was opened after a restart, as soon as the engine answers. */
async function answering(open: Bench["open"]): Promise<StoreDriver> {
  const driver = await open();
  await eventually(2 * SOON_MS, "an engine that was started again answers", () => answers(driver));
  return driver;
}

async function answers(driver: StoreDriver): Promise<boolean> {
  const read = driver.get(freshKey());
  const isBack = await read.then(
    () => true,
    () => false,
  );
  // Any other error is not one of an engine that is still down.
  if (!isBack) await checkRejected("an engine that is down is store_unavailable", read, UNAVAILABLE);
  return isBack;
}
