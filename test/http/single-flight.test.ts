import { describe, expect, it } from "vitest";
import { abortedError } from "../../src/errors.js";
import { OneAtATime, SingleFlight } from "../../src/http/single-flight.js";

/** Work that ends when a test says so, or when its signal fires. */
function work() {
  let begun = 0;
  let land: (value: string) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const run = (signal: AbortSignal) => {
    begun++;
    return new Promise<string>((resolve, reject) => {
      land = resolve;
      fail = reject;
      signal.addEventListener("abort", () => reject(abortedError(signal)));
    });
  };
  return { run, land: (value: string) => land(value), fail: (error: Error) => fail(error), begun: () => begun };
}

describe("Flights", () => {
  it("does the work once for all who ask at the same time, and again for who asks later", async () => {
    const flights = new SingleFlight<string>();
    const job = work();
    const first = [flights.run("a", job.run, undefined), flights.run("a", job.run, undefined)];
    job.land("one");
    expect(await Promise.all(first)).toEqual(["one", "one"]);
    const second = flights.run("a", job.run, undefined);
    job.land("two");
    expect(await second).toBe("two");
    expect(job.begun()).toBe(2);
  });

  it("keeps names apart", async () => {
    const flights = new SingleFlight<string>();
    const [a, b] = [work(), work()];
    const both = Promise.all([flights.run("a", a.run, undefined), flights.run("b", b.run, undefined)]);
    a.land("a");
    b.land("b");
    expect(await both).toEqual(["a", "b"]);
  });

  it("gives a failure to all, and starts again after it", async () => {
    const flights = new SingleFlight<string>();
    const job = work();
    const both = Promise.allSettled([flights.run("a", job.run, undefined), flights.run("a", job.run, undefined)]);
    job.fail(new Error("no"));
    expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    const again = flights.run("a", job.run, undefined);
    job.land("yes");
    expect(await again).toBe("yes");
  });

  it("ends the work with the last who waits, not with the first", async () => {
    const flights = new SingleFlight<string>();
    const job = work();
    const [one, two] = [new AbortController(), new AbortController()];
    const first = flights.run("a", job.run, one.signal);
    const second = flights.run("a", job.run, two.signal);
    one.abort();
    await expect(first).rejects.toMatchObject({ code: "aborted" });
    const third = flights.run("a", job.run, undefined);
    two.abort();
    await expect(second).rejects.toMatchObject({ code: "aborted" });
    job.land("done");
    expect(await third).toBe("done");
    expect(job.begun()).toBe(1);
  });

  it("waits, when the last one leaves, until the work has put its things in order", async () => {
    const flights = new SingleFlight<string>();
    const controller = new AbortController();
    let inOrder = false;
    const left = flights.run(
      "a",
      (signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            setImmediate(() => {
              inOrder = true;
              reject(new Error("ended"));
            });
          });
        }),
      controller.signal,
    );
    controller.abort();
    await expect(left).rejects.toMatchObject({ code: "aborted" });
    expect(inOrder).toBe(true);
  });
});

it("work that comes one at a time learns whether it had to wait", async () => {
  const queue = new OneAtATime();
  const run = () => queue.run("a", async (waited) => waited);
  expect(await Promise.all([run(), run()])).toEqual([false, true]);
  expect(await run()).toBe(false);
});
