import type { RecordKey, StoreDriver } from "../store/driver/driver.js";
import { type Cases, freshKey, leaseOf, SOON_MS } from "./bench.js";
import { check, checkEqual, eventually, within } from "./check.js";

/** Cases about the reports of changes. */
export const watchCases: Cases = {
  async "a watch reports what other drivers write, remove and release"({ driver, key, open }) {
    const writer = await open();
    const watch = begin(driver);
    const put = () => putOver(writer, key);
    const lease = freshKey("lease");
    await untilReported("a watch reports a put", watch, { key, change: put });
    await untilReported("a watch reports a delete", watch, { key, prepare: put, change: () => writer.delete(key) });
    await untilReported("a watch reports a release", watch, {
      key: lease,
      prepare: () => leaseOf(writer, lease).take("a"),
      change: () => leaseOf(writer, lease).release("a"),
    });
    check("a watch lasts until its signal fires", !watch.isOver, "a promise that is pending", "one that is settled");
    await watch.end();
  },

  async "a watch ends with its signal"({ driver, key, open }) {
    const writer = await open();
    const watch = begin(driver);
    await untilReported("a watch reports a put", watch, { key, change: () => putOver(writer, key) });
    await watch.end();
    watch.changes.length = 0;
    await putOver(writer, key);
    await pause();
    checkEqual("a watch reports nothing after its signal fired", watch.changes, []);
    const fired = driver.watch?.(pause, pause, AbortSignal.abort());
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
    await untilReported("a watch reports a put", watch, { key, change: put });
    watch.gaps = 0;
    await kill();
    await restart();
    const rule = "a watch says that changes may be missing after its connection was lost";
    await eventually(2 * SOON_MS, rule, async () => watch.gaps > 0);
    await untilReported("a watch goes on after its connection was lost", watch, { key, change: put });
    await watch.end();
  },
};

interface Watch {
  readonly changes: RecordKey[];
  gaps: number;
  isOver: boolean;
  /** Ends the watch. */
  end(): Promise<void>;
}

function begin(driver: StoreDriver): Watch {
  const controller = new AbortController();
  const watch: Watch = { changes: [], gaps: 0, isOver: false, end: async () => {} };
  const onChange = (key: RecordKey) => void watch.changes.push(key);
  const onGap = () => {
    watch.gaps += 1;
  };
  const over = driver.watch?.(onChange, onGap, controller.signal);
  check("watch is one of the operations", over !== undefined, "a function", over);
  const ended = over.finally(() => {
    watch.isOver = true;
  });
  // It is awaited at the end; until then a failure shows as a missing report.
  ended.catch(() => {});
  watch.end = async () => {
    controller.abort();
    await within(SOON_MS, "a watch ends when its signal fires", ended);
  };
  return watch;
}

/** Puts over whatever is stored. */
async function putOver(writer: StoreDriver, key: RecordKey): Promise<void> {
  await writer.put(key, "text", (await writer.get(key))?.version);
}

interface Change {
  readonly key: RecordKey;
  prepare?(): Promise<unknown>;
  change(): Promise<unknown>;
}

/** Repeats a change until it is reported: a watch may miss some, and needs time to begin. */
function untilReported(rule: string, watch: Watch, { key, prepare, change }: Change): Promise<void> {
  return eventually(SOON_MS, rule, async () => {
    await prepare?.();
    await pause();
    watch.changes.length = 0;
    await change();
    await pause();
    return watch.changes.some(
      ({ kind, partition, id }) => kind === key.kind && partition === key.partition && id === key.id,
    );
  });
}

/** Lets reports arrive. One that is later makes a change be repeated, and nothing else. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}
