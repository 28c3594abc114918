// The JSON Schemas of what the commands print, from the TypeScript types of the outputs and their TSDoc comments.
import { join } from "node:path";
import ts from "typescript";
import { printAll } from "./shapes.mjs";

/** The type of each output of `agentauth schema`, and the file that declares it. */
const OUTPUTS = {
  report: ["commands/report/findings.ts", "Report"],
  token: ["clients/token-formats.ts", "PrintedToken"],
  exchanged: ["commands/exchange/run.ts", "PrintedToken"],
  login: ["commands/login/run.ts", "FinishedLogin"],
  "login-begun": ["commands/login/two-step-login.ts", "PrintedStart"],
  "login-not-required": ["commands/login/run.ts", "NoLogin"],
  status: ["clients/login-first.ts", "PrintedLogin"],
  logout: ["commands/logout/run.ts", "LogoutResult"],
  "broker-policy": ["../broker/policy.ts", "BrokerPolicy"],
  discover: ["commands/discover/run.ts", "PrintedDiscovery"],
  introspection: ["../oauth/token/introspection.ts", "Introspection"],
  tool: ["commands/mcp/run.ts", "PrintedTool"],
  "host-server": ["commands/mcp/hosts/run.ts", "HostServer"],
  doctor: ["commands/doctor/run.ts", "DoctorReport"],
  setting: ["config/effective.ts", "EffectiveSetting"],
  profile: ["commands/profile/run.ts", "ProfileRow"],
  "client-document": ["commands/client/document.ts", "ClientDocument"],
  "client-document-check": ["commands/client/document.ts", "DocumentCheck"],
  "store-health": ["../profile/engine/health.ts", "EngineReport"],
  "store-login": ["commands/store/keep-alive.ts", "PrintedConnection"],
  "store-reseal": ["commands/store/run.ts", "ResealRow"],
  "store-keep-alive": ["commands/store/keep-alive.ts", "KeepAliveRow"],
  "store-copy": ["commands/store/copy.ts", "CopyReport"],
  "sandbox-options": ["../sandbox/sandbox-settings.ts", "SandboxFileOptions"],
  sandbox: ["commands/sandbox/run.ts", "PrintedSandbox"],
  machine: ["commands/sandbox/run.ts", "MachineCredentials"],
  commands: ["commands/commands/run.ts", "CommandTree"],
  command: ["commands/commands/run.ts", "CommandInfo"],
  "command-summary": ["commands/commands/run.ts", "CommandSummary"],
  error: ["output/errors.ts", "ErrorReport"],
};

/** The types of what is read: a member that they do not have is an error. */
const READ = ["SandboxFileOptions"];

/** A type that contains itself, by its name in `$defs`. */
const DEFINITIONS = { CommandInfo: "command" };

/** What the name of a field says and its TypeScript type cannot. */
const BY_NAME = [
  [/(?:_at|^time)$/, { format: "date-time" }],
  [/^(?:server|issuer|jwksUri|url|\w+_url|\w+(?:E|_e)ndpoint)$/, { format: "uri" }],
  [/^(?:latitude|longitude)$/, { type: "number" }],
];
/** Text that may be masked, and so is not always a URL. */
const NO_FORMAT = ["AgentAuthErrorJson.url"];

/** Fields that may get more values in any version: the values of today are examples. */
const OPEN = ["AgentAuthErrorJson.class", "CommandTree.name", "EffectiveSetting.key", "TraceEntry.step"];

/** The schemas by the names of the outputs, as JSON. */
export function outputSchemasText(root) {
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const paths = Object.values(OUTPUTS).map(([file]) => join(root, "src/cli", file));
  const program = ts.createProgram([...new Set(paths)], options);
  const checker = program.getTypeChecker();
  const entries = Object.entries(OUTPUTS).map(([name, [file, typeName]]) => {
    const node = declarationOf(program.getSourceFile(join(root, "src/cli", file)), typeName);
    return [name, outputSchema(checker, node)];
  });
  return `${printAll(Object.fromEntries(entries))}\n`;
}

function declarationOf(source, name) {
  const found = source?.statements.find(
    (node) => (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) && node.name.text === name,
  );
  if (found === undefined) throw new Error(`there is no type ${name} in ${source?.fileName}`);
  return found;
}

