// What `login --hand-over` prints is what the vaults of hosted agents take, by the types that their vendors publish. It is compiled, not run.
import type Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import type { HandOver, McpOAuthCredential } from "../../dist/index.js";

type Vaults = [Anthropic["beta"]["vaults"], OpenAI["beta"]["agents"]["vaults"]];
type Auth<Vault extends Vaults[number]> = Extract<
  Parameters<Vault["credentials"]["create"]>[1]["auth"],
  { type: "mcp_oauth" }
>;
type Refresh<Credential extends { refresh?: unknown }> = NonNullable<Credential["refresh"]>;

export function store(login: HandOver, anthropic: Vaults[0], openai: Vaults[1]): unknown[] {
  return [
    anthropic.credentials.create("vault", login.reveal("anthropic")),
    openai.credentials.create("vault", login.reveal("openai")),
  ];
}

/** Whether a vendor still knows each member: a missing optional one is no error otherwise. */
type Knows<Theirs, Ours> = Exclude<keyof Ours, keyof Theirs> extends never ? true : Exclude<keyof Ours, keyof Theirs>;

export const known: [
  Knows<Auth<Vaults[0]>, McpOAuthCredential>,
  Knows<Auth<Vaults[1]>, McpOAuthCredential>,
  Knows<Refresh<Auth<Vaults[0]>>, Refresh<McpOAuthCredential>>,
  Knows<Refresh<Auth<Vaults[1]>>, Refresh<McpOAuthCredential>>,
] = [true, true, true, true];
