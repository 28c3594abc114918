import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

/** Compiled code by the name of its chunk. */
export type Parts = ReadonlyMap<string, Uint8Array>;

/** V8 copies data that does not begin at such a multiple. */
const ALIGNMENT = 8;

/**
 * One file with all parts: their data one after the other, then names and lengths as JSON, then the length of that.
 */
export function encodeParts(parts: Parts): Buffer {
  const index = Buffer.from(JSON.stringify([...parts].map(([name, { length }]) => [name, length])));
  const end = Buffer.alloc(4);
  end.writeUInt32LE(index.length);
  return Buffer.concat([
    ...[...parts.values()].flatMap((data) => [data, Buffer.alloc(padding(data.length))]),
    index,
    end,
  ]);
}

/** @throws where the file was not written by {@link encodeParts} to its end */
export function decodeParts(file: Buffer): Map<string, Uint8Array> {
  const end = file.length - 4;
  const start = end - file.readUInt32LE(end);
  const index = JSON.parse(file.toString("utf8", start, end)) as [name: string, length: number][];
  let at = 0;
  const parts = index.map(([name, length]) => {
    const part = [name, file.subarray(at, at + length)] as const;
    at += length + padding(length);
    return part;
  });
  if (at !== start) throw new RangeError(`the parts have ${at} bytes, not ${start}`);
  return new Map(parts);
}

/** Replaces a file at once, and on the disk before it has its name: V8 does not notice that half of its data is zeros. */
export function replaceFile(path: string, content: Buffer): void {
  const temporary = `${path}.${process.pid}`;
  try {
    const file = openSync(temporary, "wx", 0o600);
    try {
      for (let at = 0; at < content.length; ) at += writeSync(file, content, at);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

function padding(length: number): number {
  return -length & (ALIGNMENT - 1);
}
