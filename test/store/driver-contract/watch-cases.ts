import type { RecordKey, StoreDriver } from "../../../src/store/driver/driver.js";
import { check, checkEqual, eventually, sleep, within } from "./check.js";
import { type Cases, SOON_MS } from "./store-under-test.js";

/** Cases about the reports of changes. */
export const watchCases: Cases = {
  async "a watch reports what other drivers write and remove"({ driver, key, open }) {
    const writer = await open();
    const watch = begin(driver);
    const put = () => putOver(writer, key);
    await watch.reports("a put", key, put);
    await watch.reports("a delete", key, () => writer.delete(key), put);
    checkEqual("a watch lasts until its signal fires", watch.isOver, false);
    await watch.end();
  },

  async "a watch ends with its signal"({ driver, key, open }) {
    const writer = await open();
    const watch = begin(driver);
    await watch.reports("a put", key, () => putOver(writer, key));
    await watch.end();
    watch.changes.length = 0;
    await putOver(writer, key);
    await sleep(PAUSE_MS);
    checkEqual("a watch reports nothing after its signal fired", watch.changes, []);
    const fired = driver.watch?.(
      () => {},
      () => {},
      AbortSignal.abort(),
    );
    await within(SOON_MS, "a watch ends at once if its signal has fired", fired ?? Promise.resolve());
    checkEqual("a driver works after its watch ended", (await driver.get(key))?.value, "text");
  },
};

/** Cases about the reports of changes of an engine that is killed. */
export const watchGapCases: Cases = {
  async "a watch says when changes may be missing"({ driver, key, open, kill, restart }) {
    const writer = await open();
    const watch = begin(driver);
    // The connection of the writer may need a moment, too.
    const put = () => putOver(writer, key).catch(() => undefined);
    await watch.reports("a put", key, put);
    watch.gaps = 0;
    await kill();
    await restart();
    const rule = "a watch says that changes may be missing after its connection was lost";
    await eventually(2 * SOON_MS, rule, async () => watch.gaps > 0);
    await watch.reports("a put after its connection was lost", key, put);
    await watch.end();
  },
};

/** Lets reports arrive. One that is later makes a change be repeated, and nothing else. */
const PAUSE_MS = 5;

/** Puts over whatever is stored. */
async function putOver(writer: StoreDriver, key: RecordKey): Promise<void> {
  await writer.put(key, "text", (await writer.get(key))?.version);
}

type Step = () => Promise<unknown>;

/** A watch that has begun. */
function begin(driver: StoreDriver) {
  const controller = new AbortController();
  const changes: RecordKey[] = [];
  const watch = { changes, gaps: 0, isOver: false, reports, end };
  const onGap = () => {
    watch.gaps += 1;
  };
  const over = driver.watch?.((key) => void changes.push(key), onGap, controller.signal);
  check("watch is one of the operations", over !== undefined, "a function", over);
  const ended = over.finally(() => {
    watch.isOver = true;
  });
  // It is awaited at the end; until then a failure shows as a missing report.
  ended.catch(() => {});

  async function end() {
    controller.abort();
    await within(SOON_MS, "a watch ends when its signal fires", ended);
  }

  /** Repeats a change until it is reported: a watch may miss some, and needs time to begin. */
  function reports(what: string, { kind, partition, id }: RecordKey, change: Step, prepare?: Step) {
    return eventually(SOON_MS, `a watch reports ${what}`, async () => {
      await prepare?.();
      await sleep(PAUSE_MS);
      changes.length = 0;
      await change();
      await sleep(PAUSE_MS);
      return changes.some((each) => each.kind === kind && each.partition === partition && each.id === id);
    });
  }

  return watch;
}
