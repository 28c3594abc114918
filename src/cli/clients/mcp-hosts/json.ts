import { getNodeValue, type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { addMember, memberOf, removeMember, setMember } from "./json-edit.js";
import { isMap, lineAt, lineBreakOf, type SettingsLanguage, SettingsSyntaxError } from "./language.js";

/** JSON with comments and trailing commas, which stay. */
export const json: SettingsLanguage = {
  parse(text, key) {
    if (text.trim() === "") return {};
    const root = treeOf(text);
    checkMap(text, root, "the settings");
    const servers = memberValue(root, key);
    if (servers !== undefined) checkMap(text, servers, `"${key}"`);
    const value: unknown = getNodeValue(root);
    if (!isMap(value)) throw new SettingsSyntaxError("the settings must be an object");
    return value;
  },
  add(text, key, name, entry) {
    if (text.trim() === "") {
      const eol = lineBreakOf(text);
      return `${JSON.stringify({ [key]: { [name]: entry } }, null, 2)}\n`.replaceAll("\n", eol);
    }
    const root = treeOf(text);
    const servers = memberValue(root, key);
    return servers === undefined
      ? addMember(text, root, key, { [name]: entry })
      : addMember(text, servers, name, entry);
  },
  update: (text, key, name, entry) =>
    Object.entries(entry).reduce((changed, [field, value]) => {
      const own = memberValue(memberValue(treeOf(changed), key), name);
      if (own?.type !== "object") return changed;
      return value === undefined ? removeMember(changed, own, field) : setMember(changed, own, field, value);
    }, text),
  remove(text, key, name) {
    const servers = memberValue(treeOf(text), key);
    return servers === undefined ? text : removeMember(text, servers, name);
  },
};

function treeOf(text: string): Node {
  const errors: ParseError[] = [];
  let root: Node | undefined;
  try {
    root = parseTree(text, errors, { allowTrailingComma: true });
  } catch (error) {
    if (error instanceof RangeError) throw new SettingsSyntaxError("it is nested too deeply");
    throw error;
  }
  const [first] = errors;
  if (first !== undefined || root === undefined) {
    const what = first === undefined ? "" : `: ${words(printParseErrorCode(first.error))}`;
    throw new SettingsSyntaxError(`it is not valid JSON${what}`, lineAt(text, first?.offset ?? 0));
  }
  return root;
}

/** `CommaExpected` as words. */
function words(code: string): string {
  return code.replace(/(?<=[a-z])([A-Z])/g, " $1").toLowerCase();
}

/** An object whose keys are unique: of two values with the same key, programs use one or the other. */
function checkMap(text: string, node: Node, what: string): void {
  if (node.type !== "object") throw new SettingsSyntaxError(`${what} must be an object`, lineAt(text, node.offset));
  const seen = new Set<unknown>();
  for (const { offset, children } of node.children ?? []) {
    const key: unknown = children?.[0]?.value;
    if (seen.has(key))
      throw new SettingsSyntaxError(`the key ${JSON.stringify(key)} is there twice`, lineAt(text, offset));
    seen.add(key);
  }
}

function memberValue(node: Node | undefined, key: string): Node | undefined {
  return node === undefined ? undefined : memberOf(node, key)?.children?.[1];
}
