/** A form as a body of the type `multipart/form-data` (HTML Standard, multipart/form-data encoding algorithm). */
export function serializeForm(form: FormData): { source: Blob; type: string } {
  const boundary = `----form-${crypto.randomUUID()}`;
  const parts: (string | Blob)[] = [];
  for (const [name, value] of form) {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escapeQuoted(withCrlf(name))}"`;
    if (typeof value === "string") {
      parts.push(`${head}\r\n\r\n${withCrlf(value)}\r\n`);
    } else {
      const type = value.type || "application/octet-stream";
      parts.push(`${head}; filename="${escapeQuoted(value.name)}"\r\nContent-Type: ${type}\r\n\r\n`, value, "\r\n");
    }
  }
  return { source: new Blob([...parts, `--${boundary}--\r\n`]), type: `multipart/form-data; boundary=${boundary}` };
}

function withCrlf(text: string): string {
  return text.replace(/\r\n?|\n/g, "\r\n");
}

function escapeQuoted(text: string): string {
  return text.replace(/["\r\n]/g, encodeURIComponent);
}
