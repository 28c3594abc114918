export { parse, TomlError } from "smol-toml";
export { type AST, ParseError, parseTOML } from "toml-eslint-parser";
