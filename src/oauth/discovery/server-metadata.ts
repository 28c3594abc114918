import { AgentAuthError, isAgentAuthError, messageOf } from "../../errors.js";
import { followSignal, settledWithin } from "../../http/deadline.js";
import { serverMetadataAddresses } from "../../http/oauth-syntax.js";
import { quote } from "../../redact.js";
import { serverFailure } from "../http/http.js";
import type { IssuerMetadata, ServerMetadata } from "../model/metadata.js";
import {
  checkIssuerMetadata,
  checkServerMetadata,
  type MetadataDocument,
  readDocument,
  type ServerDiscovery,
} from "./metadata-rules.js";

/**
 * Reads the metadata of an issuer. The first document in the order of {@link serverMetadataAddresses} that names
 * this issuer and has what a login needs is used. Documents are never merged.
 *
 * @throws `AgentAuthError` `issuer_mismatch`, `bad_server_metadata`, `pkce_unsupported`, `no_server_metadata`, or a
 * network error if no address has a usable document and one did not answer
 */
export function findServerMetadata(discovery: ServerDiscovery): Promise<ServerMetadata> {
  return findMetadata(discovery, checkServerMetadata);
}

/**
 * {@link findServerMetadata} for a client that uses the token endpoint only: fields that only a login needs are
 * optional.
 */
export function findIssuerMetadata(discovery: ServerDiscovery): Promise<IssuerMetadata> {
  return findMetadata(discovery, checkIssuerMetadata);
}

/** Milliseconds that a usable document waits for one that it takes precedence over. */
const SPARE_MS = 250;

type CheckMetadata<T extends IssuerMetadata> = (
  document: MetadataDocument,
  url: string,
  discovery: ServerDiscovery,
) => T;

async function findMetadata<T extends IssuerMetadata>(discovery: ServerDiscovery, check: CheckMetadata<T>): Promise<T> {
  const failures: unknown[] = [];
  for (const group of serverMetadataAddresses(discovery.foreign?.at ?? discovery.issuer)) {
    const call = followSignal(discovery.signal);
    const reads = group.map((url) => readServerDocument(url, { ...discovery, signal: call.signal }, check));
    const reading = Promise.allSettled(reads);
    // What another address answers is then for the trace alone: one that hangs delays no login.
    if (await reads[0]?.catch(() => undefined)) {
      await settledWithin(reading, SPARE_MS);
      call.abort(undefined);
    }
    const answers = await reading;
    call.release();
    for (const [index, answer] of answers.entries()) {
      if (answer.status === "rejected") failures.push(answer.reason);
      else if (answer.value) {
        const { url, status, metadata } = answer.value;
        discovery.trace({
          step: "server metadata",
          method: "GET",
          url,
          status,
          used: true,
          why: discovery.foreign ? "it names the expected issuer in place of this one" : "it names the issuer",
        });
        for (const spare of answers.slice(index + 1)) {
          if (spare.status !== "fulfilled" || !spare.value) continue;
          const why = "another document takes precedence";
          discovery.trace({
            step: "server metadata",
            method: "GET",
            url: spare.value.url,
            status: spare.value.status,
            used: false,
            why,
          });
        }
        return metadata;
      }
    }
  }
  throw chooseMostInformative(failures, discovery.foreign?.at ?? discovery.issuer);
}

/**
 * The most informative failure: no response leaves the result open, and a broken rule says more than a missing
 * document.
 */
function chooseMostInformative(failures: readonly unknown[], issuer: string): unknown {
  const errors = failures.filter(isAgentAuthError);
  const other = failures.find((failure) => !isAgentAuthError(failure));
  return (
    other ??
    errors.find((error) => error.class === "aborted") ??
    errors.find((error) => error.class === "unavailable") ??
    errors.find((error) => error.code !== "bad_content_type") ??
    errors[0] ??
    new AgentAuthError(
      "no_server_metadata",
      `the authorization server ${quote(issuer)} publishes no metadata (RFC 8414)`,
      {
        class: "refused",
        hint: "discover() reports every requested address",
        remedy: { action: "inspect", subject: "discovery" },
      },
    )
  );
}

interface UsableDocument<T> {
  url: string;
  status: number;
  metadata: T;
}

async function readServerDocument<T extends IssuerMetadata>(
  url: string,
  discovery: ServerDiscovery,
  check: CheckMetadata<T>,
): Promise<UsableDocument<T> | undefined> {
  const { http, trace, signal } = discovery;
  const entry = { step: "server metadata", method: "GET", url } as const;
  let status: number | undefined;
  try {
    const reply = await http.document(url, signal);
    status = reply.status;
    if (status >= 500 || status === 429) throw serverFailure(url, status);
    if (!reply.response.ok) {
      trace({ ...entry, status, used: false, why: "no document here" });
      return undefined;
    }
    return { url, status, metadata: check(readDocument(reply), url, discovery) };
  } catch (error) {
    trace({ ...entry, status, used: false, why: messageOf(error) });
    throw error;
  }
}
