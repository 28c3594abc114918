import { describe, expect } from "vitest";
import { hasTerminal, startOnTerminal } from "../e2e/terminal-support.js";
import { QUESTION, questionTest } from "./issuer-question-support.js";

const it = questionTest.extend("start", ({ args, env }) => {
  return () => startOnTerminal(args, env);
});

describe.skipIf(!hasTerminal)("a login at a terminal, by a client with a secret", () => {
  const signInAt = async (shown: string) => {
    const address = /^ {2}(http:\S+)\r?$/m.exec(shown)?.[1];
    await (await fetch(address ?? "")).text();
  };

  it("asks once whether the issuer is that of the client, and accepts yes", async ({ scene, start }) => {
    const first = start();
    await first.shows(QUESTION);
    expect(first.out()).toContain(scene.issuer.issuer);
    expect(scene.issuer.to("/pool/token")).toEqual([]);
    first.type("yes\r");
    await first.shows(/^ {2}http:\S+\r$/m);
    await signInAt(first.out());
    expect(await first.ended).toBe(0);
    const second = start();
    await second.shows(/^ {2}http:\S+\r$/m);
    expect(second.out()).not.toContain(QUESTION);
    await signInAt(second.out());
    expect(await second.ended).toBe(0);
  });

  it("sends nothing where the input ends without an answer", async ({ scene, start }) => {
    const run = start();
    await run.shows(QUESTION);
    run.type("\u0004");
    expect(await run.ended).toBe(3);
    expect(run.out()).toContain(`--issuer ${scene.issuer.issuer}`);
    expect(scene.issuer.to("/pool/authorize")).toEqual([]);
    expect(scene.issuer.to("/pool/token")).toEqual([]);
  });

  it("ends while it waits for the answer when it is interrupted", async ({ start }) => {
    const run = start();
    await run.shows(QUESTION);
    run.signal("SIGINT");
    expect(await run.ended).toBe(130);
  });
});
