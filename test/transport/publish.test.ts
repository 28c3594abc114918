import { randomUUID } from "node:crypto";
import { channel, subscribe } from "node:diagnostics_channel";
import { setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { publish } from "../../src/transport/publish.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

it("reaches those who subscribe after the first message, also when the garbage has been collected", async () => {
  const name = `test:${randomUUID()}`;
  publish(name, { at: 1 });
  await setTimeout(0);
  collectGarbage();
  const received: unknown[] = [];
  subscribe(name, (message) => received.push(message));
  await setTimeout(10);
  expect(channel(name).hasSubscribers).toBe(true);
  publish(name, { at: 2 });
  expect(received).toEqual([{ at: 2 }]);
});
