import { closeSync, linkSync, openSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { closeWriteEnds, openStdio, passOutput } from "../../../../src/cli/commands/exec/child.js";
import { temporaryFolder } from "../../../helpers/folder.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";

/** Streams of ours, each with a file where one is named: `a`, or `b`, a second name of it, or `c`. */
function ownStreams([stdin, stdout, stderr]: readonly (string | undefined)[]) {
  const folder = temporaryFolder();
  for (const name of ["a", "c"]) writeFileSync(join(folder, name), "");
  linkSync(join(folder, "a"), join(folder, "b"));
  const stream = (name: string | undefined) => {
    const made = new PassThrough();
    return name === undefined ? made : Object.assign(made, { fd: openSync(join(folder, name), "r+") });
  };
  return { stdin: stream(stdin), stdout: stream(stdout), stderr: stream(stderr) };
}

describe.skipIf(ON_WINDOWS)("the streams of a command", () => {
  const both = { stdout: true, stderr: true };
  const none = { stdout: false, stderr: false };

  it.each<[string, typeof both, (string | undefined)[], string[]]>([
    ["are inherited where nothing is masked", none, ["c", "a", "b"], ["inherit", "inherit", "inherit"]],
    ["are a pipe each where both are masked", both, ["c", "a", "c"], ["inherit", "out", "err"]],
    ["are one pipe where both share a file", both, ["c", "a", "b"], ["inherit", "out", "out"]],
    [
      "are a pipe and an inherited one",
      { stdout: true, stderr: false },
      ["c", "a", "b"],
      ["inherit", "out", "inherit"],
    ],
    [
      "are an inherited one and a pipe",
      { stdout: false, stderr: true },
      ["c", "a", "b"],
      ["inherit", "inherit", "err"],
    ],
    ["are pipes where ours are no files", none, [undefined, undefined, undefined], ["pipe", "out", "err"]],
    ["are two pipes where one of ours is no file", both, ["c", undefined, "a"], ["inherit", "out", "err"]],
    ["are two pipes where the other is no file", both, ["c", "a", undefined], ["inherit", "out", "err"]],
  ])("%s", (_what, masked, files, expected) => {
    const opened = openStdio(masked, ownStreams(files));
    const { stdio, out, err } = opened;
    const names = (stdio as unknown[]).map((one) =>
      one === out?.writeEnd ? "out" : one === err?.writeEnd ? "err" : one,
    );
    expect(names).toEqual(expected);
    closeWriteEnds(opened);
    for (const pipe of [out, err]) {
      if (pipe !== undefined) expect(() => closeSync(pipe.writeEnd)).toThrow("EBADF");
      pipe?.readEnd.destroy();
    }
  });

  it("of the system are read to their end", async () => {
    const opened = openStdio(both, ownStreams(["c", "a", "c"]));
    const { out, err } = opened;
    for (const pipe of [out, err]) if (pipe !== undefined) writeFileSync(pipe.writeEnd, "text");
    closeWriteEnds(opened);
    const read = async (stream: Readable | undefined) => Buffer.concat(await (stream ?? Readable.from([])).toArray());
    expect([String(await read(out?.readEnd)), String(await read(err?.readEnd))]).toEqual(["text", "text"]);
  });
});

describe("an output that is passed on", () => {
  const secrets = [Buffer.from("a-secret")];
  const sink = (failure?: Error) => {
    const chunks: string[] = [];
    const stream = new Writable({
      write: (chunk, _encoding, done) => {
        chunks.push(String(chunk));
        done(failure);
      },
    }).on("error", () => {});
    return { stream, chunks };
  };

  it("has its secrets masked, also across two parts of it", async () => {
    const { stream, chunks } = sink();
    const parts = ["it is a-se", "cret, a-s"].map((part) => Buffer.from(part));
    expect(await passOutput(Readable.from(parts), stream, secrets)).toBeUndefined();
    expect([chunks.join(""), chunks.includes("")]).toEqual(["it is ********, a-s", false]);
  });

  it("ends with the error of its reader, and closes its source", async () => {
    const failure = Object.assign(new Error("gone"), { code: "EPIPE" });
    const source = new PassThrough();
    source.write("text");
    expect(await passOutput(source, sink(failure).stream, secrets)).toBe(failure);
    expect(source.destroyed).toBe(true);
  });
});

it("no pipe of the system is made on Windows", () => {
  const before = os.platform();
  Object.defineProperty(process, "platform", { value: "win32" });
  try {
    expect(openStdio({ stdout: true, stderr: true }, ownStreams(["c", "a", "c"]))).toEqual({
      stdio: ["inherit", "pipe", "pipe"],
      out: undefined,
      err: undefined,
    });
  } finally {
    Object.defineProperty(process, "platform", { value: before });
  }
});
