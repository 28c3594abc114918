// The limit: a bare socket, just enough HTTP to find the body, and JSON.parse.
import { once } from "node:events";
import { connect } from "node:net";
import { pageUrl, side, TOKEN } from "../lib/side.mjs";

await side(async ({ url, pageSize }, take) => {
  const { host, hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, "connect");
  for (let offset = 0; offset !== null; ) {
    const path = pageUrl(url, offset, pageSize).slice(url.length);
    socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`);
    const { summaries, pagination } = JSON.parse((await readBody(socket)).toString());
    for (const item of summaries) take(item);
    offset = pagination.next_page_offset;
  }
  socket.destroy();
});

/** The body of a response with a Content-Length. */
function readBody(socket) {
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0);
    let body;
    let filled = 0;
    const onData = (chunk) => {
      if (body === undefined) {
        head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
        const end = head.indexOf("\r\n\r\n");
        if (end < 0) return;
        body = Buffer.allocUnsafe(Number(/content-length: (\d+)/i.exec(head.latin1Slice(0, end))[1]));
        chunk = head.subarray(end + 4);
      }
      filled += chunk.copy(body, filled);
      if (filled === body.length) settle(() => resolve(body));
    };
    const onEnd = () => settle(() => reject(new Error("the connection ended")));
    const settle = (done) => {
      socket.off("data", onData).off("close", onEnd).off("error", onEnd);
      done();
    };
    socket.on("data", onData).on("close", onEnd).on("error", onEnd);
  });
}
