/** `-o yaml`: a sequence that YAML 1.1 and 1.2 readers parse equally. */

import type { ScalarTag, Tags } from "yaml";
import { plainYaml } from "./plain-yaml.js";
import { project, toPlain } from "./value.js";
import type { ObjectContext, Writer, WriterContext } from "./writer-types.js";

/** Streams a sequence, item by item. */
export function yamlWriter({ io, paths, reveal }: WriterContext): Writer {
  let empty = true;
  return {
    async write(items) {
      if (items.length === 0) return;
      empty = false;
      const picked = paths === undefined ? items : items.map((item) => project(item, paths));
      await io.stdout.write(await itemsToYaml(picked, reveal));
    },
    async end() {
      if (empty) await io.stdout.write("[]\n");
    },
    async abort() {},
  };
}

/** A sequence, in which only the items that are not plain need a document. */
async function itemsToYaml(items: readonly object[], reveal: boolean): Promise<string> {
  let text = "";
  let others: object[] = [];
  for (const item of items) {
    const plain = plainYaml([toPlain(item, reveal)]);
    if (plain === undefined) {
      others.push(item);
      continue;
    }
    if (others.length > 0) text += await toYaml(others, reveal);
    others = [];
    text += plain;
  }
  return others.length > 0 ? text + (await toYaml(others, reveal)) : text;
}

/** One mapping. */
export function yamlObject(value: object, { paths, reveal }: ObjectContext): Promise<string> {
  return toYaml(paths === undefined ? value : project(value, paths), reveal);
}

// A stack of more than eight marks would overlap the neighbouring lines.
const UNSAFE =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]|[^\S ]|\p{M}{9,}/u;
const UNSAFE_SHOWN = new RegExp(`(?!\\n)(?:${UNSAFE.source})`, "gu");

/** A value as YAML: ambiguous strings quoted, and every control, bidi and invisible character as an escape. */
export async function toYaml(value: unknown, reveal: boolean): Promise<string> {
  // In the bundle, the exports of a CommonJS package are all in `default`.
  const {
    default: { Document, visit },
  } = await import("yaml");
  const document = new Document(toPlain(value, reveal), { compat: "yaml-1.1", customTags });
  visit(document, {
    Scalar(_key, node) {
      // Only between double quotes can a character be written as an escape. A bare "=" is a type of YAML 1.1.
      if (typeof node.value === "string" && (node.value === "=" || UNSAFE.test(node.value))) node.type = "QUOTE_DOUBLE";
    },
  });
  // Folding is off, so that every raw line break is one between nodes.
  return document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER });
}

/** Escapes strings when they are written: only then it is known which key is too long for one line. */
function customTags(tags: Tags): Tags {
  return tags.map((tag) => {
    if (typeof tag !== "object" || tag.tag !== "tag:yaml.org,2002:str" || !("stringify" in tag)) return tag;
    const { stringify } = tag;
    return { ...tag, stringify: (...about) => escapeUnsafe(stringify?.(...about) ?? "") } as ScalarTag;
  });
}

function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE_SHOWN, (found) => [...found].map(escapeCharacter).join(""));
}

function escapeCharacter(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16);
  if (code.length <= 2) return `\\x${code.padStart(2, "0")}`;
  return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
}
