import type { StoreDriver, Version } from "../store/driver/driver.js";
import {
  type Bench,
  type Cases,
  checkRising,
  checkStored,
  checkUnique,
  claimOf,
  create,
  freshKey,
  refused,
  SOON_MS,
  scanAll,
  take,
} from "./bench.js";
import { checkUnavailable, UNAVAILABLE } from "./call-cases.js";
import { checkEqual, checkRejected, eventually } from "./check.js";

type OpenBroken = () => StoreDriver | Promise<StoreDriver>;

/** A case for each way in which an engine is broken. */
export function brokenCases(broken: Readonly<Record<string, OpenBroken>>, timeoutMs: number): Cases {
  const cases = Object.entries(broken).map(([how, openBroken]) => [
    `an engine that ${how} is store_unavailable`,
    async () => checkUnavailable(await openBroken(), timeoutMs),
  ]);
  return Object.fromEntries(cases);
}

/** Cases about an engine that is killed and started again. */
export const restartCases = (timeoutMs: number): Cases => ({
  async "an acknowledged put is there after the engine was killed"({
    driver,
    key: { partition },
    open,
    kill,
    restart,
  }) {
    const acknowledged = new Map<string, Version>();
    let isDown = false;
    const write = async (writer: number) => {
      for (let turn = 0; !isDown; turn += 1) {
        const id = `${writer}/${turn}`;
        const version = await driver.put({ kind: "grant", partition, id }, id, undefined).catch(() => undefined);
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
  },

  async "versions and attempts go on after the engine was killed"({ driver, key: removed, open, kill, restart }) {
    const [held, freed] = [freshKey("lease"), freshKey("lease")];
    const { attempt } = await take(driver, held, claimOf("holder"));
    const { attempt: old } = await take(driver, freed, claimOf("holder"));
    await driver.release(freed, { owner: "holder", note: undefined });
    const version = await create(driver, removed);
    await driver.delete(removed);
    await kill();
    await restart();
    const back = await answering(open);
    const { by } = await refused(back, held);
    const holder = { owner: by.owner, attempt: by.attempt };
    checkEqual("an acknowledged lease is held after the engine was killed", holder, { owner: "holder", attempt });
    checkRising([old, (await take(back, freed, claimOf("next"))).attempt]);
    checkUnique([version, await create(back, removed)]);
  },

  async "an engine that was killed is store_unavailable until it is back"({ driver, key, kill, restart }) {
    const version = await create(driver, key);
    await kill();
    await checkUnavailable(driver, timeoutMs).finally(restart);
    const rule = "a driver works again when its engine is back";
    await eventually(2 * SOON_MS, rule, () => answers(driver));
    await checkStored(rule, driver, key, version);
  },
});

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
