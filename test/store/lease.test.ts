import { describe, expect, it } from "vitest";
import { until } from "../helpers/server.js";
import { stores } from "./stores.js";

const BRIEF = { duration: 5000 };

describe.each(stores)("a lease of %s", (name, open) => {
  it("lets one work at a time under a name, in the order they came", async () => {
    const store = open();
    const order: string[] = [];
    const work = (name: string) => async () => {
      order.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`${name} ends`);
      return name;
    };
    const given = await Promise.all(["a", "b", "c"].map((one) => store.lease("x", work(one), BRIEF)));
    expect(given).toEqual(["a", "b", "c"]);
    const begun = order.filter((line) => line.endsWith("begins")).map((line) => line[0] ?? "");
    if (!name.includes("anew")) expect(begun).toEqual(["a", "b", "c"]);
    expect(order).toEqual(begun.flatMap((one) => [`${one} begins`, `${one} ends`]));
  });

  it("lets work under other names go on", async () => {
    const store = open();
    let end: () => void = () => undefined;
    const held = store.lease(
      "x",
      () =>
        new Promise<void>((resolve) => {
          end = resolve;
        }),
      BRIEF,
    );
    expect(await store.lease("y", async () => "done", BRIEF)).toBe("done");
    end();
    await held;
  });

  it("goes on after work that failed", async () => {
    const store = open();
    const failing = store.lease(
      "x",
      async () => {
        throw new Error("no");
      },
      BRIEF,
    );
    const next = store.lease("x", async () => "yes", BRIEF);
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("yes");
  });

  it("lets a waiting caller leave at once, without its work being done or the others being held up", async () => {
    const store = open();
    let end: () => void = () => undefined;
    let begun = false;
    const held = store.lease(
      "x",
      () => {
        begun = true;
        return new Promise<void>((resolve) => {
          end = resolve;
        });
      },
      BRIEF,
    );
    await until(() => begun);
    const controller = new AbortController();
    let worked = false;
    const leaving = store.lease(
      "x",
      async () => {
        worked = true;
      },
      { ...BRIEF, signal: controller.signal },
    );
    const staying = store.lease("x", async () => "stayed", BRIEF);
    controller.abort();
    await expect(leaving).rejects.toMatchObject({ code: "aborted" });
    end();
    await held;
    expect(await staying).toBe("stayed");
    expect(worked).toBe(false);
  });

  it("does no work for a caller who has left already", async () => {
    const store = open();
    let worked = false;
    const leaving = store.lease(
      "x",
      async () => {
        worked = true;
      },
      { ...BRIEF, signal: AbortSignal.abort() },
    );
    await expect(leaving).rejects.toMatchObject({ code: "aborted" });
    expect(worked).toBe(false);
  });
});
