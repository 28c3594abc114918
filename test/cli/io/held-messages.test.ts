import { describe, expect, it } from "vitest";
import { heldMessages } from "../../../src/cli/io/held-messages.js";
import { createMemoryIo, type MemoryIoOptions } from "../../../src/cli/io/io.js";

async function setUp(options: MemoryIoOptions = {}) {
  const io = createMemoryIo({ env: { NO_COLOR: "1" }, ...options });
  const held = heldMessages(io);
  const talk = (name: string) => {
    held.io.say(`${name} say`);
    held.io.verbose(`${name} verbose`);
    held.io.warn(`${name} warn`);
  };
  return { io, held, talk, reported: () => io.err().split("\n").slice(0, -1) };
}

describe("messages", () => {
  it("are printed at once where nothing holds them", async () => {
    const { talk, reported, held } = await setUp({ verbose: true });
    talk("a");
    expect([reported(), held.isWaiting()]).toEqual([["a say", "a verbose", "warning: a warn"], false]);
  });

  it("wait while they are held, in their order, and then are printed once", async () => {
    const { talk, reported, held } = await setUp({ verbose: true });
    held.hold();
    talk("a");
    expect([reported(), held.isWaiting()]).toEqual([[], true]);
    held.hold();
    talk("b");
    expect(reported()).toEqual([]);
    held.release();
    held.release();
    talk("c");
    expect(reported()).toEqual([
      "a say",
      "a verbose",
      "warning: a warn",
      "b say",
      "b verbose",
      "warning: b warn",
      "c say",
      "c verbose",
      "warning: c warn",
    ]);
  });

  it("that were not asked for do not pile up", async () => {
    const { held } = await setUp();
    held.hold();
    held.io.verbose("a step");
    expect(held.isWaiting()).toBe(false);
  });

  it("stay hushed by quiet", async () => {
    const { talk, reported, held } = await setUp({ quiet: true });
    held.hold();
    talk("a");
    held.release();
    expect(reported()).toEqual(["warning: a warn"]);
  });

  it("leave progress on the terminal only while they are not held", async () => {
    const { io, held } = await setUp({ tty: true });
    const progress = held.io.progress();
    progress.update("one");
    held.hold();
    progress.update("two");
    held.io.progress().update("three");
    expect(io.err()).toContain("one");
    expect(io.err()).not.toMatch(/two|three/);
  });

  it("come from an io that is the same in all else", async () => {
    const { io, held } = await setUp({ stdin: "typed", env: { A: "b" } });
    expect([held.io.stdout, held.io.stderr, held.io.env, held.io.settings]).toEqual([
      io.stdout,
      io.stderr,
      io.env,
      io.settings,
    ]);
    expect(await held.io.stdin.text()).toBe("typed");
    held.io.with({ quiet: true }).say("nothing");
    expect(io.err()).toBe("");
  });
});
