/** The SHA-256 hash of values of JSON, in their order, as hexadecimal digits. */
export async function hashValues(...values: readonly unknown[]): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(values)));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
