import type { StoreDriver } from "../../../src/store/driver/driver.js";
import { runJob } from "./process-cases.js";

/** A call of an operation, or its answer. */
export interface Message {
  readonly call?: number;
  readonly name?: string;
  readonly args?: unknown[];
  readonly answer?: unknown;
}

const waiting = new Map<number, (answer: unknown) => void>();
process.on("message", ({ call = 0, answer }: Message) => waiting.get(call)?.(answer));

/** A driver whose engine is in the parent process. */
const driver = new Proxy({} as StoreDriver, {
  get:
    (_target, name) =>
    (...args: unknown[]) =>
      new Promise((resolve) => {
        const call = waiting.size + 1;
        waiting.set(call, resolve);
        process.send?.({ call, name, args });
      }),
});

process.send?.({ answer: await runJob(driver, JSON.parse(process.argv[2] ?? "")) });
process.disconnect();