function outputSchema(checker, node) {
  const definitions = {};
  const schema = objectSchema(checker.getTypeAtLocation(node), node.name.text);
  const description = docOf(checker.getSymbolAtLocation(node.name));
  return {
    type: schema.type,
    ...(description !== "" && { description }),
    ...schema,
    ...(READ.includes(node.name.text) && { additionalProperties: false }),
    ...(Object.keys(definitions).length > 0 && { $defs: definitions }),
  };

  function objectSchema(type, at) {
    const properties = {};
    const required = [];
    for (const symbol of checker.getPropertiesOfType(type)) {
      const own = propertySchema(symbol, at);
      properties[symbol.name] = own.schema;
      if (own.isRequired) required.push(symbol.name);
    }
    const [index] = checker.getIndexInfosOfType(type);
    const isOpen = index !== undefined;
    if (required.length + Object.keys(properties).length === 0 && isOpen) {
      const isAny = has(ts.TypeFlags.Any | ts.TypeFlags.Unknown)(index.type);
      return { type: "object", additionalProperties: isAny || valueSchema(index.type, `${at}.*`) };
    }
    return { type: "object", ...(isOpen && { additionalProperties: true }), properties, required };
  }

  function propertySchema(symbol, at) {
    const type = checker.getTypeOfSymbol(symbol);
    const parts = type.isUnion() ? type.types : [type];
    const isRequired = (symbol.flags & ts.SymbolFlags.Optional) === 0 && !parts.some(has(ts.TypeFlags.Undefined));
    const place = `${ownerOf(symbol) ?? at}.${symbol.name}`;
    const schema = valueSchema(type, place);
    const described = docOf(symbol) || docOf(type.aliasSymbol ?? type.getSymbol());
    if (described === "" && schema.const === undefined) throw new Error(`${place} has no TSDoc comment`);
    const named = NO_FORMAT.includes(place) ? undefined : BY_NAME.find(([name]) => name.test(symbol.name))?.[1];
    if (schema.enum !== undefined && OPEN.includes(place)) {
      schema.examples = schema.enum;
      delete schema.enum;
    }
    const isScalar = ["string", "integer"].includes([schema.type].flat()[0]);
    return { isRequired, schema: { ...schema, ...(isScalar && named), ...(described && { description: described }) } };
  }

  function valueSchema(type, at) {
    const all = (type.isUnion() ? type.types : [type]).filter((part) => !has(ts.TypeFlags.Undefined)(part));
    const parts = all.filter((part) => !has(ts.TypeFlags.Null)(part));
    const schema = partsSchema(parts, at);
    return parts.length === all.length ? schema : { ...schema, type: [schema.type, "null"] };
  }

  function partsSchema(parts, at) {
    const [first] = parts;
    if (parts.every((part) => part.isStringLiteral())) {
      const values = parts.map(({ value }) => value).sort();
      return { type: "string", ...(values.length === 1 ? { const: values[0] } : { enum: values }) };
    }
    const kinds = parts.map((part) => part.getProperty("kind"));
    if (kinds.length > 1 && kinds.every((kind) => kind !== undefined)) {
      const kind = partsSchema(
        kinds.flatMap((one) => checker.getTypeOfSymbol(one)),
        `${at}.kind`,
      );
      return { type: "object", properties: { kind }, required: ["kind"] };
    }
    const others = parts.filter((part) => !has(ts.TypeFlags.BooleanLiteral)(part));
    if (others.length > 0 && others.length < parts.length) {
      const { type, ...schema } = partsSchema(others, at);
      return { type: ["boolean", type], ...schema };
    }
    if (parts.every(has(ts.TypeFlags.BooleanLiteral))) {
      const value = parts.length === 1 ? { const: checker.typeToString(first) === "true" } : {};
      return { type: "boolean", ...value };
    }
    // Known words, and any other text.
    if (parts.every((part) => part.isStringLiteral() || isText(part))) return { type: "string" };
    if (parts.length !== 1) throw new Error(`${at}: a field has one form, or null`);
    if (first.isNumberLiteral()) return { type: "integer", const: first.value };
    if (has(ts.TypeFlags.Number)(first)) return { type: "integer" };
    if (checker.isTupleType(first)) {
      const { length } = checker.getTypeArguments(first);
      return { type: "array", items: { type: "number" }, minItems: length, maxItems: length };
    }
    if (checker.isArrayType(first)) {
      const [item] = checker.getTypeArguments(first);
      return { type: "array", items: valueSchema(item, `${at}[]`) };
    }
    if (!has(ts.TypeFlags.Object | ts.TypeFlags.Intersection)(first))
      throw new Error(`${at}: no schema for ${checker.typeToString(first)}`);
    const name = DEFINITIONS[first.getSymbol()?.name];
    if (name === undefined) return objectSchema(first, at);
    if (!(name in definitions)) {
      definitions[name] = true;
      definitions[name] = objectSchema(first, at);
    }
    return { $ref: `#/$defs/${name}` };
  }

  /** The comment as one line. */
  function docOf(symbol) {
    const text = ts.displayPartsToString(symbol?.getDocumentationComment(checker) ?? []);
    return text
      .replace(/\{@link ([^}]+)\}/g, "$1")
      .replace(/\s+/g, " ")
      .trim();
  }
}

/** Whether any text is assignable, as to `string` and to `string & {}`. */
function isText(type) {
  return has(ts.TypeFlags.String)(type) || (type.isIntersection() && type.types.some(isText));
}

function has(flag) {
  return (type) => (type.flags & flag) !== 0;
}

/** The name of the interface or of the type that declares a property. */
function ownerOf(symbol) {
  for (let node = symbol.declarations?.[0]?.parent; node !== undefined; node = node.parent) {
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return node.name.text;
  }
  return undefined;
}
