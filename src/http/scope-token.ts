const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Whether a text is one scope (RFC 6749 section 3.3). */
export function isScopeToken(text: string): boolean {
  return SCOPE_TOKEN.test(text);
}
